import { setTimeout as sleep } from 'node:timers/promises'
import { createQueryRegistry, type QueryRegistry } from '../../coordinator/query/registry/query-registry.ts'
import { createQueryRetention, pagesNeededSince } from '../../coordinator/query/registry/query-retention.ts'
import { forgetWholeQuery } from '../../coordinator/system/forget-query.ts'
import { createFileRecord } from '../../coordinator/system/file-record.ts'
import { sendLastSpans } from '../../coordinator/query/telemetry/last-spans.ts'
import { handOver, type Claimed } from '../../coordinator/recovery/claim-epoch.ts'
import { emitClaim } from '../../coordinator/recovery/recovery-spans.ts'
import { Tenure } from '../../coordinator/recovery/tenure.ts'
import type { FreedBy } from '../../coordinator/recovery/writer-liveness.ts'
import { logOfEpoch } from '../../events/log-of-epoch.ts'
import type { StreamReader } from '../../events/event-log.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import type { Announcement } from '../../execution/api/task.ts'
import { createLiveQueries, type LiveQueries } from '../../protocol/query/live-queries.ts'
import { readTextParts } from '../../readmodels/audit/queries.ts'
import type { Rebuilt } from '../../readmodels/rebuild.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { ChildLife } from '../child-life.ts'
import type { GatedServer } from '../gated-server.ts'
import { startErasures, type Erasures } from '../record/erasures.ts'
import { appBaseOf } from './app-base.ts'
import type { Auditing } from '../record/auditing.ts'
import { startRecordDuties, type RecordDuties } from './record-duties.ts'
import { openErasing } from '../event-log/erasing.ts'
import type { WriterDuties } from './coordinator-app.ts'
import { metersOfRole, observeWriter, type CountedBefore, type MetersOfRole } from './coordinator-metrics.ts'
import { wireHistory, type WiredHistory } from './query-history.ts'
import { createRestartMeter } from '../health/restart-meter.ts'
import { pastCounters } from '../health/restored-counters.ts'
import { projected } from './take-over.ts'
import type { CoordinatorBase } from './wire-base.ts'
import { resumeActs, wireActs } from './wire-acts.ts'
import { wireClusters } from './wire-clusters.ts'
import { systemSourcesOf } from './wire-system.ts'
import { prepareOf, wireQueries } from './wire-queries.ts'
import { wireRecovery } from './wire-recovery.ts'
import { removerOf, wireResources } from './wire-resources.ts'
import { activeOf, wireWorkers } from './wire-workers.ts'
import { writerSettings, type WriterSettings } from './writer-settings.ts'

/** A role of a coordinator: writer of the log, or follower of it. */
export interface CoordinatorPhase {
  /** Stops admission, answers open polls and hands over the epoch. */
  drain(): Promise<void>
  /** Closes everything that is open. Called after the last answer. */
  stop(): Promise<void>
}

/** The entry for clients. `open` installs the listener of a role in place of the previous one. */
export type HttpEntry = Pick<GatedServer, 'open' | 'close' | 'onRefusedConnection' | 'onCertificate'>

export interface WriterDeps {
  readonly life: ChildLife
  /** Makes this process follow the other writer from now on. */
  readonly standAside: () => void
  /** Why the log could be claimed. */
  readonly freedBy: FreedBy
  /** Stops the attempts to start the projection. */
  readonly giveUpStarting: () => void
  readonly base: CoordinatorBase
  /** Runs already, or will run once its database is there. */
  readonly projection: ProjectionRunner
  /** The epoch, claimed just now. */
  readonly claimed: Claimed
  /** How long the claim took, milliseconds. */
  readonly claimMillis: number
  /** Read models that were rebuilt before the claim. */
  readonly rebuilt: Rebuilt | undefined
  readonly counted: CountedBefore
  /** Workers that announced themselves before. */
  readonly announced: readonly Announcement[]
  readonly entry: HttpEntry
}

/** A coordinator that writes the log. */
export interface WritingCoordinator extends CoordinatorPhase {
  /** Resolves when another coordinator writes the log and this one has no answer in progress. */
  readonly lost: Promise<void>
  /** Workers that announced themselves here and are active. */
  announced(): readonly Announcement[]
}

const DISBELIEVED =
  'A worker refuses this coordinator because it has stored an epoch that the event log never had: see quipu reset-epoch --help'

/**
 * Puts together the parts that write the log.
 *
 * ```
 * claim reported ─► workers ─► queries ─► resources ─► clients are served ─► take-over from the previous coordinator
 * ```
 */
export async function wireWriter(given: WriterDeps): Promise<WritingCoordinator> {
  const { log: ofEpoch, end: endEpoch } = logOfEpoch(given.base.log)
  const deps = { ...given, base: { ...given.base, log: ofEpoch } }
  const { life, base, projection, claimed, entry } = deps
  const over = new AbortController()
  let lose = (): void => {}
  const lost = new Promise<void>((resolve) => (lose = resolve))
  const { telemetry } = base
  const { epoch } = claimed
  const settings = writerSettings(base.config)
  const claimedAt = logClaim(deps)

  const core = await wireCore(deps, settings, { lose, over: over.signal })
  const { history, registry, tenure, begin, workers, clusters, live, caughtUp } = core
  const { logId } = begin
  const duties = startRecordDuties(deps, begin, caughtUp)
  const { auditing, publishing, archivingQueries } = duties
  const { refusals, journal } = auditing
  const recordedParts = (digest: string): Promise<number> => readTextParts(base.ownRead, digest)
  base.access.recordIn({ files: createFileRecord({ journal, caughtUp, recordedParts }), journal })
  const queries = wireQueries({
    life,
    base,
    settings,
    history,
    epoch,
    tenure,
    registry,
    workers,
    clusters,
    refusals,
    journal,
  })
  const remove = removerOf({ registry, cleaner: workers.cleaner })
  const erasures = erasuresOf(deps, { journal, refusals, caughtUp, history, remove })
  const { forget: forgetArchived } = archivingQueries
  const prepare = prepareOf(base, queries)
  const acts = wireActs({ base, history, registry, queries, journal, projection, prepare, remove, forgetArchived })
  const ready = (): boolean => tenure.open
  const appBase = appBaseOf(base, life, logId)
  const { listener, app } = wireResources({
    base,
    appBase,
    epoch,
    ready,
    history,
    forgetArchived,
    remove,
    erasures,
    acts,
    prepare,
    live,
    projection,
    registry,
    workers,
    queries,
    clusters,
    auditing,
  })
  const reservation = queries.groups.reserve()
  entry.open(listener)
  app.load()
  const recovery = wireRecovery({
    base,
    epoch,
    tenure,
    history,
    registry,
    workers,
    queries,
    reservation,
    onStreams: (streams) => core.keepStreams(streams, caughtUp),
    endedStreams: core.endedStreams,
    journal,
    onFailed: life.fail,
    freedBy: deps.freedBy,
  })
  resumeActs(acts, { base, recovered: recovery.recovered, caughtUp }).catch((error: unknown) =>
    telemetry.logger.error(
      'act.trouble',
      { err: error },
      'Unfinished acts of the previous coordinator could not be read',
    ),
  )
  const meters = loadMeters(deps, { core, queries, ready, publishing, claimedAt, over: over.signal })
  telemetry.logger.info(
    'ready',
    { epoch, milliseconds: Math.round(clock.monotonicMs() - base.startedAt) },
    'Coordinator is ready',
  )
  const cut = (): void => {
    endEpoch()
    over.abort()
    meters.end()
  }
  return {
    lost,
    announced: () => activeOf(workers.workers),
    ...endingsOf({
      deps,
      settings,
      tenure,
      acts,
      duties,
      erasures,
      app,
      registry,
      queries,
      recovery,
      workers,
      clusters,
      cut,
    }),
  }
}

interface WriterCore extends WiredHistory {
  readonly registry: QueryRegistry
  readonly tenure: Tenure
  /** The position of the log at the claim. */
  readonly begin: Awaited<ReturnType<WriterDeps['base']['log']['tip']>>
  readonly workers: Awaited<ReturnType<typeof wireWorkers>>
  readonly clusters: Awaited<ReturnType<typeof wireClusters>>
  readonly live: LiveQueries
  /** Resolves when the read models have all events up to the claim. */
  readonly caughtUp: Promise<void>
}

/** Wires the parts that all statements share: open queries, tenure, workers and clusters. */
async function wireCore(
  deps: WriterDeps,
  settings: WriterSettings,
  { lose, over }: { readonly lose: () => void; readonly over: AbortSignal },
): Promise<WriterCore> {
  const { life, base, projection, claimed } = deps
  const { config, log } = base
  const { epoch } = claimed
  const history = wireHistory(log)
  const { mayForget, leave, isProjected } = createQueryRetention({
    committed: () => projection.committed,
    positions: history.endedStreams,
    logHasIndex: config.kafkaBrokers.length === 0,
  })
  const registry = createQueryRegistry(clock, settings.retention, mayForget, leave)
  base.keepPagesSince(() => pagesNeededSince(registry.list(), clock.now()))
  const tenure = tenureOf(deps, registry, settings, lose)
  const begin = await log.tip()
  const { logId } = begin
  // A successor's clients already wait with statements. Statements that need the engine wait for it themselves.
  if (life.successor) base.engineStarted.catch(life.fail)
  else await base.engineStarted

  const refusedBy = (nodeUrl: string): Promise<boolean> => tenure.refusedBy(nodeUrl)
  const workers = await wireWorkers({ base, settings, epoch, logId, announced: deps.announced, refusedBy })
  const clusters = await wireClusters(base, begin)
  const live = createLiveQueries(registry, isProjected)
  base.useSystem(systemSourcesOf(base, { live, projection, membership: workers.workers, logId }))
  const caughtUp = projected(log, projection, over)
  return { ...history, registry, tenure, begin, workers, clusters, live, caughtUp }
}

function tenureOf(
  { base, claimed, life, standAside }: WriterDeps,
  registry: Pick<QueryRegistry, 'list'>,
  settings: WriterSettings,
  lose: () => void,
): Tenure {
  const { log, telemetry } = base
  const { epoch } = claimed
  const { logger } = telemetry
  return new Tenure({
    log,
    epoch,
    queries: registry.list,
    standAside,
    resignMs: settings.tenure.resignMs,
    onLost: (reason) => logger.warn('epoch.lost', { epoch }, reason),
    onDisbelieved: (nodeUrl) => logger.error('epoch.disbelieved', { worker: nodeUrl }, DISBELIEVED),
    end: (reason, broken) => (broken ? life.fail(new ExitError(exitCodes.fenced, reason)) : lose()),
  })
}

interface MetersDeps {
  readonly core: WriterCore
  readonly queries: ReturnType<typeof wireQueries>
  readonly ready: () => boolean
  readonly publishing: RecordDuties['publishing']
  /** When the log was claimed, ISO. */
  readonly claimedAt: string
  /** Nothing is observed any more once this aborts. */
  readonly over: AbortSignal
}

/** Loads the meters of a writer, and sends the last spans of a writer that died. */
function loadMeters(
  { life, base, claimed, counted, projection }: WriterDeps,
  deps: MetersDeps,
): { readonly end: () => void } {
  const { telemetry } = base
  const { core, queries, ready, publishing, claimedAt, over } = deps
  const { history, caughtUp, registry, clusters } = core
  const { epoch } = claimed
  const workers = core.workers.workers
  const { groups } = queries
  const gauges = { base, epoch, ready, projection, registry, workers, clusters, groups, counted }
  let meters: MetersOfRole | undefined
  const observe = (all: Meters): void => {
    if (over.aborted) return
    meters = metersOfRole(all)
    observeWriter(gauges, meters.meters)
    meters.meters.onScrape(createRestartMeter(life, all, counted.restarts))
    publishing.observe(meters.meters)
  }
  const past = { base, caughtUp: () => caughtUp, before: epoch }
  telemetry
    .load(observe, base.databaseThere ? pastCounters(past) : undefined)
    .then(async () => {
      if (life.deadWriter === undefined) return
      // The queries that ended last are projected last.
      await caughtUp
      await sendLastSpans(history, base.ownRead, telemetry.spans(), claimedAt)
    })
    .catch((error: unknown) =>
      telemetry.logger.error('telemetry.trouble', { err: error }, 'Telemetry could not be loaded'),
    )
  return { end: () => meters?.end() }
}

/** The parts of a writer that end in a fixed order. */
interface EndedDeps {
  readonly deps: WriterDeps
  readonly settings: WriterSettings
  readonly tenure: Tenure
  readonly acts: ReturnType<typeof wireActs>
  readonly duties: RecordDuties
  readonly erasures: Erasures
  readonly app: ReturnType<typeof wireResources>['app']
  readonly registry: QueryRegistry
  readonly queries: ReturnType<typeof wireQueries>
  readonly recovery: ReturnType<typeof wireRecovery>
  readonly workers: Awaited<ReturnType<typeof wireWorkers>>
  readonly clusters: Awaited<ReturnType<typeof wireClusters>>
  /** Ends the epoch's log and the meters. */
  cut(): void
}

function endingsOf({
  deps,
  settings,
  acts,
  duties,
  erasures,
  registry,
  queries,
  workers,
  ...made
}: EndedDeps): CoordinatorPhase {
  const { base, projection, claimed } = deps
  const { auditing } = duties
  return {
    async drain() {
      const { handOverMs } = settings.tenure
      acts.stop()
      made.tenure.drain()
      duties.pause()
      erasures.stop()
      base.access.drain()
      base.access.recordIn(undefined)
      await Promise.race([auditing.stop(), sleep(handOverMs, undefined, { ref: false })])
      await handOver(auditing.journal, claimed, handOverMs)
      await made.app.close()
    },
    async stop() {
      made.cut()
      deps.giveUpStarting()
      acts.stop()
      base.access.recordIn(undefined)
      base.keepPagesSince(() => clock.now())
      duties.pause()
      erasures.stop()
      registry.stop()
      queries.groups.stop()
      await queries.stop()
      await made.recovery.stop()
      await workers.workers.stop()
      await made.clusters.stop()
      await auditing.stop()
      await duties.publishing.stop()
      workers.hub.stop()
      workers.cleaner.stop()
      workers.client.close()
      await projection.stop()
      for (const query of registry.list()) query.dispose()
    },
  }
}

/** Reports the claim. @returns the time now, ISO */
function logClaim({ life, base, claimed, claimMillis }: WriterDeps): string {
  const { telemetry } = base
  const { epoch, writer } = claimed
  life.claimed(writer)
  telemetry.logger.bind({ epoch })
  telemetry.logger.info('epoch.won', {}, 'This coordinator writes the event log from now on')
  telemetry.meters().count('epochClaims', { result: 'won' })
  emitClaim(telemetry.spans(), epoch, claimMillis)
  return new Date(clock.now()).toISOString()
}

interface ErasuresNeed {
  readonly journal: Auditing['journal']
  readonly refusals: Auditing['refusals']
  readonly caughtUp: Promise<void>
  readonly history: StreamReader
  readonly remove: WriterDuties['remove']
}

function erasuresOf({ base, projection }: WriterDeps, need: ErasuresNeed): Erasures {
  const { journal, refusals, caughtUp, history, remove } = need
  const { config, connection, log, secret, telemetry } = base
  const { logger, meters } = telemetry
  return startErasures({
    erasing: openErasing({ config, connection, log, secret }),
    writer: {
      journal,
      flushed: () => refusals.flushed(),
      forgetQuery: (queryId, administrator, erasure) =>
        forgetWholeQuery({ log, journal, history, remove }, queryId, administrator, erasure),
      projected: () => projected(log, projection),
    },
    caughtUp,
    logger,
    meters,
  })
}
