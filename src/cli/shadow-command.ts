import { setMaxListeners } from 'node:events'
import type { QuerySession } from '../coordinator/query/stream/events.ts'
import { clientApp } from '../readmodels/queries/client-app.ts'
import { DigestComparison } from '../replay/digest-comparison.ts'
import { differentIn } from '../replay/bad-verdicts.ts'
import { isMeantSource, readDigest, readSnapshots } from '../replay/replay-source.ts'
import { MirrorQueue, type ShadowPosition } from '../replay/shadow/mirror-queue.ts'
import { RateLimit } from '../replay/shadow/rate-limit.ts'
import { shadow } from '../replay/shadow/shadow.ts'
import { createTally, type Tally } from '../replay/tally.ts'
import type { CalledServer } from './called-server.ts'
import { EXIT_DIFFERENT, runComparing, type ComparingDeps } from './comparing-command.ts'
import { followFinished } from './finished-queries.ts'
import { openPositionFile } from './position-file.ts'
import { beginRecord } from './replay-record.ts'
import { shadowText, writeReports, type ShadowRest } from './replay-reports.ts'
import { createReplayServer, getterOf, SAME_NAMES } from './replay-servers.ts'
import { parseShadowFlags, SHADOW_USAGE, type ShadowFlags } from './shadow-flags.ts'
import { writeShadowMetrics } from './shadow-metrics.ts'
import { answeringAgain, patientGet, readLive, withOwnRuns } from './shadow-servers.ts'
import type { VerdictFile } from './verdict-file.ts'

/** How often the position is saved while no statement begins, milliseconds. */
const SAVED_EACH_MS = 1000
const METRICS_EACH_MS = 10_000

/**
 * `quipu shadow`: mirrors the queries that finish on a server to a second server, and compares the results.
 * @returns the exit code
 */
export async function shadowCommand(argv: readonly string[]): Promise<number> {
  const options = parseShadowFlags(argv)
  if (options === undefined) {
    process.stdout.write(SHADOW_USAGE)
    return 0
  }
  const { from, to } = options
  return runComparing(options.json, [from, to], async (deps) => {
    const { tally, queue } = await run(options, deps)
    const rest = restOf(queue)
    process.stdout.write(shadowText(tally, rest))
    writeReports(options, { from: from.url, to: to.url }, tally, rest)
    return differentIn(tally.counts) > 0 ? EXIT_DIFFERENT : 0
  })
}

interface ShadowRun {
  readonly tally: Tally
  readonly queue: MirrorQueue
}

/** @throws Error with one line if the primary does not record the shadow, or if no statement can run */
async function run(options: ShadowFlags, deps: ComparingDeps): Promise<ShadowRun> {
  const { from, to } = options
  const tally = createTally()
  const origins = { from: new URL(from.url).origin, to: new URL(to.url).origin }
  const file = openPositionFile(options.json === undefined ? undefined : `${options.json}.position`, origins)
  const position = await continued(file.read(), deps.lines, tally)
  const queue = new MirrorQueue(position, options.queue)
  const record = await beginRecord(from, {
    mode: 'shadow',
    baseline: origins.from,
    against: origins.to,
    statements: 0,
    asRecorded: options.asRecorded,
    filter: { user: options.user, source: options.source, sample: options.sample },
  })
  const save = () => file.save(queue.position)
  const measure = () => {
    if (options.metrics !== undefined) writeShadowMetrics(options.metrics, tally, restOf(queue))
  }
  const ticks = [
    setInterval(() => ignoringErrors(save), SAVED_EACH_MS),
    setInterval(() => ignoringErrors(measure), METRICS_EACH_MS),
    setInterval(() => record.progress(tally.counts), METRICS_EACH_MS),
  ]
  const failed = await mirror(options, deps, { tally, queue }, save).then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  for (const tick of ticks) clearInterval(tick)
  save()
  measure()
  const outcome = failed ? 'failed' : deps.stopping.aborted ? 'stopped' : 'completed'
  await record.end(tally.counts, outcome).catch((error: Error) => process.stderr.write(`quipu: ${error.message}\n`))
  if (failed) throw failed.error
  return { tally, queue }
}

/** The position from which a shadow continues, without the queries that have a verdict. Counts earlier verdicts. */
async function continued(position: ShadowPosition, lines: VerdictFile, tally: Tally): Promise<ShadowPosition> {
  const open = new Map(position.open.map((query) => [query.queryId, query]))
  for await (const line of lines.before()) {
    tally.add(line)
    open.delete(line.queryId)
  }
  return { ...position, open: [...open.values()] }
}

/** Follows and mirrors until the duration is over or the user interrupts the command. */
async function mirror(
  options: ShadowFlags,
  { scratch, lines, stopping }: ComparingDeps,
  { tally, queue }: ShadowRun,
  save: () => void,
): Promise<void> {
  const { from, to } = options
  const closing = new AbortController()
  const ending = AbortSignal.any([closing.signal, stopping])
  setMaxListeners(0, closing.signal, ending)
  const get = patientGet(getterOf(from, stopping), stopping)
  const { own, here } = withOwnRuns({
    ...createReplayServer(from, options, SAME_NAMES, stopping),
    // A primary that is away for a moment must not look as if its tables had not changed.
    snapshots: (queryId) => readSnapshots(get, queryId),
  })
  const baseline = options.baselineRate > 0 ? new RateLimit(options.baselineRate) : undefined
  const timer = options.durationMs === undefined ? undefined : setTimeout(() => closing.abort(), options.durationMs)
  const following = followFinished(from, queue, {
    after: queue.position.after ?? options.after,
    sample: options.sample,
    isOwn: (queryId) => own.has(queryId),
    signal: ending,
    onLost: lostOf(from),
  }).finally(() => closing.abort())
  const mirroring = shadow({
    sides: {
      here,
      there: createReplayServer(to, options, options, stopping),
      scratch,
      catalogs: options.catalogs,
      digests: new DigestComparison((queryId) => readDigest(get, queryId)),
      repeat: 0,
      live: { mayRun: () => baseline?.tryTake(performance.now()) ?? false },
    },
    queue,
    limit: new RateLimit(options.rate),
    concurrency: options.concurrency,
    closing: closing.signal,
    stopping,
    read: (queryId) => readLive(get, queryId),
    isMeant: (session) => isMeant(session, options),
    appOf: ({ sql, session }) => clientApp(sql, session)?.app,
    onBegin: save,
    onLine: (line) => {
      lines.write(line)
      tally.add(line)
    },
    onBroken: (error, signal) => answeringAgain(error, [from, to], signal),
    rows: options.rows,
  }).finally(() => closing.abort())
  const results = await Promise.allSettled([following, mirroring])
  clearTimeout(timer)
  const broken = results.find((result) => result.status === 'rejected')
  if (broken && !stopping.aborted) throw broken.reason
}

function isMeant(session: QuerySession, { user, source }: ShadowFlags): boolean {
  return (user === undefined || session.user === user) && isMeantSource(session.source, source)
}

/** Calls an action that the shadow repeats later. If the last call fails too, the user sees its error. */
function ignoringErrors(action: () => void): void {
  try {
    action()
  } catch {
    // For example a full disk.
  }
}

function restOf(queue: MirrorQueue): ShadowRest {
  return { ...queue.counts, left: queue.open }
}

/** Prints that the feed was lost, at most once a minute. */
function lostOf({ url }: CalledServer): (error: Error) => void {
  let printedAt = -Infinity
  return ({ message }) => {
    const now = performance.now()
    if (now - printedAt < 60_000) return
    printedAt = now
    process.stderr.write(`quipu: ${new URL(url).origin}: ${message}; trying again\n`)
  }
}
