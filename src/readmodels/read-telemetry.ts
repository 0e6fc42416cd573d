import type { QueryRows } from '../events/projection.ts'
import { sqlSpan } from '../events/telemetry/commit-spans.ts'
import { attributes as names } from '../telemetry/attribute-names.ts'
import { currentSpan } from '../telemetry/current-span.ts'
import type { Meters } from '../telemetry/meters.ts'
import type { SpanSink } from '../telemetry/span.ts'
import { countedClass } from '../events/postgres/database-error.ts'
import { nodeCode } from '../shared/node-error.ts'

/** Wraps reads of the read models: times them, and counts errors by their SQLSTATE class. */
export function timedRead(
  pool: { query(text: string, values: unknown[]): Promise<{ rows: Record<string, unknown>[] }> },
  meters: () => Meters,
): QueryRows {
  return async (text, values) => {
    const start = performance.now()
    try {
      return (await pool.query(text, [...values])).rows
    } catch (error) {
      countPostgresError(meters(), error)
      throw error
    } finally {
      meters().observe('postgresQueryDuration', { operation: 'read' }, (performance.now() - start) / 1000)
    }
  }
}

/** Figures of a pool of connections to Postgres. */
export interface PoolFigures {
  readonly totalCount: number
  readonly idleCount: number
  readonly waitingCount: number
  readonly options: { readonly max: number }
}

/** Reports the connections to Postgres before each scrape. */
export function observePool(pool: PoolFigures, meters: Meters): void {
  meters.onScrape(() => {
    meters.set('postgresConnections', { state: 'idle' }, pool.idleCount)
    meters.set('postgresConnections', { state: 'used' }, pool.totalCount - pool.idleCount)
    meters.set('postgresConnections', { state: 'limit' }, pool.options.max)
    meters.set('postgresConnections', { state: 'waiting' }, pool.waitingCount)
  })
}

export function countPostgresError(meters: Meters, error: unknown): void {
  meters.count('postgresErrors', { class: countedClass(error) })
}

/** Wraps reads of the read models: emits a span for each read that belongs to another span. */
export function tracedRead(read: QueryRows, spans: () => SpanSink): QueryRows {
  return async (text, values) => {
    const parent = currentSpan()
    if (!parent) return read(text, values)
    const start = performance.now()
    const startMs = Date.now()
    let failed: unknown
    try {
      return await read(text, values)
    } catch (error) {
      failed = error
      throw error
    } finally {
      const [, table = 'rows'] = FROM.exec(text) ?? []
      const span = sqlSpan('SELECT', table, text)
      const sqlState = nodeCode(failed)
      spans().emit([
        {
          ...span,
          traceId: parent.traceId,
          parentSpanId: parent.spanId,
          startMs,
          endMs: startMs + performance.now() - start,
          attributes: {
            ...span.attributes,
            ...(sqlState === undefined ? {} : { [names.dbStatus]: sqlState, [names.errorType]: sqlState }),
          },
          status: failed === undefined ? 'UNSET' : 'ERROR',
          links: [],
        },
      ])
    }
  }
}

const FROM = /\bfrom\s+"?(\w+)/i
