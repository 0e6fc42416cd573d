import { setMaxListeners } from 'node:events'
import type { ReplayBeginning } from '../protocol/replay/replay-report.ts'
import { listSampled, listWhere } from '../replay/listed-in-history.ts'
import { differentIn, type ReplayLine } from '../replay/replay-line.ts'
import { planReplay } from '../replay/replay-plan.ts'
import { DigestComparison } from '../replay/digest-comparison.ts'
import { listQueries, readDigest, readStatement, type Get } from '../replay/replay-source.ts'
import { replay } from '../replay/replay.ts'
import { openScratch } from '../replay/scratch-results.ts'
import { createTally, type Tally } from '../replay/tally.ts'
import { parseReplayFlags, REPLAY_USAGE, type ReplayFlags } from './replay-flags.ts'
import { beginRecord } from './replay-record.ts'
import { coverageText, replayText, writeReports } from './replay-reports.ts'
import { createReplayServer, getterOf, inSqlOf, SAME_NAMES } from './replay-servers.ts'
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
    process.stdout.write(replayText(tally))
    writeReports(options, { from: options.baseline.url, to: options.against.url }, tally)
    if (stopping.signal.aborted) {
      process.stderr.write('quipu: the replay was stopped; run it again with the same --json to continue\n')
      return EXIT_COULD_NOT_RUN
    }
    return differentIn(tally.counts) > 0 ? EXIT_DIFFERENT : 0
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
    const listed = listedBy(options, get, signal)
    const plan = await planReplay(scratch.connection, listed, counted(lines.before(), tally), options.fingerprints)
    if (plan.coverage) process.stdout.write(coverageText(plan.coverage))
    if (plan.size === 0) return
    const record = await beginRecord(server, beginningOf(options, plan.size))
    const progress = createProgress(plan.size)
    const replaying = replay(plan, {
      sides: {
        here: createReplayServer(baseline, options, SAME_NAMES, signal),
        there: createReplayServer(against, options, options, signal),
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

/** The queries that the flags select. A sample of fingerprints needs figures of the history. */
function listedBy({ server, filter, fingerprints }: ReplayFlags, get: Get, signal: AbortSignal) {
  const ask = inSqlOf(server, signal)
  if (fingerprints) return listSampled(ask, filter)
  return filter.where === undefined ? listQueries(get, filter) : listWhere(ask, filter.where, filter)
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
