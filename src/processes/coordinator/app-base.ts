import { systemClock as clock } from '../../shared/clock.ts'
import { createStoredQueries } from '../../readmodels/queries/stored-queries.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import type { ChildLife } from '../child-life.ts'
import type { AppBase } from './coordinator-app.ts'
import type { CoordinatorBase } from './wire-base.ts'

/** What the resources of a coordinator need from it, whether it writes the log or follows it. */
export function appBaseOf(base: CoordinatorBase, life: Pick<ChildLife, 'restarts'>, logId: string): AppBase {
  const { config, startedAt, nodeId, bearer, clientRead: read, telemetry, health } = base
  return {
    clock,
    config,
    startedAt,
    nodeId,
    logId,
    bearer,
    replayKey: deriveKey(base.secret, 'replays'),
    read,
    stored: createStoredQueries(read, base.archiveOf(logId)),
    meters: telemetry.meters,
    spans: telemetry.spans,
    restarts: life.restarts,
    health,
    onError: (error) => telemetry.logger.error('request.failed', { err: error }, 'A request failed'),
  }
}
