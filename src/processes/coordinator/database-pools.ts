import pg from 'pg'
import type { Config } from '../../config/load-config.ts'
import { PatientPool } from '../../events/postgres/patient-pool.ts'
import type { QueryRows } from '../../events/projection.ts'
import { HISTORY_READS, RUNTIME_READS } from '../../protocol/query/history-read-queue.ts'
import { NotReadInTime } from '../../protocol/query/read-failure.ts'
import { nodeCode } from '../../shared/node-error.ts'
import { createHistoryMoments, type HistoryMoments } from '../../readmodels/history/read-history.ts'
import { timedRead, tracedRead } from '../../readmodels/read-telemetry.ts'
import type { ProcessTelemetry } from '../telemetry/process-telemetry.ts'

/**
 * Pools of connections to Postgres by purpose, so that one kind of client's reads delay no other kind.
 * `test/architecture.test.ts` says which file may use which pool.
 */
export interface DatabasePools {
  readonly pool: pg.Pool
  /** For the process itself: take-over, recovery, audits, the archive. Not for questions of clients. */
  readonly ownRead: QueryRows
  /** For log-ins, sessions that ended, and renewals. */
  readonly logInRead: QueryRows
  /** For polls of queries that no other coordinator knows now. Each reads one query. */
  readonly pollRead: QueryRows
  /** For the resources that all clients may read: `boundReads` lets few run at once. */
  readonly clientRead: QueryRows
  /** For statements over `system.runtime`, and for further reads of those over `system.history`. Users take turns. */
  readonly statementRead: QueryRows
  /** For scans of the history. */
  readonly history: HistoryMoments
  end(): Promise<void>
}

/** Upper limits. A pool opens a connection when it needs one, and closes it after ten idle seconds. */
const CONNECTIONS = {
  own: 8,
  logIns: 3,
  polls: 3,
  /** At least the number of reads that `boundReads` lets run. */
  clients: 8,
  /** One connection for each read that may run. */
  statements: RUNTIME_READS + HISTORY_READS,
}
/** A stopped server accepts connections and never answers. */
const READ_WAITS = { connectionTimeoutMillis: 2000, query_timeout: 30_000 }

/**
 * Recognizes timeouts: the Postgres client reports them without a code, so a failure without a code after this time
 * counts as one.
 */
function inTime(read: QueryRows, waitMs: number): QueryRows {
  const longest = Math.min(waitMs, READ_WAITS.query_timeout)
  return async (text, values) => {
    const began = performance.now()
    try {
      return await read(text, values)
    } catch (error) {
      if (nodeCode(error) !== undefined || performance.now() - began < longest) throw error
      throw new NotReadInTime('The database did not answer in time', { cause: error })
    }
  }
}

export function openPools(connection: pg.ClientConfig, config: Config, telemetry: ProcessTelemetry): DatabasePools {
  const pools: pg.Pool[] = []
  const open = (own: pg.PoolConfig, make = (config: pg.PoolConfig) => new pg.Pool(config)): pg.Pool => {
    const pool = make({ ...connection, options: '-c search_path=m,quipu_log,public', ...READ_WAITS, ...own })
    pool.on('error', (error) =>
      telemetry.logger.warn('log.trouble', { err: error }, 'A connection to Postgres was lost'),
    )
    pools.push(pool)
    return pool
  }
  const readOf = (pool: pg.Pool): QueryRows => tracedRead(timedRead(pool, telemetry.meters), telemetry.spans)
  const { historyReadMs } = config.timeouts
  // Postgres itself ends reads of clients, so that it does not work on reads that were given up.
  const asked = { statement_timeout: historyReadMs }
  const queued = { ...asked, connectionTimeoutMillis: 3 * historyReadMs }
  // A burst of the process's own reads must not look like an outage.
  const pool = open({ max: CONNECTIONS.own }, (config) => new PatientPool(config))
  return {
    pool,
    ownRead: readOf(pool),
    logInRead: readOf(open({ ...asked, max: CONNECTIONS.logIns })),
    pollRead: readOf(open({ ...asked, max: CONNECTIONS.polls })),
    clientRead: readOf(open({ ...asked, max: CONNECTIONS.clients })),
    statementRead: inTime(readOf(open({ ...queued, max: CONNECTIONS.statements })), queued.connectionTimeoutMillis),
    history: createHistoryMoments(open({ ...queued, max: HISTORY_READS })),
    async end() {
      for (const one of pools) await one.end()
    },
  }
}
