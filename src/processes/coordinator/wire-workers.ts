import { createMembership, type Membership } from '../../coordinator/nodes/membership.ts'
import { createNodeEvents } from '../../coordinator/nodes/node-telemetry.ts'
import { createFetchMeter } from '../../coordinator/scheduler/fetch-meter.ts'
import { emitTaskCall } from '../../coordinator/scheduler/task-call-spans.ts'
import { createTaskCleaner, type TaskCleaner } from '../../coordinator/scheduler/task-cleaner.ts'
import { createTaskHub, type TaskHub } from '../../coordinator/scheduler/task-hub.ts'
import { createWorkerClient, type WorkerClient } from '../../coordinator/scheduler/worker-client.ts'
import type { Announcement } from '../../execution/api/task.ts'
import { readKnownWorkers } from '../../readmodels/nodes/queries.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import type { CoordinatorBase } from './wire-base.ts'
import type { WriterSettings } from './writer-settings.ts'

/** The coordinator's access to its workers. */
export interface WiredWorkers {
  readonly workers: Membership
  readonly client: WorkerClient
  readonly hub: TaskHub
  readonly cleaner: TaskCleaner
}

export interface WorkersDeps {
  readonly base: CoordinatorBase
  readonly settings: WriterSettings
  readonly epoch: number
  readonly logId: string
  /** Workers that announced themselves before. */
  readonly announced: readonly Announcement[]
  /** Called when a worker reports that it has seen a higher epoch. @returns whether that is true */
  readonly refusedBy: (nodeUrl: string) => Promise<boolean>
}

/** @param writes whether this process records in the log which workers come and go */
export function createMembers({ log, config, telemetry }: CoordinatorBase, writes: boolean): Membership {
  return createMembership({
    log,
    clock,
    limits: { beatMs: config.timeouts.workerBeatMs, failedMs: config.timeouts.workerFailedMs },
    writes: () => writes,
    onEvent: createNodeEvents(telemetry.meters, telemetry.logger),
  })
}

/** Makes the worker parts of the coordinator that writes. */
export async function wireWorkers({
  base,
  settings,
  epoch,
  logId,
  announced,
  refusedBy,
}: WorkersDeps): Promise<WiredWorkers> {
  const { config, telemetry } = base
  const { timeouts } = config
  const workers = createMembers(base, true)
  const client = createWorkerClient({
    onOutcome: (url, error) => workers.outcome(url, error),
    onPageFetched: createFetchMeter(telemetry.meters),
    onTaskCall: (call) => emitTaskCall(telemetry.spans(), call),
    epoch: () => epoch,
    logId,
    bearer: base.bearer,
    trust: base.trust,
    ...settings.workers,
    onStaleEpoch: refusedBy,
  })
  if (base.databaseThere) workers.remember(await readKnownWorkers(base.ownRead))
  for (const announcement of announced) workers.announce(announcement)
  await workers.start()
  return {
    workers,
    client,
    hub: createTaskHub(client, workers, { lostAfterMs: timeouts.workerFailedMs, monotonicMs: clock.monotonicMs }),
    cleaner: createTaskCleaner(client, workers, clock),
  }
}

/** Workers that are active, as they announced themselves. */
export function activeOf(workers: Membership): readonly Announcement[] {
  return workers
    .nodes()
    .filter((node) => node.state === 'active')
    .map(({ nodeId, url, version, cores, memoryBytes, epochSeen, processUuid, ageMillis, leaving }) => ({
      ...(leaving && { state: 'shutting_down' as const }),
      ...(processUuid !== undefined && { processUuid }),
      nodeId,
      url,
      version,
      cores,
      memoryBytes,
      epochSeen,
      uptimeMillis: ageMillis,
    }))
}
