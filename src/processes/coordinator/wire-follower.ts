import type { RequestListener } from 'node:http'
import { createStatementMemory } from '../../coordinator/dispatch/statement-memory.ts'
import type { EpochFollower } from '../../coordinator/recovery/epoch-follower.ts'
import type { WriterLiveness } from '../../coordinator/recovery/writer-liveness.ts'
import type { ProjectionWatch } from '../../events/projection-watch.ts'
import type { Announcement } from '../../execution/api/task.ts'
import { createCheckResults } from '../../protocol/access/results-guard.ts'
import { browserPolicyOf } from '../../protocol/edge/browser-policy.ts'
import { noLiveQueries } from '../../protocol/query/live-queries.ts'
import { refuseRelayed } from '../../protocol/relay/relayed-request.ts'
import type { RelayWriter } from '../../protocol/relay/send-relayed.ts'
import { createWriterRelay, type WriterRelay } from '../../protocol/relay/writer-relay.ts'
import { createStatementUris } from '../../protocol/statement/next-uri.ts'
import { lastKnownOf } from '../../protocol/statement/waiting-answer.ts'
import { loadAnchorKey } from '../../security/anchor-key.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import { anchorPaths } from '../event-log/anchor-paths.ts'
import type { ChildLife } from '../child-life.ts'
import { appBaseOf } from './app-base.ts'
import { createCoordinatorApp } from './coordinator-app.ts'
import { createCoordinatorListener } from './coordinator-listener.ts'
import { observeFollower } from './coordinator-metrics.ts'
import { startFollowerIntroduction } from './follower-introduction.ts'
import { createFollowerSightings } from '../health/follower-sightings.ts'
import { pastCounters } from '../health/restored-counters.ts'
import { projected } from './take-over.ts'
import type { AccessEntry } from './wire-access.ts'
import type { CoordinatorBase } from './wire-base.ts'
import { activeOf, createMembers } from './wire-workers.ts'
import type { CoordinatorPhase } from './wire-writer.ts'

export interface FollowerDeps {
  readonly base: CoordinatorBase
  readonly epochs: EpochFollower
  readonly watch: ProjectionWatch
  readonly liveness: Pick<WriterLiveness, 'silentMs' | 'writerLives'>
}

/** A coordinator that does not write the log. It answers reads itself and passes changes on to the writer. */
export interface FollowingCoordinator extends CoordinatorPhase {
  readonly listener: RequestListener
  /** Workers that announced themselves here and are active. */
  announced(): readonly Announcement[]
  /** This process writes from now on: waiting requests go to its own address. */
  promoted(epoch: number): void
  /** This process writes no more. @param announced workers that announced themselves to it while it was the writer */
  demoted(announced: readonly Announcement[]): Promise<void>
}

export async function wireFollower(life: ChildLife, deps: FollowerDeps): Promise<FollowingCoordinator> {
  const { base, epochs, watch, liveness } = deps
  const { config, telemetry, log } = base
  let own: RelayWriter | undefined
  let draining = false
  const ready = (): boolean => !draining
  const workers = createMembers(base, false)
  await workers.start()
  const sightings = createFollowerSightings({
    logger: telemetry.logger,
    post: (report) => relay.post('/v1/system/sightings', report),
    mergeFailures: base.access.mergeFailures,
  })
  const { refusals } = sightings
  const access = base.access.entry(refusals, sightings.failures)
  const relay = relayOf(deps, access, () => own)
  const { logId } = await log.tip()
  const introduction = startFollowerIntroduction({
    introducer: () => ({
      key: loadAnchorKey(anchorPaths(config).key),
      logId,
      macKey: deriveKey(base.secret, 'anchor-keys'),
    }),
    post: (shown) => relay.post('/v1/system/anchor-key', shown),
    onWriterChanged: epochs.onChange,
    onTrouble: (error) =>
      telemetry.logger.warn(
        'anchor.trouble',
        { err: error },
        'The anchor key could not be introduced to the writer; the follower tries again',
      ),
  })
  const appBase = appBaseOf(base, life, logId)
  const { app, feed } = createCoordinatorApp({
    base: appBase,
    access,
    role: {
      history: log,
      writerState: () => ({ writer: false, epoch: epochs.writerAddress?.epoch ?? 0 }),
      ready,
      live: noLiveQueries,
      projection: watch,
      workers,
      refusals,
      writing: undefined,
    },
  })
  const gauges = { base, ready, follows: () => own === undefined, writerSilentMs: () => liveness.silentMs() }
  const ownPast = { base, caughtUp: () => projected(log, watch), before: (epochs.writerAddress?.epoch ?? 0) + 1 }
  void telemetry
    .load(
      (meters) => observeFollower(gauges, meters),
      // If this process writes again, its counters continue from there.
      base.databaseThere ? pastCounters(ownPast) : undefined,
    )
    .catch((error: unknown) =>
      telemetry.logger.error('telemetry.trouble', { err: error }, 'Telemetry could not be loaded'),
    )
  return {
    listener: createCoordinatorListener({
      policy: browserPolicyOf(config),
      statements: relay.routes,
      access,
      isRelayed: refuseRelayed,
      rest: app,
      meters: appBase.meters,
      refusals,
      onError: appBase.onError,
    }),
    announced: () => activeOf(workers),
    promoted: (epoch) => {
      introduction.stop()
      own = { address: life.url ?? base.address, epoch }
      void workers.stop()
    },
    async demoted(announced) {
      own = undefined
      for (const announcement of announced) workers.announce(announcement)
      await workers.start()
    },
    drain: async () => {
      draining = true
      base.access.drain()
      await feed.close()
    },
    stop: async () => {
      introduction.stop()
      await refusals.stop()
      relay.close()
      await workers.stop()
    },
  }
}

/** @param own the address at which this process itself writes, once it does */
function relayOf(
  { base, epochs, liveness }: FollowerDeps,
  { actsAs, authorize }: AccessEntry,
  own: () => RelayWriter | undefined,
): WriterRelay {
  const { timeouts, limits } = base.config
  return createWriterRelay({
    clock,
    writer: () => own() ?? epochs.writerAddress,
    writerLives: () => own() !== undefined || liveness.writerLives(),
    trust: base.trust,
    key: deriveKey(base.secret, 'relay'),
    uris: createStatementUris(base.secret),
    lastKnown: lastKnownOf(base.pollRead),
    checkResults: createCheckResults(base.access.configured, actsAs, authorize),
    memory: createStatementMemory({
      totalBytes: limits.openStatementBytes,
      userBytes: limits.addressStatementBytes,
      addressBytes: limits.addressStatementBytes,
    }),
    limits: {
      headerBytes: limits.headerBytes,
      statementBytes: limits.statementBytes,
      taskBodyBytes: limits.taskBodyBytes,
      longPollMs: timeouts.longPollMs,
      postLogWaitMs: timeouts.postLogWaitMs,
      deleteValidityWaitMs: timeouts.deleteValidityWaitMs,
    },
  })
}
