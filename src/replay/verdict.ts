import { z } from 'zod'
import { skipReasons } from './skip-reasons.ts'

const skipReasonSchema = z.enum(Object.keys(skipReasons) as [keyof typeof skipReasons])
export type SkipReason = z.infer<typeof skipReasonSchema>

/** Why two runs may rightly differ. */
const chanceSchema = z.discriminatedUnion('kind', [
  z
    .object({ kind: z.literal('repeated') })
    .describe('The baseline gave another answer when it ran the statement a second time'),
  z
    .object({ kind: z.literal('tie') })
    .describe('Rows after the LIMIT have the same sort values as the last row within it'),
  z.object({ kind: z.literal('limit') }).describe('A LIMIT without an order may choose any rows'),
  z
    .object({ kind: z.literal('functions'), names: z.array(z.string()) })
    .describe('The statement calls functions that may give another answer each time'),
  z.object({ kind: z.literal('clock'), names: z.array(z.string()) }).describe('The statement reads the clock'),
  z
    .object({ kind: z.literal('server'), names: z.array(z.string()) })
    .describe('The statement reads data about the server itself'),
])
export type Chance = z.infer<typeof chanceSchema>

/** Where two results differ. Columns are counted from 0. */
const differenceSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('columns'), here: z.array(z.string()), there: z.array(z.string()) }),
  z.object({ kind: z.literal('rows'), here: z.number().int(), there: z.number().int() }),
  z
    .object({ kind: z.literal('values'), columns: z.array(z.number().int()), names: z.array(z.string()) })
    .describe('If there are no columns: each column has the same values, but in other rows'),
  z
    .object({ kind: z.literal('floating'), columns: z.array(z.number().int()), names: z.array(z.string()) })
    .describe('The numbers differ by more than another order of additions can explain'),
  z
    .object({ kind: z.literal('plan'), here: z.array(z.string()), there: z.array(z.string()) })
    .describe('With `--plan`: the nodes of the recorded plan and of the other plan, one on each line'),
  z
    .object({ kind: z.literal('digest'), here: z.number().int(), there: z.number().int() })
    .describe('The digests of the results differ; with the numbers of rows. The rows were not compared'),
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
  z
    .object({
      verdict: z.literal('UNCONFIRMED'),
      difference: differenceSchema.optional(),
      there: replayErrorSchema.optional(),
    })
    .describe('The recorded digest does not prove that the results are the same, and the baseline did not run'),
  z.object({ verdict: z.literal('SKIPPED'), reason: skipReasonSchema }),
])
export type ReplayVerdict = z.infer<typeof verdictSchema>
