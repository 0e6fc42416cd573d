import type pg from 'pg'
import type { QueryRows } from '../../events/projection.ts'
import { readArchivedQueries, type ArchivedQueries } from '../archive/query-periods.ts'
import type { AnswerType, HistoryStatement } from './statement.ts'

/** A value of an answer as it fits JSON: times as ISO UTC, days as `2026-11-23`, whole numbers beyond 53 bits as digits. */
export type HistoryValue = string | number | boolean | null | readonly string[]

/** The history at one moment: what is in the read models, and what had left them then. */
export interface HistoryMoment {
  readonly archived: ArchivedQueries
  /** Rows of a statement, so many at a time; who stops early stops the reading. One after the other. */
  pages(statement: HistoryStatement, rowsAtATime: number): AsyncGenerator<readonly (readonly unknown[])[]>
  /** Lets go of the moment; may be called twice. */
  end(): Promise<void>
}

export type HistoryMoments = () => Promise<HistoryMoment>

/**
 * Reads through a cursor: no more of an answer is in memory than one page, and all is of one moment, whatever is written meanwhile.
 * @param pool its statements end after a time of their own
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
          // What was broken off is not waited for: the connection goes with it.
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

/** A value as Postgres' driver gives it. */
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
