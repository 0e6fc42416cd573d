import type { ResourceGroups } from '../coordinator/dispatch/resource-groups.ts'
import type { Membership } from '../coordinator/nodes/membership.ts'
import type { NodeEvent } from '../coordinator/nodes/events.ts'
import type { QueryRegistry } from '../coordinator/query/query-registry.ts'
import type { PageFetch } from '../coordinator/scheduler/worker-client.ts'
import type { EventLog } from '../events/event-log.ts'
import type { QueryRows } from '../events/projection.ts'
import type { ProjectedBatch, ProjectionRunner } from '../events/projection-runner.ts'
import { eventsBelow } from '../events/projection-store.ts'
import type { EnginePool } from '../execution/engine/engine.ts'
import type { Logger } from '../telemetry/logger.ts'
import { rebuildProgress } from '../readmodels/rebuild.ts'
import type { Meters } from '../telemetry/meters.ts'
import { observeAudits } from './audit-meter.ts'
import { observeDuckDbMemory, observeEngines } from './engine-telemetry.ts'
import type { EventLogTelemetry } from './event-log-telemetry.ts'

/** What a coordinator's gauges are read from, once before each scrape. */
export interface CoordinatorGauges {
  readonly epoch: number
  readonly ready: () => boolean
  readonly log: EventLog
  readonly logTelemetry: EventLogTelemetry
  readonly projection: ProjectionRunner
  readonly read: QueryRows
  readonly registry: QueryRegistry
  readonly workers: Membership
  readonly engine: Pick<EnginePool, 'children' | 'memory'>
  readonly engineKillBytes: number
  readonly groups: ResourceGroups
  readonly pool: { readonly totalCount: number; readonly idleCount: number; readonly waitingCount: number }
  readonly poolLimit: number
}

const OPEN_STATES = ['QUEUED', 'PLANNING', 'STARTING', 'RUNNING', 'FINISHING'] as const
const PROJECTION = 'readmodels'

/** What a coordinator tells that follows another one; figures of the cluster are the writer's to tell. */
export interface FollowerGauges {
  /** Not once this process writes. */
  readonly follows: () => boolean
  readonly ready: () => boolean
  /** Since the writer's last sign of life. */
  readonly writerSilentMs: () => number
  readonly pool: CoordinatorGauges['pool']
  readonly poolLimit: number
}

export function observeFollower(
  { follows, ready, writerSilentMs, pool, poolLimit }: FollowerGauges,
  meters: Meters,
): void {
  meters.onScrape(() => {
    if (!follows()) return
    meters.set('writer', {}, 0)
    meters.set('epoch', {}, 0)
    meters.set('writerSilence', {}, writerSilentMs() / 1000)
    meters.set('ready', {}, ready() ? 1 : 0)
    observePool(pool, poolLimit, meters)
  })
}

function observePool(pool: CoordinatorGauges['pool'], limit: number, meters: Meters): void {
  meters.set('postgresConnections', { state: 'idle' }, pool.idleCount)
  meters.set('postgresConnections', { state: 'used' }, pool.totalCount - pool.idleCount)
  meters.set('postgresConnections', { state: 'limit' }, limit)
  meters.set('postgresConnections', { state: 'waiting' }, pool.waitingCount)
}

export function observeCoordinator(gauges: CoordinatorGauges, meters: Meters): void {
  const { projection, registry, workers, groups, pool } = gauges
  meters.onScrape(() => {
    meters.set('writer', {}, 1)
    meters.set('writerSilence', {}, 0)
    meters.set('epoch', {}, gauges.epoch)
    meters.set('ready', {}, gauges.ready() && projection.condition.kind !== 'stopped' ? 1 : 0)
    for (const state of OPEN_STATES)
      meters.set('queriesOpen', { state }, registry.list().filter((one) => one.aggregate.state.kind === state).length)
    const nodes = workers.nodes()
    for (const state of ['active', 'suspect', 'failed'] as const)
      meters.set('workers', { state }, nodes.filter((node) => node.state === state).length)
    meters.unset('workerHeartbeatAge')
    for (const node of nodes) meters.set('workerHeartbeatAge', { worker: node.nodeId }, node.silentMillis / 1000)
    observeEngines(gauges.engine, gauges.engineKillBytes, meters)
    for (const { group, running, queued, limits: room } of groups.figures()) {
      meters.set('groupRunningQueries', { group }, running)
      meters.set('groupQueuedQueries', { group }, queued)
      meters.set('groupRunningLimitQueries', { group }, room.running)
      meters.set('groupQueuedLimitQueries', { group }, room.queued)
    }
    observePool(pool, gauges.poolLimit, meters)
  })
  observeDuckDbMemory(gauges.engine, meters)
  observeAudits(gauges.read, meters)
  meters.onScrape(() => gauges.logTelemetry.observe(gauges.log, meters))
  meters.onScrape(async () => {
    meters.set('deadLetters', { projection: PROJECTION }, projection.deadLetters)
    meters.set('projectionStopped', { projection: PROJECTION }, projection.condition.kind === 'stopped' ? 1 : 0)
    const lag = await projection.lag()
    meters.set('projectionLagEvents', { projection: PROJECTION }, lag.events)
    meters.set('projectionLag', { projection: PROJECTION }, lag.oldestMillis / 1000)
    const events = eventsBelow(projection.committed) + lag.events
    meters.set('projectionRebuildRatio', { projection: PROJECTION }, await rebuildProgress(gauges.read, events))
  })
}

export function countProjected(meters: Meters, batch: ProjectedBatch): void {
  meters.count('projectionEvents', { projection: PROJECTION }, batch.events)
  meters.observe('postgresQueryDuration', { operation: 'project' }, batch.milliseconds / 1000)
}

/** Workers that came and went, as log lines and a counter. */
export function createNodeEvents(meters: () => Meters, logger: Logger): (event: NodeEvent) => void {
  return ({ type, data }) => {
    const about = { worker: data.nodeId, url: data.url }
    switch (type) {
      case 'NodeJoined':
      case 'NodeRecovered':
        return logger.info('worker.joined', about, 'A worker serves')
      case 'NodeSuspected':
        return
      case 'NodeFailed':
        meters().count('workerFailures', { reason: data.reason })
        return logger.error('worker.lost', { ...about, reason: data.reason }, 'A worker is lost')
      case 'NodeLeft':
        meters().count('workerFailures', { reason: 'left' })
        return logger.info('worker.lost', { ...about, reason: 'left' }, 'A worker left')
    }
  }
}

/** Reads of the read models, timed; errors by the class of their SQLSTATE. */
export function timedRead(
  pool: { query(text: string, values: unknown[]): Promise<{ rows: Record<string, unknown>[] }> },
  meters: () => Meters,
): (text: string, values: readonly unknown[]) => Promise<Record<string, unknown>[]> {
  return async (text, values) => {
    const start = performance.now()
    try {
      return (await pool.query(text, [...values])).rows
    } catch (error) {
      countPostgresError(meters(), error)
      throw error
    } finally {
      meters().observe('postgresQueryDuration', { operation: 'read' }, (performance.now() - start) / 1000)
    }
  }
}

/** By the class of its SQLSTATE; 08 is also what never reached the server. */
export function countPostgresError(meters: Meters, error: unknown): void {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const known = /^E[A-Z]+$/.test(code) ? '08' : CLASSES.find((one) => code.startsWith(one))
  meters.count('postgresErrors', { class: known ?? 'other' })
}

/** Pages that the coordinator fetches of workers: it is the consumer of their exchange. */
export function createFetchMeter(meters: () => Meters): (fetch: PageFetch) => void {
  return ({ result, bytes, milliseconds }) => {
    meters().observe('exchangeRequestDuration', { result }, milliseconds / 1000)
    if (bytes > 0) meters().count('exchangeBytes', { direction: 'received' }, bytes)
  }
}

const CLASSES = ['08', '23', '40', '53', '57']
