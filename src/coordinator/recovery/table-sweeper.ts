import type { QueryId } from '../../shared/ids.ts'
import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import type { SweepReport } from '../../connectors/spi/table-writer.ts'
import type { Clock } from '../../shared/clock.ts'

export interface TableSweeperDeps {
  readonly catalogs: Catalogs
  readonly clock: Clock
  /**
   * All queries that have not ended, with the time each was created (ISO); undefined while they are unknown or this
   * coordinator may not write the log: then nothing is swept.
   */
  openQueries(): readonly { readonly queryId: QueryId; readonly createdAt: string | undefined }[] | undefined
  onSwept(catalog: string, report: SweepReport): void
  onTrouble(catalog: string, error: unknown): void
  /** Rewrites a table whose rows were changed often. Rejects when it fails: the next sweep tries again. */
  rewrite(table: { readonly catalog: string; readonly schema: string; readonly table: string }): Promise<void>
  /** Milliseconds from the start to the first sweep. @default 300_000 */
  readonly firstAfterMs?: number
  /** Milliseconds between two sweeps. @default 3_600_000 */
  readonly everyMs?: number
}

/**
 * Makes the catalogs remove data that is no longer needed: files of lost attempts, old versions of tables. Also rewrites
 * tables whose rows were changed often.
 */
export interface TableSweeper {
  /** Sweeps all catalogs once, one after the other. */
  sweep(): Promise<void>
  /** Ends the timer and waits for a running sweep. */
  stop(): Promise<void>
}

const FIRST_AFTER_MS = 300_000
const HOUR_MS = 3_600_000

export function createTableSweeper(deps: TableSweeperDeps): TableSweeper {
  const { catalogs, clock } = deps
  let running: Promise<void> = Promise.resolve()
  let stopped = false
  let timer: NodeJS.Timeout
  const plan = (afterMs: number): void => {
    timer = setTimeout(() => {
      void sweeper.sweep()
      plan(deps.everyMs ?? HOUR_MS)
    }, afterMs)
    timer.unref()
  }
  plan(deps.firstAfterMs ?? FIRST_AFTER_MS)

  async function sweepAll(): Promise<void> {
    for (const catalog of catalogs.names()) {
      const writer = catalogs.get(catalog)?.writer
      // Read before each catalog: queries come and go while another catalog is swept.
      const open = deps.openQueries()
      if (stopped || !open) return
      if (!writer) continue
      const ids: ReadonlySet<QueryId> = new Set(open.map(({ queryId }) => queryId))
      const began = open.map(({ createdAt }) => (createdAt === undefined ? clock.now() : Date.parse(createdAt)))
      try {
        const report = await writer.sweep({
          now: clock.now(),
          isOpen: (queryId) => ids.has(queryId),
          ...(began.length > 0 && { oldestOpenQuery: Math.min(...began) }),
        })
        deps.onSwept(catalog, report)
        for (const table of report.worthRewriting) {
          if (stopped || !deps.openQueries()) return
          await deps.rewrite({ catalog, ...table })
        }
      } catch (error) {
        deps.onTrouble(catalog, error)
      }
    }
  }

  const sweeper: TableSweeper = {
    sweep() {
      running = running.then(sweepAll)
      return running
    },
    async stop() {
      stopped = true
      clearTimeout(timer)
      await running
    },
  }
  return sweeper
}
