import { z } from 'zod'

/** Why a recorded statement is not run again. */
export const skipReasons = {
  write: 'it changes something',
  notAQuery: 'it is no query: it shows or sets something of the server',
  notAnalysed: 'it was never analysed, so nobody knows what it does',
  secrets: 'secrets were taken out of its text',
  forgotten: 'its data was taken out of the log',
  noPlan: 'its plan is not in the record, or not to be had there',
} as const
const skipReasonSchema = z.enum(Object.keys(skipReasons) as [keyof typeof skipReasons])
export type SkipReason = z.infer<typeof skipReasonSchema>

/** Why two runs may rightly differ. */
const chanceSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('repeated') }).describe('The baseline itself answered otherwise the second time'),
  z
    .object({ kind: z.literal('tie') })
    .describe('Rows beyond a LIMIT are equal in what is ordered by to the last within'),
  z.object({ kind: z.literal('limit') }).describe('A LIMIT without an order takes any of more rows'),
  z.object({ kind: z.literal('functions'), names: z.array(z.string()) }).describe('It calls what may answer otherwise'),
  z.object({ kind: z.literal('clock'), names: z.array(z.string()) }).describe('It asks what time it is'),
  z.object({ kind: z.literal('server'), names: z.array(z.string()) }).describe('It asks a server about itself'),
])
export type Chance = z.infer<typeof chanceSchema>

/** Where two results differ. Columns are counted from 0. */
const differenceSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('columns'), here: z.array(z.string()), there: z.array(z.string()) }),
  z.object({ kind: z.literal('rows'), here: z.number().int(), there: z.number().int() }),
  z
    .object({ kind: z.literal('values'), columns: z.array(z.number().int()), names: z.array(z.string()) })
    .describe('No columns: each holds the same values, in other rows'),
  z
    .object({ kind: z.literal('floating'), columns: z.array(z.number().int()), names: z.array(z.string()) })
    .describe('Beyond what another order of additions makes'),
  z
    .object({ kind: z.literal('plan'), here: z.array(z.string()), there: z.array(z.string()) })
    .describe('With `--plan`: the nodes of the recorded plan and of the other, a line each'),
])
export type Difference = z.infer<typeof differenceSchema>

const replayErrorSchema = z.object({ name: z.string(), message: z.string() })
export type ReplayError = Readonly<z.infer<typeof replayErrorSchema>>

/** The verdict on a statement that was run again. A closed list, because programs read it. */
export const verdictSchema = z.discriminatedUnion('verdict', [
  z.object({ verdict: z.literal('SAME') }),
  z.object({ verdict: z.literal('SAME_OTHER_ORDER') }),
  z.object({ verdict: z.literal('DIFFERENT'), difference: differenceSchema }),
  z.object({ verdict: z.literal('NON_DETERMINISTIC'), chance: chanceSchema, difference: differenceSchema }),
  z.object({ verdict: z.literal('DATA_MOVED'), tables: z.array(z.string()), difference: differenceSchema }),
  z.object({ verdict: z.literal('FAILED_THERE'), there: replayErrorSchema }),
  z.object({ verdict: z.literal('FAILED_HERE'), here: replayErrorSchema }),
  z.object({ verdict: z.literal('FAILED_BOTH'), here: replayErrorSchema, there: replayErrorSchema }),
  z.object({ verdict: z.literal('SKIPPED'), reason: skipReasonSchema }),
])
export type ReplayVerdict = z.infer<typeof verdictSchema>
