import pg from 'pg'
import type { Config } from '../../config/load-config.ts'
import type { QueryRows } from '../../events/projection.ts'
import { HISTORY_READS } from '../../protocol/query/history-turns.ts'
import { createHistoryMoments, type HistoryMoments } from '../../readmodels/history/read-history.ts'
import { timedRead, tracedRead } from '../../readmodels/read-telemetry.ts'
import type { ProcessTelemetry } from '../telemetry/process-telemetry.ts'

/** Connections to the read models, for this process itself and for its clients. */
export interface DatabasePools {
  readonly pool: pg.Pool
  readonly read: QueryRows
  /** For what anybody may ask: few at once, and none takes long. */
  readonly clientRead: QueryRows
  /** For scans of the history. */
  readonly history: HistoryMoments
  end(): Promise<void>
}

/** For reads that this process needs itself. */
const OWN_CONNECTIONS = 8
/** For reads of history that clients ask for: no fewer than may run at once. */
const CLIENT_CONNECTIONS = 8
/** A server that is stopped takes connections and never answers. */
const READ_WAITS = { connectionTimeoutMillis: 2000, query_timeout: 30_000 }

export function openPools(connection: pg.ClientConfig, config: Config, telemetry: ProcessTelemetry): DatabasePools {
  const open = (own: pg.PoolConfig): pg.Pool => {
    const pool = new pg.Pool({ ...connection, options: '-c search_path=m,quipu_log,public', ...READ_WAITS, ...own })
    pool.on('error', (error) =>
      telemetry.logger.warn('log.trouble', { err: error }, 'A connection to Postgres was lost'),
    )
    return pool
  }
  const readOf = (pool: pg.Pool): QueryRows => tracedRead(timedRead(pool, telemetry.meters), telemetry.spans)
  const pool = open({ max: OWN_CONNECTIONS })
  // What clients ask of history waits for each other, and for nothing that this process needs itself.
  const clients = open({ max: CLIENT_CONNECTIONS, statement_timeout: config.timeouts.historyReadMs })
  const { historyReadMs } = config.timeouts
  const history = open({
    max: HISTORY_READS,
    statement_timeout: historyReadMs,
    connectionTimeoutMillis: 3 * historyReadMs,
  })
  return {
    pool,
    read: readOf(pool),
    clientRead: readOf(clients),
    history: createHistoryMoments(history),
    async end() {
      await pool.end()
      await clients.end()
      await history.end()
    },
  }
}
