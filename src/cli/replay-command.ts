import { rmSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { anyDifferent, type ReplayLine, type VerdictCounts } from '../replay/replay-line.ts'
import { reportPage } from '../replay/report-page.ts'
import { createTally, type Tally } from '../replay/tally.ts'
import { planReplay } from '../replay/replay-plan.ts'
import { listQueries, readSnapshots, readStatement, type Get, type ReplayFilter } from '../replay/replay-source.ts'
import type { ReplayServer } from '../replay/replay-statement.ts'
import { replay } from '../replay/replay.ts'
import { withCatalogs, type CatalogMap } from '../replay/replayed-text.ts'
import { openScratch } from '../replay/scratch-results.ts'
import { headersOf } from '../replay/session-of.ts'
import type { RecordedStatement } from '../replay/recorded-statement.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { askServer } from '../shared/http-client.ts'
import { callServer, SERVER_USAGE, serverFlags, type CalledServer } from './called-server.ts'
import { makeScratchFolder } from './scratch-folder.ts'
import { openVerdictFile } from './verdict-file.ts'
import { reasonOf, runStatement } from './statement-client.ts'

const USAGE = `usage: quipu replay --against <url> [options]

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
  --sample <n%>         so many of them, the same each time
  --as-recorded         each as the user who posted it: who replays must be allowed to act as they
  --session <k=v>       a session property in place of what was recorded; may come several times
  --catalog-map <a=b>   what is catalog a in the record is b there; may come several times
  --concurrency <n>     statements under way at once (default: 1)
  --speed <n>x, max     as fast as they came, twice as fast (2x), or as fast as it can (default: max)
  --json <file>         a line a statement; begun before, it goes on there
  --report <file>       a page of HTML that needs nothing else
  --rows                with texts, and rows that differ

Exit code 0 when nothing is different, 1 when something is, 2 when it could not run.
`

const EXIT_DIFFERENT = 1
const EXIT_COULD_NOT_RUN = 2

/**
 * `quipu replay`: statements of the record on two servers, with a verdict each.
 * @returns the exit code
 */
export async function replayCommand(argv: readonly string[]): Promise<number> {
  const options = parse(argv)
  if (options === undefined) {
    process.stdout.write(USAGE)
    return 0
  }
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
  const folder = makeScratchFolder()
  try {
    const tally = createTally()
    await run(options, tally, folder.path, stopping.signal)
    process.stdout.write(summary(tally.counts))
    if (options.report !== undefined) writeReport(options, tally)
    if (stopping.signal.aborted) {
      process.stderr.write('quipu: stopped before its end; with the same --json it goes on\n')
      return EXIT_COULD_NOT_RUN
    }
    return anyDifferent(tally.counts) ? EXIT_DIFFERENT : 0
  } catch (error) {
    process.stderr.write(`quipu: ${(error as Error).message}\n`)
    return EXIT_COULD_NOT_RUN
  } finally {
    folder.remove()
  }
}

async function run(options: ReplayFlags, tally: Tally, folder: string, signal: AbortSignal): Promise<void> {
  const { server, baseline, against } = options
  const scratch = await openScratch(folder)
  const lines = openVerdictFile(options.json)
  try {
    const get = getter(server, signal)
    const plan = await planReplay(scratch.connection, listQueries(get, options.filter), counted(lines.before(), tally))
    const progress = createProgress(plan.size)
    await replay(plan, {
      sides: {
        here: createServer(baseline, options, new Map(), signal),
        there: createServer(against, options, options.catalogs, signal),
        scratch,
        signal,
      },
      read: (queryId) => readStatement(get, queryId),
      concurrency: options.concurrency,
      speed: options.speed,
      rows: options.rows,
      onLine: (line) => {
        lines.write(line)
        tally.add(line)
        progress.step(line.queryId, line.verdict)
      },
    })
    progress.end()
  } finally {
    lines.close()
    scratch.close()
    for (const one of new Set([server, baseline, against])) one.http.close()
  }
}

async function* counted(lines: AsyncIterable<ReplayLine>, tally: Tally): AsyncGenerator<ReplayLine> {
  for await (const line of lines) {
    tally.add(line)
    yield line
  }
}

function writeReport({ report = '', baseline, against }: ReplayFlags, tally: Tally): void {
  const page = reportPage({ baseline: baseline.url, against: against.url, at: new Date().toISOString(), tally })
  // Whoever could read the file that lies there could read this one too.
  rmSync(report, { force: true })
  writeFileSync(report, page, { mode: 0o600, flag: 'wx' })
}

function getter(server: CalledServer, signal: AbortSignal): Get {
  return async (target) => {
    const { status, headers, text } = await askServer(server.http, server.url, target, {
      method: 'GET',
      signal,
      headers: {
        accept: 'application/json',
        'X-Engine-User': server.user,
        'X-Engine-Source': 'quipu replay',
        ...server.credentialsFor(server.url),
      },
    }).catch((error: Error) => {
      throw new Error(`Cannot reach ${new URL(server.url).origin}: ${error.message}`)
    })
    if (status !== 200) throw new Error(`${new URL(server.url).origin} answered ${status}: ${reasonOf(text)}`)
    const { link } = headers
    return { text, link: Array.isArray(link) ? link.join(', ') : link }
  }
}

function createServer(
  server: CalledServer,
  options: ReplayFlags,
  catalogs: CatalogMap,
  stopping: AbortSignal,
): ReplayServer {
  const get = getter(server, stopping)
  return {
    snapshots: (queryId) => readSnapshots(get, queryId),
    async *run(sql, statement, signal) {
      const session = sessionThere(statement, options, catalogs)
      const user = options.asRecorded ? statement.session.user : server.user
      const answers = runStatement({
        server,
        sql: withCatalogs(sql, catalogs),
        headers: headersOf(session, user, statement.queryId),
        prefix: 'X-Trino-',
        signal,
      })
      for await (const { id, text, columns, data, error } of answers)
        yield {
          queryId: id,
          text,
          columns,
          hasRows: data !== undefined && data.length > 0,
          error: error && { name: error.errorName, message: error.message },
        }
    },
  }
}

function sessionThere({ session }: RecordedStatement, options: ReplayFlags, catalogs: CatalogMap) {
  const { catalog } = session
  const mapped = catalog === undefined ? undefined : (catalogs.get(catalog.toLowerCase()) ?? catalog)
  const preparedStatements = Object.fromEntries(
    Object.entries(session.preparedStatements).map(([name, sql]) => [name, withCatalogs(sql, catalogs)]),
  )
  return {
    ...session,
    preparedStatements,
    properties: { ...session.properties, ...options.session },
    ...(mapped !== undefined && { catalog: mapped }),
  }
}

interface ReplayFlags {
  readonly server: CalledServer
  readonly baseline: CalledServer
  readonly against: CalledServer
  readonly filter: ReplayFilter
  readonly session: Readonly<Record<string, string>>
  readonly catalogs: CatalogMap
  readonly asRecorded: boolean
  readonly concurrency: number
  readonly speed: number | undefined
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
  sample: text,
  'as-recorded': flag,
  session: several,
  'catalog-map': several,
  concurrency: text,
  speed: text,
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
  speed: z
    .string()
    .regex(/^(max|\d+(\.\d+)?x)$/, 'is neither max nor a speed such as 1x')
    .default('max')
    .transform((speed) => (speed === 'max' ? undefined : Number.parseFloat(speed)))
    .refine((speed) => speed !== 0, 'is no speed at all'),
})

/** Undefined: asked for help. @throws ExitError 64 */
function parse(argv: readonly string[]): ReplayFlags | undefined {
  try {
    const { values: given } = parseArgs({ args: [...argv], options: flags })
    if (given.help) return undefined
    if (given.against === undefined) throw new Error('Against which server? quipu replay --against <url>')
    const parsed = values.safeParse(given)
    if (!parsed.success) {
      const [issue] = parsed.error.issues
      throw new Error(`--${String(issue?.path[0])} ${issue?.message}`)
    }
    const { since, until, sample, concurrency, speed } = parsed.data
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
        queryIds: given.query?.split(',').map((id) => id.trim()),
      },
      session: Object.fromEntries(pairsOf('session', given.session)),
      catalogs: new Map(pairsOf('catalog-map', given['catalog-map']).map(([a, b]) => [a.toLowerCase(), b])),
      asRecorded: given['as-recorded'] ?? false,
      concurrency,
      speed,
      json: given.json,
      report: given.report,
      rows: given.rows ?? false,
    }
  } catch (error) {
    // Of a wrong option Node tells more than helps.
    const [message] = (error as Error).message.split(/\. (?=To )/)
    throw new ExitError(exitCodes.configuration, `${message}; see quipu replay --help`)
  }
}

/** What another server is asked with is its own: nothing of this one's is sent there. */
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

function createProgress(size: number) {
  const live = process.stderr.isTTY === true
  let done = 0
  return {
    step(queryId: string, verdict: string) {
      done++
      if (live) process.stderr.write(`\r\u001b[K${done}/${size} ${queryId} ${verdict}`)
    },
    end() {
      if (live) process.stderr.write('\r\u001b[K')
    },
  }
}

function summary(counts: VerdictCounts): string {
  const all = Object.entries(counts)
  if (all.length === 0) return 'No statement was replayed\n'
  const width = Math.max(...all.map(([name]) => name.length))
  return `${all.map(([name, count]) => `${name.padEnd(width)}  ${count}`).join('\n')}\n`
}
