import { z } from 'zod'
import { isStorableName } from '../../shared/stored-name.ts'

/**
 * Whether a text can be stored everywhere: without U+0000, which the database does not allow, and without lone
 * surrogates.
 */
const isText = (text: string): boolean => !text.includes('\0') && !/\p{Cs}/u.test(text)
const name = z.string().refine((text) => isText(text) && isStorableName(text), 'is not a valid name')
const time = z.iso.datetime({ offset: true })

/** Keeps only the origin of an address: passwords and tokens may be in the rest. */
const origin = z
  .url({ protocol: /^https?$/ })
  .max(2000)
  .transform((url) => new URL(url).origin)

const LONGEST_CONDITION = 4096
/** The recorded length of a condition; the record is kept for ever. */
const RECORDED_CONDITION = 512
const shortened = (text: string): string =>
  text.length <= RECORDED_CONDITION ? text : `${text.slice(0, RECORDED_CONDITION - 1).replace(/\p{Cs}$/u, '')}…`

/** Body of `POST /v1/replay`. */
export const replayBeginningSchema = z.strictObject({
  mode: z.enum(['run', 'plan', 'shadow']),
  baseline: origin,
  against: origin,
  statements: z.number().int().min(0),
  asRecorded: z.boolean(),
  filter: z.strictObject({
    since: time.optional(),
    until: time.optional(),
    user: name.optional(),
    source: name.optional(),
    where: z.string().max(LONGEST_CONDITION).refine(isText, 'is not valid text').transform(shortened).optional(),
    sample: z.number().min(0).max(1).optional(),
    queries: z.number().int().min(0).optional(),
  }),
})

const MOST_VERDICTS = 32

/** Body of `PUT /v1/replay/{replayId}`: all verdicts so far, and at its end the outcome. */
export const replayReportSchema = z.strictObject({
  verdicts: z
    .record(z.string().regex(/^[A-Z][A-Z_]{0,31}$/), z.number().int().min(0))
    .refine((counts) => Object.keys(counts).length <= MOST_VERDICTS, 'are too many verdicts'),
  outcome: z.enum(['completed', 'stopped', 'failed']).optional(),
})

export type ReplayBeginning = z.input<typeof replayBeginningSchema>
export type ReplayReport = Readonly<z.infer<typeof replayReportSchema>>
