import type { parseArgs } from 'node:util'
import { z } from 'zod'
import type { CatalogMap } from '../replay/replayed-text.ts'

/** The options that `quipu replay` and `quipu shadow` parse in the same way. */
export interface ComparingFlags {
  readonly session: Readonly<Record<string, string>>
  readonly catalogs: CatalogMap
  readonly asRecorded: boolean
  /** The names of users on the other server. */
  readonly users: ReadonlyMap<string, string>
  readonly json: string | undefined
  readonly report: string | undefined
  readonly summary: string | undefined
  readonly rows: boolean
}

const text = { type: 'string' } as const
const several = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const

/** The flags that both commands have, for `parseArgs`. */
export const comparingFlags = {
  'of-user': text,
  source: text,
  sample: text,
  'as-recorded': flag,
  'user-map': several,
  session: several,
  'catalog-map': several,
  concurrency: text,
  'statement-timeout': text,
  json: text,
  report: text,
  summary: text,
  rows: flag,
  help: flag,
} as const

type Given = ReturnType<typeof parseArgs<{ options: typeof comparingFlags }>>['values']

/** @throws Error for a pair that is not `name=value` */
export function comparingOptions(given: Given): ComparingFlags {
  return {
    session: Object.fromEntries(pairsOf('session', given.session)),
    catalogs: new Map(pairsOf('catalog-map', given['catalog-map']).map(([a, b]) => [a.toLowerCase(), b])),
    asRecorded: given['as-recorded'] ?? false,
    users: new Map(pairsOf('user-map', given['user-map'])),
    json: given.json,
    report: given.report,
    summary: given.summary,
    rows: given.rows ?? false,
  }
}

/** The pairs `name=value` of a flag. */
function pairsOf(name: string, given: readonly string[] = []): readonly (readonly [string, string])[] {
  return given.map((pair) => {
    const at = pair.indexOf('=')
    if (at <= 0) throw new Error(`--${name} ${pair}: must be name=value`)
    return [pair.slice(0, at), pair.slice(at + 1)]
  })
}

/** A share of all statements: `5%` or `0.05`. */
export const sampleSchema = z
  .string()
  .regex(/^(\d{1,3}(\.\d+)?%|0?\.\d+|1\.0)$/, 'must be a percentage such as 5%')
  .transform((share) => Number.parseFloat(share) / (share.endsWith('%') ? 100 : 1))

/** Parses the values of flags. @throws Error that names the first wrong flag */
export function checkedValues<T>(schema: z.ZodType<T>, given: Readonly<Record<string, unknown>>): T {
  const parsed = schema.safeParse(given)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new Error(`--${String(issue?.path[0])} ${issue?.message}`)
}

/** The variables for another server: it gets its own credentials, and none of this server's. */
export function envOf(side: 'BASELINE' | 'AGAINST'): NodeJS.ProcessEnv {
  const { [`QUIPU_${side}_PASSWORD`]: password, [`QUIPU_${side}_ACCESS_TOKEN`]: token } = process.env
  return { ...process.env, QUIPU_PASSWORD: password, QUIPU_ACCESS_TOKEN: token }
}
