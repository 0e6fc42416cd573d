import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import type { QueryRegistry } from '../../coordinator/query/registry/query-registry.ts'
import { isTerminal } from '../../coordinator/query/stream/state.ts'
import { createTableSweeper, type TableSweeper } from '../../coordinator/recovery/table-sweeper.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Logger } from '../../telemetry/logger.ts'

export interface SweepingDeps {
  readonly catalogs: Catalogs
  readonly clock: Clock
  /** Holds every open query: sweeping starts once those of the previous coordinator are taken over. */
  readonly registry: Pick<QueryRegistry, 'list'>
  readonly logger: Logger
  /** Whether this coordinator may still write. */
  active(): boolean
}

/** Sweeps the tables of all catalogs each hour while this coordinator writes. */
export function startSweeping({ catalogs, clock, registry, logger, active }: SweepingDeps): TableSweeper {
  return createTableSweeper({
    catalogs,
    clock,
    openQueries: () =>
      active()
        ? registry
            .list()
            .filter(({ aggregate }) => !isTerminal(aggregate.state.kind))
            .map(({ queryId, aggregate: { state } }) => ({
              queryId,
              createdAt: state.kind === 'NONE' ? undefined : state.createdAt,
            }))
        : undefined,
    onSwept(catalog, report) {
      if (report.filesRemoved > 0) logger.info('tables.swept', { catalog, ...report }, 'Unneeded files were removed')
    },
    onTrouble: (catalog, error) =>
      logger.warn(
        'sweep.trouble',
        { catalog, err: error },
        'Unneeded files of the tables of a catalog could not be removed',
      ),
  })
}
