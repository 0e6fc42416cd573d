import { resolve } from 'node:path'
import type pg from 'pg'
import type { Config } from '../../config/load-config.ts'
import { archiveQueries, PERIOD_QUERIES, type QueryArchivePolicy } from '../../readmodels/archive/query-archive.ts'
import type { ArchivedFiles } from '../../readmodels/history/read-archive.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Meters } from '../../telemetry/meters.ts'

export interface ArchivingQueriesDeps {
  readonly config: Config
  readonly connection: pg.ClientConfig
  readonly files: ArchivedFiles
  /**
   * For a log that finds streams by the read models: the time of the first record that is still in the log, ISO UTC.
   */
  readonly logBegins?: () => Promise<string | undefined>
  /** Resolves when the read models hold everything that was recorded before this epoch. */
  readonly caughtUp: Promise<void>
  /** Free bytes on the disk of a folder. */
  readonly freeBytes: (folder: string) => Promise<number>
  readonly clock: Clock
  readonly logger: Logger
  readonly meters: () => Meters
}

/** Moves queries that ended long ago from the read models to files, as long as this process writes the log. */
export interface ArchivingQueries {
  /** Reports that data was forgotten: files that have it are rewritten soon. */
  forget(): void
  /** Stops a running round at once. The next writer continues it. */
  stop(): void
}

const ROUND_MS = 15_000
const DAY_MS = 24 * 3_600_000
/** Results are kept for this time. Until its end, the loss of their pages may still be recorded. */
const RESULT_MS = DAY_MS + 3_600_000

/** The policy that the settings ask for; undefined: nothing leaves the read models. */
export function queryArchivePolicyOf({ timeouts, limits }: Config): ((now: number) => QueryArchivePolicy) | undefined {
  const { archiveQueriesAfterMs: age } = timeouts
  const { hotQueries } = limits
  if (age === undefined && hotQueries === undefined) return undefined
  return (now) => ({
    before: age === undefined ? undefined : new Date(now - age).toISOString(),
    keepQueries: hotQueries,
    settledBefore: new Date(now - RESULT_MS).toISOString(),
    // The least number of queries of a period: without it, each minute would make a new period.
    leastQueries: Math.min(PERIOD_QUERIES, Math.ceil((hotQueries ?? Infinity) / 10)),
    leastMs: Math.min(DAY_MS, (age ?? Infinity) / 4),
  })
}

export function startArchivingQueries(deps: ArchivingQueriesDeps): ArchivingQueries {
  const { config, connection, files, clock, logger, meters } = deps
  const policyOf = queryArchivePolicyOf(config)
  let stopped = false
  let running = false
  let asked = false
  let timer: NodeJS.Timeout | undefined

  async function round(): Promise<void> {
    try {
      const policy = policyOf?.(clock.now())
      const writtenBefore = policy && (await deps.logBegins?.())
      const made = await archiveQueries(
        { ...files, database: connection, isStopped: () => stopped, hasRoom },
        policy && { ...policy, ...(writtenBefore !== undefined && { writtenBefore }) },
      )
      if (policyOf) meters().count('archiveRounds', { result: 'done' })
      if (made.length === 0) return
      const queries = made.reduce((sum, period) => sum + period.queries, 0)
      logger.info(
        'archive.done',
        { queries, periods: made.length },
        'Queries moved from the read models to files of the archive',
      )
    } catch (error) {
      if (stopped) return
      meters().count('archiveRounds', { result: 'failed' })
      logger.error(
        'archive.trouble',
        { err: error },
        'Queries could not be archived; they stay in the read models, and the coordinator tries again',
      )
    }
  }

  /** Whether the disk has room for this number of bytes above the configured minimum. */
  async function hasRoom(bytes: number): Promise<boolean> {
    return (await deps.freeBytes(resolve(files.folder))) - bytes > config.limits.diskFloorBytes
  }

  async function goOn(): Promise<void> {
    if (stopped || running) return
    running = true
    clearTimeout(timer)
    do {
      asked = false
      await round()
    } while (asked && !stopped)
    running = false
    if (policyOf && !stopped) timer = setTimeout(() => void goOn(), roundMs).unref()
  }

  const roundMs = Math.max(1000, Math.min(ROUND_MS, config.timeouts.archiveQueriesAfterMs ?? ROUND_MS))
  // If the read models never catch up, their rows differ from the log.
  deps.caughtUp.then(goOn).catch(() => {})
  return {
    forget() {
      asked = true
      void goOn()
    },
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
