import type pg from 'pg'
import type { AnswerType, HistoryStatement } from './statement.ts'

/** A value of an answer as it fits JSON: times as ISO UTC, days as `2026-11-23`, whole numbers beyond 53 bits as digits. */
export type HistoryValue = string | number | boolean | null | readonly string[]

/** Rows of a statement, so many at a time; who stops early stops the reading. */
export type HistoryPages = (
  statement: HistoryStatement,
  rowsAtATime: number,
) => AsyncGenerator<readonly (readonly unknown[])[]>

/**
 * Reads through a cursor: no more of an answer is in memory than one page, and it is of one moment, whatever is written meanwhile.
 * @param pool its statements end after a time of their own
 */
export function createHistoryPages(pool: Pick<pg.Pool, 'connect'>): HistoryPages {
  return async function* ({ text, values }, rowsAtATime) {
    const client = await pool.connect()
    let failed: Error | boolean = true
    try {
      await client.query('begin read only; set local cursor_tuple_fraction = 1')
      await client.query(`declare history no scroll cursor for ${text}`, [...values])
      for (;;) {
        const { rows } = await client.query<unknown[]>({
          text: `fetch forward ${rowsAtATime} from history`,
          rowMode: 'array',
        })
        if (rows.length > 0) yield rows
        if (rows.length < rowsAtATime) break
      }
      failed = false
    } finally {
      // What was broken off is not waited for: the connection goes with it.
      if (failed !== false) client.release(failed)
      else
        await client.query('rollback').then(
          () => client.release(),
          (error: Error) => client.release(error),
        )
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
