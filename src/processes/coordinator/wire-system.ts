import type { SystemSources } from '../../connectors/system/system-connector.ts'
import type { Membership } from '../../coordinator/nodes/membership.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { createHistorySource } from '../../protocol/query/history-sources.ts'
import type { LiveQueries } from '../../protocol/query/live-queries.ts'
import { createHistoryReadQueue, HISTORY_READS, RUNTIME_READS } from '../../protocol/query/history-read-queue.ts'
import { createRuntimeSources } from '../../protocol/query/runtime-sources.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import { version } from '../../shared/version.ts'
import type { CoordinatorBase } from './wire-base.ts'

export interface SystemDeps {
  readonly live: LiveQueries
  readonly projection: ProjectionRunner
  readonly membership: Pick<Membership, 'nodes'>
  readonly logId: string
}

/** The sources of statements over `system.runtime` and `system.history`. They use connections of their own. */
export function systemSourcesOf(
  { config, statementRead: read, nodeId, address: url, history, archiveOf, telemetry, access }: CoordinatorBase,
  { live, projection, membership, logId }: SystemDeps,
): SystemSources {
  const { ownWritesWaitMs, historyReadMs } = config.timeouts
  const waitMs = 3 * historyReadMs
  const shared = { read, projection, authorize: access.rights, ownWritesWaitMs }
  const warn = (message: string) => (error: unknown) => telemetry.logger.warn('request.failed', { err: error }, message)
  return {
    runtime: createRuntimeSources({
      ...shared,
      live,
      membership,
      clock,
      self: { nodeId, url, version },
      queue: createHistoryReadQueue({ atOnce: RUNTIME_READS, waitMs, what: 'The list of queries' }),
      onError: warn('The read models could not be read'),
    }),
    history: createHistorySource({
      ...shared,
      moments: history,
      prices: access.prices,
      files: archiveOf(logId),
      queue: createHistoryReadQueue({ atOnce: HISTORY_READS, waitMs, what: 'The history' }),
      onError: warn('The history could not be read'),
    }),
  }
}
