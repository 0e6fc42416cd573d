import type pg from 'pg'
import type { QueryRows } from '../../events/projection.ts'
import { readArchivedQueries, type ArchivedQueries } from '../archive/query-periods.ts'
import type { AnswerType, HistoryStatement } from './statement.ts'

/**
 * A value of an answer that fits JSON: times as ISO UTC, days as `2026-11-23`, whole numbers beyond 53 bits as digits.
 */
export type HistoryValue = string | number | boolean | null | readonly string[]

/** The history at one moment: the rows in the read models, and the rows that had left them by then. */
export interface HistoryMoment {
  readonly archived: ArchivedQueries
  /**
   * Returns the rows of a statement in pages. Reading ends when the caller stops. Only one statement may run at a time.
   */
  pages(statement: HistoryStatement, rowsAtATime: number): AsyncGenerator<readonly (readonly unknown[])[]>
  /** Ends the transaction; may be called twice. */
  end(): Promise<void>
}

export type HistoryMoments = () => Promise<HistoryMoment>

/**
 * Makes snapshots that are read through a cursor: only one page is in memory, and all rows are of one moment, even
 * while others write.
 * @param pool its statements have a time limit of their own
 */
export function createHistoryMoments(pool: Pick<pg.Pool, 'connect'>): HistoryMoments {
  return async () => {
    const client = await pool.connect()
    let open = true
    let broken: Error | undefined
    const release = (error?: Error): void => {
      if (open) client.release(error)
      open = false
    }
    const query: QueryRows = async (text, values) =>
      (await client.query<Record<string, unknown>>(text, [...values])).rows
    try {
      await client.query('begin isolation level repeatable read read only; set local cursor_tuple_fraction = 1')
      const archived = await readArchivedQueries(query)
      return {
        archived,
        async *pages({ text, values }, rowsAtATime) {
          try {
            await client.query(`declare history no scroll cursor for ${text}`, [...values])
            for (;;) {
              const { rows } = await client.query<unknown[]>({
                text: `fetch forward ${rowsAtATime} from history`,
                rowMode: 'array',
              })
              if (rows.length > 0) yield rows
              if (rows.length < rowsAtATime) break
            }
          } catch (error) {
            broken = error as Error
            throw error
          } finally {
            if (!broken) await client.query('close history')
          }
        },
        async end() {
          // A broken statement is not waited for: its connection is closed.
          if (broken) return release(broken)
          if (open) await client.query('rollback').then(() => release(), release)
        },
      }
    } catch (error) {
      release(error as Error)
      throw error
    }
  }
}

/** Converts a value from Postgres' driver. */
export function historyValue(value: unknown, type: AnswerType): HistoryValue {
  if (value === null || value === undefined) return null
  switch (type) {
    case 'text':
    case 'date':
      return String(value)
    case 'bigint': {
      const number = Number(value)
      return Number.isSafeInteger(number) ? number : String(value)
    }
    case 'double precision':
      return Number(value)
    case 'boolean':
      return value === true
    case 'timestamptz':
      return (value as Date).toISOString()
    case 'jsonb':
      return Array.isArray(value) ? value.map(String) : null
  }
}
