import pg from 'pg'
import type { Config } from '../../config/load-config.ts'
import type { QueryRows } from '../../events/projection.ts'
import { HISTORY_READS, RUNTIME_READS } from '../../protocol/query/history-read-queue.ts'
import { NotReadInTime } from '../../protocol/query/read-failure.ts'
import { nodeCode } from '../../shared/node-error.ts'
import { createHistoryMoments, type HistoryMoments } from '../../readmodels/history/read-history.ts'
import { timedRead, tracedRead } from '../../readmodels/read-telemetry.ts'
import type { ProcessTelemetry } from '../telemetry/process-telemetry.ts'

/**
 * Connections to Postgres by whose they are, so that what one kind of client asks keeps nobody else waiting.
 * `test/architecture.test.ts` says which file may use which.
 */
export interface DatabasePools {
  readonly pool: pg.Pool
  /** For what the process needs itself: take-over, recovery, audits, the archive. No client's question. */
  readonly ownRead: QueryRows
  /** For log-ins, sessions that ended, and renewals. */
  readonly logInRead: QueryRows
  /** For polls of queries of which no other coordinator says anything now: each looks at one query. */
  readonly pollRead: QueryRows
  /** For the resources that anybody may ask: `boundReads` lets few at once. */
  readonly clientRead: QueryRows
  /** For statements over `system.runtime`, and what those over `system.history` ask besides: in turns of users. */
  readonly statementRead: QueryRows
  /** For scans of the history. */
  readonly history: HistoryMoments
  end(): Promise<void>
}

/** At most; a pool opens a connection when it is needed, and closes it after ten idle seconds. */
const CONNECTIONS = {
  own: 8,
  logIns: 3,
  polls: 3,
  /** No fewer than `boundReads` lets begin. */
  clients: 8,
  /** One for each turn. */
  statements: RUNTIME_READS + HISTORY_READS,
}
/** A server that is stopped takes connections and never answers. */
const READ_WAITS = { connectionTimeoutMillis: 2000, query_timeout: 30_000 }

/** What the client for Postgres says of waits that ended has no code: a failure without one after so long is such a wait. */
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
  const open = (own: pg.PoolConfig): pg.Pool => {
    const pool = new pg.Pool({ ...connection, options: '-c search_path=m,quipu_log,public', ...READ_WAITS, ...own })
    pool.on('error', (error) =>
      telemetry.logger.warn('log.trouble', { err: error }, 'A connection to Postgres was lost'),
    )
    pools.push(pool)
    return pool
  }
  const readOf = (pool: pg.Pool): QueryRows => tracedRead(timedRead(pool, telemetry.meters), telemetry.spans)
  const { historyReadMs } = config.timeouts
  // What clients ask is ended by Postgres itself: nobody waits for a question that was given up.
  const asked = { statement_timeout: historyReadMs }
  const queued = { ...asked, connectionTimeoutMillis: 3 * historyReadMs }
  const pool = open({ max: CONNECTIONS.own })
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
