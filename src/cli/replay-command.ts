import type { ReplayBeginning } from '../protocol/replay/replay-report.ts'
import { listSampled, listWhere } from '../replay/listed-in-history.ts'
import { differentIn } from '../replay/bad-verdicts.ts'
import type { ReplayLine } from '../replay/replay-line.ts'
import { planReplay } from '../replay/replay-plan.ts'
import { DigestComparison } from '../replay/digest-comparison.ts'
import { listQueries, readDigest, readStatement, type Get } from '../replay/replay-source.ts'
import { replay } from '../replay/replay.ts'
import { createTally, type Tally } from '../replay/tally.ts'
import { EXIT_COULD_NOT_RUN, EXIT_DIFFERENT, runComparing, type ComparingDeps } from './comparing-command.ts'
import { parseReplayFlags, REPLAY_USAGE, type ReplayFlags } from './replay-flags.ts'
import { beginRecord } from './replay-record.ts'
import { coverageText, replayText, writeReports } from './replay-reports.ts'
import { createReplayServer, getterOf, inSqlOf, SAME_NAMES } from './replay-servers.ts'

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
  const { server, baseline, against } = options
  return runComparing(options.json, [server, baseline, against], async (deps) => {
    const tally = createTally()
    await run(options, tally, deps)
    process.stdout.write(replayText(tally))
    writeReports(options, { from: baseline.url, to: against.url }, tally)
    if (deps.stopping.aborted) {
      process.stderr.write('quipu: the replay was stopped; run it again with the same --json to continue\n')
      return EXIT_COULD_NOT_RUN
    }
    return differentIn(tally.counts) > 0 ? EXIT_DIFFERENT : 0
  })
}

async function run(
  options: ReplayFlags,
  tally: Tally,
  { scratch, lines, stopping: signal }: ComparingDeps,
): Promise<void> {
  const { server, baseline, against } = options
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
