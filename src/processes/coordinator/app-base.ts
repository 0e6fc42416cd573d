import { systemClock as clock } from '../../shared/clock.ts'
import { createStoredQueries } from '../../readmodels/queries/stored-queries.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import type { ChildLife } from '../child-life.ts'
import type { AppBase } from './coordinator-app.ts'
import type { CoordinatorBase } from './wire-base.ts'

/** Makes the part of the HTTP resources' dependencies that writers and followers of the log have alike. */
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
    actKey: deriveKey(base.secret, 'act-previews'),
    read,
    prices: base.access.prices,
    stored: createStoredQueries(read, base.archiveOf(logId)),
    meters: telemetry.meters,
    spans: telemetry.spans,
    restarts: life.restarts,
    health,
    onError: (error) => telemetry.logger.error('request.failed', { err: error }, 'A request failed'),
  }
}
