import { z } from 'zod'
import { verdictSchema, type ReplayVerdict } from './verdict.ts'

/** A line of `--json`: the outcome of one recorded query. */
export const replayLineSchema = z.intersection(
  z.object({
    queryId: z.string(),
    createdAt: z.string().describe('When the recorded query was created'),
    user: z.string().optional(),
    hereMs: z.number().optional().describe('From the POST to the last page'),
    thereMs: z.number().optional(),
    thereQueryId: z.string().optional().describe('The id of the statement on the other server'),
    recordedMs: z.number().optional().describe('The recorded time of the query without its time in the queue'),
    fingerprint: z.string().optional().describe('The shape of the statement, as in `system.history.queries`'),
    app: z.string().optional().describe('The program that sent the recorded statement'),
    rows: z.number().int().optional(),
    byDigest: z
      .literal(true)
      .optional()
      .describe('The baseline did not run the statement: its recorded digest was enough'),
    speed: z
      .object({ kind: z.enum(['slower', 'faster']), hereMs: z.number(), thereMs: z.number(), runs: z.number().int() })
      .optional()
      .describe('With `--repeat`: the other server is slower or faster by more than noise; times are medians'),
    examples: z
      .array(z.object({ side: z.enum(['here', 'there']), row: z.array(z.string().nullable()).readonly() }))
      .optional()
      .describe('With `--rows`: rows that only one side has'),
    sql: z.string().optional().describe('With `--rows`'),
  }),
  verdictSchema,
)
export type ReplayLine = z.infer<typeof replayLineSchema>

export type VerdictName = ReplayVerdict['verdict']
/** How many statements got each verdict. Verdicts without any are absent. */
export type VerdictCounts = Readonly<Partial<Record<VerdictName, number>>>
