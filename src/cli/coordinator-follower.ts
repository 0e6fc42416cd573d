import type { RequestListener } from 'node:http'
import { createMembership } from '../coordinator/nodes/membership.ts'
import type { EpochFollower } from '../coordinator/recovery/epoch-follower.ts'
import type { Turn } from '../coordinator/recovery/turn.ts'
import type { RefusalLog } from '../coordinator/system/refusal-log.ts'
import type { ProjectionWatch } from '../events/projection-watch.ts'
import type { Announcement } from '../execution/api/task.ts'
import { browserPolicyOf } from '../protocol/edge/browser-policy.ts'
import { refuseRelayed } from '../protocol/relay/relayed-request.ts'
import type { RelayWriter } from '../protocol/relay/send-relayed.ts'
import { createWriterRelay } from '../protocol/relay/writer-relay.ts'
import { createStatementUris } from '../protocol/statement/next-uri.ts'
import { lastKnownOf } from '../protocol/statement/waiting-answer.ts'
import { deriveKey } from '../security/cluster-secret.ts'
import { systemClock as clock } from '../shared/clock.ts'
import type { ChildLife } from './child-life.ts'
import { createCoordinatorApp } from './coordinator-app.ts'
import { POOL_CONNECTIONS, type CoordinatorBase } from './coordinator-base.ts'
import { createCoordinatorListener } from './coordinator-http.ts'
import { createNodeEvents, observeFollower } from './coordinator-metrics.ts'
import type { CoordinatorPhase } from './coordinator-wiring.ts'
import { restorePast } from './restored-counters.ts'
import { projected } from './take-over.ts'

export interface FollowerParts {
  readonly base: CoordinatorBase
  readonly epochs: EpochFollower
  readonly watch: ProjectionWatch
  readonly turn: Pick<Turn, 'silentMs'>
}

/** A coordinator that does not write the log: it reads for its clients itself, and passes on what changes something. */
export interface FollowingCoordinator extends CoordinatorPhase {
  readonly listener: RequestListener
  /** Workers that announced themselves here and are active. */
  heard(): readonly Announcement[]
  /** It writes now: what still waits here goes to its own address. */
  promoted(epoch: number): void
}

export async function wireFollower(life: ChildLife, parts: FollowerParts): Promise<FollowingCoordinator> {
  const { base, epochs, watch, turn } = parts
  const { config, telemetry, log, bearer } = base
  const { timeouts, limits } = config
  const { logger } = telemetry
  let own: RelayWriter | undefined
  let draining = false
  const workers = createMembership({
    log,
    clock,
    limits: { beatMs: timeouts.workerBeatMs, failedMs: timeouts.workerFailedMs },
    writes: () => false,
    onEvent: createNodeEvents(telemetry.meters, logger),
  })
  await workers.start()
  const relay = createWriterRelay({
    clock,
    writer: () => own ?? epochs.place,
    writerSilentMs: () => (own === undefined ? turn.silentMs() : 0),
    key: deriveKey(base.secret, 'relay'),
    uris: createStatementUris(deriveKey(base.secret, 'statement-token')),
    lastKnown: lastKnownOf(base.read),
    forwarded: false,
    limits: {
      bodyBytes: Math.max(limits.statementBytes, limits.taskBodyBytes),
      longPollMs: timeouts.longPollMs,
      postLogWaitMs: timeouts.postLogWaitMs,
      deleteValidityWaitMs: timeouts.deleteValidityWaitMs,
    },
  })
  const onError = (error: unknown): void => logger.error('request.failed', { err: error }, 'A request failed')
  // Only the writer can make events of them.
  const refusals: RefusalLog = {
    authenticationFailed: (refused) => logger.warn('request.refused', { ...refused }, 'An identity was refused'),
    accessDenied: (refused) => logger.warn('request.refused', { ...refused }, 'An action was refused'),
    stop: async () => {},
  }
  const { logId } = await log.tip()
  const { app, feed } = createCoordinatorApp({
    clock,
    config,
    startedAt: base.startedAt,
    nodeId: base.nodeId,
    logId: () => logId,
    bearer,
    log,
    live: { get: () => undefined, list: () => [] },
    read: base.clientRead,
    projection: watch,
    deadLetters: () => 0,
    workers,
    place: () => ({ writer: false, epoch: epochs.place?.epoch ?? 0 }),
    openQueries: () => 0,
    cancel: async () => 'waiting',
    remove: () => {},
    tasks: () => false,
    meters: telemetry.meters,
    spans: telemetry.spans,
    restarts: life.restarts,
    health: base.health,
    ready: () => !draining,
    refusals,
    journal: undefined,
    onError,
  })
  const ownPast = { base, caughtUp: () => projected(log, watch), before: (epochs.place?.epoch ?? 0) + 1 }
  void telemetry
    .load(
      (meters) =>
        observeFollower(
          {
            follows: () => own === undefined,
            ready: () => !draining,
            writerSilentMs: () => turn.silentMs(),
            pool: base.pool,
            poolLimit: POOL_CONNECTIONS,
          },
          meters,
        ),
      // When it writes again, its counters go on from there.
      base.databaseThere ? (meters) => restorePast(ownPast, meters) : undefined,
    )
    .catch((error: unknown) => logger.error('telemetry.trouble', { err: error }, 'Telemetry could not be loaded'))
  return {
    listener: createCoordinatorListener({
      policy: browserPolicyOf(config),
      statements: relay.routes,
      isRelayed: refuseRelayed,
      rest: app,
      meters: telemetry.meters,
      refusals,
      onError,
    }),
    heard: () =>
      workers
        .nodes()
        .filter((node) => node.state === 'active')
        .map(({ nodeId, url, version, cores, memoryBytes, epochSeen, ageMillis }) => ({
          nodeId,
          url,
          version,
          cores,
          memoryBytes,
          epochSeen,
          uptimeMillis: ageMillis,
        })),
    promoted: (epoch) => {
      own = { address: life.url ?? base.address, epoch }
      void workers.stop()
    },
    drain: async () => {
      draining = true
      await feed.close()
    },
    stop: async () => {
      relay.close()
      await workers.stop()
      await base.stop()
    },
  }
}
