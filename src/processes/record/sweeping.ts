import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import type { QueryRegistry } from '../../coordinator/query/registry/query-registry.ts'
import { isTerminal } from '../../coordinator/query/stream/state.ts'
import { createTableSweeper, type TableSweeper } from '../../coordinator/recovery/table-sweeper.ts'
import { printQuoted } from '../../sql/syntax/print-names.ts'
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
  /** Runs a statement of the server itself. Rejects when it fails. */
  runStatement(sql: string): Promise<void>
}

/** Sweeps the tables of all catalogs each hour while this coordinator writes. */
export function startSweeping({ catalogs, clock, registry, logger, active, runStatement }: SweepingDeps): TableSweeper {
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
      const { filesRemoved, bytesRemoved } = report
      if (filesRemoved > 0)
        logger.info('tables.swept', { catalog, filesRemoved, bytesRemoved }, 'Unneeded files were removed')
    },
    async rewrite({ catalog, schema, table }) {
      const name = [catalog, schema, table].map(printQuoted).join('.')
      await runStatement(`ALTER TABLE ${name} EXECUTE optimize`)
      logger.info('tables.rewritten', { catalog, schema, table }, 'A table with many changed rows was rewritten')
    },
    onTrouble: (catalog, error) =>
      logger.warn(
        'sweep.trouble',
        { catalog, err: error },
        'The tables of a catalog could not be swept: unneeded files or changed rows stay longer',
      ),
  })
}
