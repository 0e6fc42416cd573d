import { parseArgs } from 'node:util'
import { z } from 'zod'
import { REPLAY_SOURCE } from '../replay/replay-source.ts'
import { durationMillis } from '../shared/quantities.ts'
import { callServer, type CalledServer } from './called-server.ts'
import { wrongFlags } from './command-flags.ts'
import {
  checkedValues,
  comparingFlags,
  comparingOptions,
  envOf,
  sampleSchema,
  type ComparingFlags,
} from './comparing-flags.ts'

export const SHADOW_USAGE = `usage: quipu shadow --to <url> --rate <n>/s [options]

Follows the queries that finish on a server, runs those that only read on a second server too, and says for each whether
the results are equal. The second server is a Quipu or a Trino. The first server is not slowed down: a statement that
finds the queue full is dropped and counted.

  --from <url>          the server with the queries (QUIPU_SERVER; default: http://127.0.0.1:8080, or port QUIPU_PORT)
  --to <url>            the second server; its credentials: QUIPU_AGAINST_PASSWORD or QUIPU_AGAINST_ACCESS_TOKEN
  --user <name>         user of the requests (default: the user of this shell). QUIPU_PASSWORD holds the password, or
                        QUIPU_ACCESS_TOKEN a token. The user must be allowed to view the queries of others
  --ca <file>           certificates (PEM) to verify the servers with (QUIPU_TLS_CA_FILE; default: public authorities)
  --rate <n>/s          at most this many statements begin in a second; may be a fraction, such as 0.5/s
  --sample <share>      only this share of the statements, such as 10% or 0.1
  --duration <time>     ends after this time, such as 90s, 30m or 8h (default: runs until it is interrupted)
  --baseline-rate <n>/s if digests do not prove that results are equal, the statement runs on the first server again;
                        at most this many in a second (default: 1/s; 0/s: never)
  --queue <n>           at most this many statements wait (default: 1000)
  --concurrency <n>     statements that run at the same time (default: 4)
  --of-user <name>      only statements of this user
  --source <name>       only statements of this program
  --as-recorded         runs each statement as the user who posted it; the second server must let you impersonate them
  --user-map <a=b>      runs statements of user a as user b on the second server; can be repeated
  --session <k=v>       sets a session property instead of its recorded value; can be repeated
  --catalog-map <a=b>   uses catalog b on the second server for catalog a; can be repeated
  --statement-timeout <time>  a statement that takes longer on a server counts as failed there (default: 10m)
  --after <id>          begins after this event of the log ("beginning": with the first event; default: from now on)
  --json <file>         writes a line for each statement; continues an earlier shadow with the same file, from its position
                        in <file>.position
  --report <file>       writes a page of HTML in one file
  --summary <file>      writes totals by verdict, fingerprint, program and user as JSON
  --metrics <file>      writes metrics for the textfile collector of Prometheus' node exporter, every 10 seconds
  --rows                adds the texts of statements, and the rows that differ, to the files

Exit code 0: nothing is different. 1: something is different. 2: the shadow could not run.
`

/** The options of `quipu shadow`. */
export interface ShadowFlags extends ComparingFlags {
  readonly from: CalledServer
  readonly to: CalledServer
  /** Statements in a second. */
  readonly rate: number
  readonly baselineRate: number
  readonly sample: number | undefined
  readonly durationMs: number | undefined
  readonly queue: number
  readonly concurrency: number
  readonly user: string | undefined
  readonly source: string | undefined
  readonly statementTimeoutMs: number
  readonly after: string | undefined
  readonly metrics: string | undefined
}

const text = { type: 'string' } as const
const flags = {
  ...comparingFlags,
  from: text,
  to: text,
  user: text,
  ca: text,
  rate: text,
  duration: text,
  'baseline-rate': text,
  queue: text,
  after: text,
  metrics: text,
} as const

const rate = z
  .string('must be a rate such as 5/s')
  .regex(/^\d{1,6}(\.\d+)?\/s$/, 'must be a rate such as 5/s')
  .transform((each) => Number.parseFloat(each))
const duration = z.string().transform((time, context) => {
  const millis = durationMillis(time)
  if (millis !== undefined && millis > 0) return millis
  context.addIssue('must be a time such as 90s, 30m or 8h')
  return z.NEVER
})
const values = z.object({
  rate: rate.refine((each) => each > 0, 'must be above 0/s'),
  'baseline-rate': rate.default(1),
  sample: sampleSchema.optional(),
  duration: duration.optional(),
  'statement-timeout': duration.default(600_000),
  queue: z.coerce.number('must be a number').int().min(1).max(100_000).default(1000),
  concurrency: z.coerce.number('must be a number').int().min(1).max(64).default(4),
})

/** Parses the flags; undefined if the user asked for help. @throws ExitError 64 */
export function parseShadowFlags(argv: readonly string[]): ShadowFlags | undefined {
  try {
    const { values: given } = parseArgs({ args: [...argv], options: flags })
    if (given.help) return undefined
    if (given.to === undefined) throw new Error('--to is missing: quipu shadow --to <url> --rate <n>/s')
    const parsed = checkedValues(values, given)
    if (given.source === REPLAY_SOURCE) throw new Error(`--source ${REPLAY_SOURCE}: a shadow does not mirror replays`)
    const { rate, sample, queue, concurrency } = parsed
    return {
      from: callServer({ ...given, server: given.from }),
      to: callServer({ ...given, server: given.to }, envOf('AGAINST')),
      rate,
      baselineRate: parsed['baseline-rate'],
      sample,
      durationMs: parsed.duration,
      queue,
      concurrency,
      user: given['of-user'],
      source: given.source,
      statementTimeoutMs: parsed['statement-timeout'],
      after: given.after,
      metrics: given.metrics,
      ...comparingOptions(given),
    }
  } catch (error) {
    throw wrongFlags(error, 'quipu shadow')
  }
}
