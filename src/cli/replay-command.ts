import { setMaxListeners } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import type { ReplayBeginning } from '../protocol/replay/replay-report.ts'
import { listWhere } from '../replay/listed-in-history.ts'
import { anyDifferent, type ReplayLine } from '../replay/replay-line.ts'
import { planReplay } from '../replay/replay-plan.ts'
import { DigestComparison } from '../replay/digest-comparison.ts'
import { listQueries, readDigest, readStatement, type Get } from '../replay/replay-source.ts'
import { replay } from '../replay/replay.ts'
import { reportPage } from '../replay/report-page.ts'
import { openScratch } from '../replay/scratch-results.ts'
import { createTally, type Tally } from '../replay/tally.ts'
import { parseReplayFlags, REPLAY_USAGE, type ReplayFlags } from './replay-flags.ts'
import { beginRecord } from './replay-record.ts'
import { createReplayServer, getterOf, inSqlOf } from './replay-servers.ts'
import { makeScratchFolder } from './scratch-folder.ts'
import { openVerdictFile } from './verdict-file.ts'

const EXIT_DIFFERENT = 1
const EXIT_COULD_NOT_RUN = 2

/**
 * `quipu replay`: runs recorded statements on two servers and prints a verdict for each.
 * @returns the exit code
 */
export async function replayCommand(argv: readonly string[]): Promise<number> {
  const options = parseReplayFlags(argv)
  if (options === undefined) {
    process.stdout.write(REPLAY_USAGE)
    return 0
  }
  const stopping = new AbortController()
  // Every request in progress listens to this signal.
  setMaxListeners(0, stopping.signal)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
  const folder = makeScratchFolder()
  try {
    const tally = createTally()
    await run(options, tally, folder.path, stopping.signal)
    process.stdout.write(summary(tally))
    if (options.report !== undefined) writeReport(options, tally)
    if (stopping.signal.aborted) {
      process.stderr.write('quipu: the replay was stopped; run it again with the same --json to continue\n')
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
    const get = getterOf(server, signal)
    const { filter } = options
    const listed =
      filter.where === undefined ? listQueries(get, filter) : listWhere(inSqlOf(server, signal), filter.where, filter)
    const plan = await planReplay(scratch.connection, listed, counted(lines.before(), tally))
    if (plan.size === 0) return
    const record = await beginRecord(server, beginningOf(options, plan.size))
    const progress = createProgress(plan.size)
    const replaying = replay(plan, {
      sides: {
        here: createReplayServer(baseline, options, new Map(), signal),
        there: createReplayServer(against, options, options.catalogs, signal),
        scratch,
        catalogs: options.catalogs,
        signal,
        digests: digestsOf(options, get),
        repeat: options.repeat,
      },
      mode: options.mode,
      read: (queryId) => readStatement(get, queryId),
      concurrency: options.concurrency,
      speed: options.speed,
      rows: options.rows,
      onLine: (line) => {
        lines.write(line)
        tally.add(line)
        progress.step(line.queryId, line.verdict)
        record.progress(tally.counts)
      },
    })
    const failed = await replaying.then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    progress.end()
    const outcome = failed ? 'failed' : signal.aborted ? 'stopped' : 'completed'
    await record.end(tally.counts, outcome).catch((error: Error) => process.stderr.write(`quipu: ${error.message}\n`))
    if (failed) throw failed.error
  } finally {
    lines.close()
    scratch.close()
    for (const one of new Set([server, baseline, against])) one.http.close()
  }
}

/** Digests of the record. They say nothing about another baseline, nor about the time that a run takes. */
function digestsOf({ server, baseline, repeat }: ReplayFlags, get: Get): DigestComparison | undefined {
  if (baseline !== server || repeat > 0) return undefined
  return new DigestComparison((queryId) => readDigest(get, queryId))
}

function beginningOf(
  { mode, baseline, against, filter, asRecorded }: ReplayFlags,
  statements: number,
): ReplayBeginning {
  const { queryIds, ...rest } = filter
  return {
    mode,
    baseline: new URL(baseline.url).origin,
    against: new URL(against.url).origin,
    statements,
    asRecorded,
    filter: { ...rest, ...(queryIds && { queries: queryIds.length }) },
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
  // A user who could read an existing file could read this one too.
  rmSync(report, { force: true })
  writeFileSync(report, page, { mode: 0o600, flag: 'wx' })
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

function summary({ counts, speeds: { slower, faster } }: Tally): string {
  const timed = { 'slower there': slower, 'faster there': faster }
  const all = [...Object.entries(counts), ...Object.entries(timed).filter(([, count]) => count > 0)]
  if (all.length === 0) return 'No statement was replayed\n'
  const width = Math.max(...all.map(([name]) => name.length))
  return `${all.map(([name, count]) => `${name.padEnd(width)}  ${count}`).join('\n')}\n`
}
