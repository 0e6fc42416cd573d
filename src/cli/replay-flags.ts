import { parseArgs } from 'node:util'
import { z } from 'zod'
import { parseCondition } from '../replay/listed-in-history.ts'
import type { FingerprintSample } from '../replay/replay-plan.ts'
import type { ReplayFilter } from '../replay/replay-source.ts'
import { callServer, SERVER_USAGE, serverFlags, type CalledServer } from './called-server.ts'
import { wrongFlags } from './command-flags.ts'
import {
  checkedValues,
  comparingFlags,
  comparingOptions,
  envOf,
  sampleSchema,
  type ComparingFlags,
} from './comparing-flags.ts'

export const REPLAY_USAGE = `usage: quipu replay --against <url> [options]

Runs recorded statements again on two servers and says for each statement whether the results are equal. The other server is
a Quipu or a Trino. Only statements that read are run.

${SERVER_USAGE}
  --against <url>       the other server; its credentials: QUIPU_AGAINST_PASSWORD or QUIPU_AGAINST_ACCESS_TOKEN
  --baseline <url>      the server that is proven good (default: --server); its credentials: QUIPU_BASELINE_PASSWORD or
                        QUIPU_BASELINE_ACCESS_TOKEN
  --since, --until <t>  only statements posted at or after, and before, this time (ISO 8601)
  --of-user <name>      only statements of this user
  --source <name>       only statements of this program
  --query <id,…>        only these queries
  --where <SQL>         only statements for which this condition holds; it uses the columns of system.history.queries
  --sample <n%>         only this share of the statements; each run takes the same ones
  --sample fingerprints, --sample fingerprints:<k>
                        only representatives of each fingerprint, at most k (default: 3): the most expensive statement,
                        the most recent one, the median. The fingerprints with the most CPU come first
  --most <n>            at most n statements of such a sample
  --as-recorded         runs each statement as the user who posted it; the access rules must let you impersonate that user
  --user-map <a=b>      runs statements of user a as user b on the other server; can be repeated
  --session <k=v>       sets a session property instead of its recorded value; can be repeated
  --catalog-map <a=b>   uses catalog b on the other server for catalog a of the record; can be repeated
  --concurrency <n>     statements that run at the same time (default: 1)
  --speed <n>x, max     1x: at the recorded pace; 2x: twice as fast; max: as fast as possible (default: max)
  --statement-timeout <seconds>  a statement that takes longer on a server counts as failed there (default: 3600)
  --repeat <n>          if the results are equal, runs the statement n more times on each side (3 or more), and reports
                        which side is slower by more than noise
  --plan                runs no statement: compares the recorded plans with the plans of the other server
  --json <file>         writes a line for each statement; continues an earlier replay to the same file
  --report <file>       writes a page of HTML in one file
  --summary <file>      writes totals by verdict, fingerprint, program and user as JSON
  --rows                adds the texts of statements, and the rows that differ, to the files

Exit code 0: nothing is different. 1: something is different. 2: the replay could not run.
`

/** The options of `quipu replay`. */
export interface ReplayFlags extends ComparingFlags {
  readonly server: CalledServer
  readonly baseline: CalledServer
  readonly against: CalledServer
  readonly filter: ReplayFilter
  /** Undefined: all statements of the filter. */
  readonly fingerprints: FingerprintSample | undefined
  readonly concurrency: number
  readonly speed: number | undefined
  readonly statementTimeoutMs: number
  /** How often each side is timed; 0: not at all. */
  readonly repeat: number
  readonly mode: 'run' | 'plan'
}

const text = { type: 'string' } as const
const flags = {
  ...serverFlags,
  ...comparingFlags,
  against: text,
  baseline: text,
  since: text,
  until: text,
  query: text,
  where: text,
  most: text,
  speed: text,
  repeat: text,
  plan: { type: 'boolean' },
} as const

const time = z.iso.datetime({ offset: true, error: 'must be a time such as 2026-05-01T00:00:00Z' })
/** For example `fingerprints:3`. */
const fingerprintsSchema = z
  .string()
  .regex(/^fingerprints(:[1-9]\d{0,3})?$/)
  .transform((sample) => ({ each: Number(sample.split(':')[1] ?? 3) }))

const values = z.object({
  since: time.optional(),
  until: time.optional(),
  sample: z.union([fingerprintsSchema, sampleSchema], 'must be a percentage such as 5%, or fingerprints:3').optional(),
  most: z.coerce.number('must be a number').int().min(1).max(10_000_000).optional(),
  concurrency: z.coerce.number('must be a number').int().min(1).max(64).default(1),
  'statement-timeout': z.coerce.number('must be a number').min(0.001).max(1_000_000).default(3_600),
  repeat: z.coerce.number('must be a number').int().min(3).max(1000).optional(),
  speed: z
    .string()
    .regex(/^(max|\d+(\.\d+)?x)$/, 'must be max or a speed such as 1x')
    .default('max')
    .transform((speed) => (speed === 'max' ? undefined : Number.parseFloat(speed)))
    .refine((speed) => speed !== 0, 'must be above 0x'),
})

/** Parses the flags; undefined if the user asked for help. @throws ExitError 64 */
export function parseReplayFlags(argv: readonly string[]): ReplayFlags | undefined {
  try {
    const { values: given } = parseArgs({ args: [...argv], options: flags })
    if (given.help) return undefined
    if (given.against === undefined) throw new Error('--against is missing: quipu replay --against <url>')
    const parsed = checkedValues(values, given)
    if (given.query !== undefined && given.where !== undefined)
      throw new Error('Use either --query or --where, not both')
    if (given.where !== undefined) parseCondition(given.where)
    const { since, until, sample: drawn, most, concurrency, speed, repeat = 0 } = parsed
    const sample = typeof drawn === 'number' ? drawn : undefined
    const fingerprints = typeof drawn === 'object' ? { each: drawn.each, most } : undefined
    if (most !== undefined && !fingerprints) throw new Error('--most needs --sample fingerprints')
    if (fingerprints && (given.query !== undefined || speed !== undefined))
      throw new Error('--sample fingerprints has its own order: leave out --query and --speed')
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
      fingerprints,
      ...comparingOptions(given),
      concurrency,
      speed,
      statementTimeoutMs: parsed['statement-timeout'] * 1_000,
      repeat,
      mode: given.plan ? 'plan' : 'run',
    }
  } catch (error) {
    throw wrongFlags(error, 'quipu replay')
  }
}
