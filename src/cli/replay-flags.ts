import { parseArgs } from 'node:util'
import { z } from 'zod'
import { parseCondition } from '../replay/listed-in-history.ts'
import type { ReplayFilter } from '../replay/replay-source.ts'
import type { CatalogMap } from '../replay/replayed-text.ts'
import { callServer, SERVER_USAGE, serverFlags, type CalledServer } from './called-server.ts'
import { wrongFlags } from './command-flags.ts'

export const REPLAY_USAGE = `usage: quipu replay --against <url> [options]

Runs statements of the record again, here and on another server, a Quipu or a Trino, and says of each whether the results
are the same. Only what was recorded to read is run.

${SERVER_USAGE}
  --against <url>       the other server; QUIPU_AGAINST_PASSWORD or QUIPU_AGAINST_ACCESS_TOKEN for it
  --baseline <url>      the server that is proven good (default: --server); QUIPU_BASELINE_PASSWORD or
                        QUIPU_BASELINE_ACCESS_TOKEN for it
  --since, --until <t>  statements posted from then on, and before then (ISO 8601)
  --of-user <name>      statements of this user
  --source <name>       statements of this program
  --query <id,…>        these queries
  --where <SQL>         those of which this is true, a condition over the columns of system.history.queries
  --sample <n%>         so many of them, the same each time
  --as-recorded         each as the user who posted it: who replays must be allowed to act as they
  --session <k=v>       a session property in place of what was recorded; may come several times
  --catalog-map <a=b>   what is catalog a in the record is b there; may come several times
  --concurrency <n>     statements under way at once (default: 1)
  --speed <n>x, max     as fast as they came, twice as fast (2x), or as fast as it can (default: max)
  --statement-timeout <seconds>  one that takes longer on a server has failed there (default: 3600)
  --repeat <n>          where results are the same, each side n times more (3 or more), and said is who is slower or
                        faster beyond noise
  --plan                no statement is run: plans of the record are compared with those that the other server makes
  --json <file>         a line a statement; begun before, it goes on there
  --report <file>       a page of HTML that needs nothing else
  --rows                with texts, and rows that differ

Exit code 0 when nothing is different, 1 when something is, 2 when it could not run.
`

/** The options of `quipu replay`. */
export interface ReplayFlags {
  readonly server: CalledServer
  readonly baseline: CalledServer
  readonly against: CalledServer
  readonly filter: ReplayFilter
  readonly session: Readonly<Record<string, string>>
  readonly catalogs: CatalogMap
  readonly asRecorded: boolean
  readonly concurrency: number
  readonly speed: number | undefined
  readonly statementTimeoutMs: number
  /** How often each side is timed; 0: not at all. */
  readonly repeat: number
  readonly mode: 'run' | 'plan'
  readonly json: string | undefined
  readonly report: string | undefined
  readonly rows: boolean
}

const text = { type: 'string' } as const
const several = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const
const flags = {
  ...serverFlags,
  against: text,
  baseline: text,
  since: text,
  until: text,
  'of-user': text,
  source: text,
  query: text,
  where: text,
  sample: text,
  'as-recorded': flag,
  session: several,
  'catalog-map': several,
  concurrency: text,
  speed: text,
  'statement-timeout': text,
  repeat: text,
  plan: flag,
  json: text,
  report: text,
  rows: flag,
  help: flag,
} as const

const time = z.iso.datetime({ offset: true, error: 'is no time such as 2026-05-01T00:00:00Z' })
const values = z.object({
  since: time.optional(),
  until: time.optional(),
  sample: z
    .string()
    .regex(/^\d{1,3}(\.\d+)?%$/, 'is no share such as 5%')
    .transform((percent) => Number.parseFloat(percent) / 100)
    .optional(),
  concurrency: z.coerce.number('is no number').int().min(1).max(64).default(1),
  'statement-timeout': z.coerce.number('is no number').min(0.001).max(1_000_000).default(3_600),
  repeat: z.coerce.number('is no number').int().min(3).max(1000).optional(),
  speed: z
    .string()
    .regex(/^(max|\d+(\.\d+)?x)$/, 'is neither max nor a speed such as 1x')
    .default('max')
    .transform((speed) => (speed === 'max' ? undefined : Number.parseFloat(speed)))
    .refine((speed) => speed !== 0, 'is no speed at all'),
})

/** Parses the flags; undefined if the user asked for help. @throws ExitError 64 */
export function parseReplayFlags(argv: readonly string[]): ReplayFlags | undefined {
  try {
    const { values: given } = parseArgs({ args: [...argv], options: flags })
    if (given.help) return undefined
    if (given.against === undefined) throw new Error('Against which server? quipu replay --against <url>')
    const parsed = values.safeParse(given)
    if (!parsed.success) {
      const [issue] = parsed.error.issues
      throw new Error(`--${String(issue?.path[0])} ${issue?.message}`)
    }
    if (given.query !== undefined && given.where !== undefined) throw new Error('Either --query or --where')
    if (given.where !== undefined) parseCondition(given.where)
    const { since, until, sample, concurrency, speed, repeat = 0 } = parsed.data
    const server = callServer(given)
    return {
      server,
      baseline:
        given.baseline === undefined ? server : callServer({ ...given, server: given.baseline }, envOf('BASELINE')),
      against: callServer({ ...given, server: given.against }, envOf('AGAINST')),
      filter: {
        since,
        until,
        sample,
        user: given['of-user'],
        source: given.source,
        where: given.where,
        queryIds: given.query?.split(',').map((id) => id.trim()),
      },
      session: Object.fromEntries(pairsOf('session', given.session)),
      catalogs: new Map(pairsOf('catalog-map', given['catalog-map']).map(([a, b]) => [a.toLowerCase(), b])),
      asRecorded: given['as-recorded'] ?? false,
      concurrency,
      speed,
      statementTimeoutMs: parsed.data['statement-timeout'] * 1_000,
      repeat,
      mode: given.plan ? 'plan' : 'run',
      json: given.json,
      report: given.report,
      rows: given.rows ?? false,
    }
  } catch (error) {
    throw wrongFlags(error, 'quipu replay')
  }
}

/** The variables for another server: it gets its own credentials, and none of this server's. */
function envOf(side: 'BASELINE' | 'AGAINST'): NodeJS.ProcessEnv {
  const { [`QUIPU_${side}_PASSWORD`]: password, [`QUIPU_${side}_ACCESS_TOKEN`]: token } = process.env
  return { ...process.env, QUIPU_PASSWORD: password, QUIPU_ACCESS_TOKEN: token }
}

function pairsOf(name: string, given: readonly string[] = []): readonly (readonly [string, string])[] {
  return given.map((pair) => {
    const at = pair.indexOf('=')
    if (at <= 0) throw new Error(`--${name} ${pair} is not name=value`)
    return [pair.slice(0, at), pair.slice(at + 1)]
  })
}
