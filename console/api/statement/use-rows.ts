import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { ResultColumn, Row } from './formats.ts'
import { answersOf } from './read-rows.ts'
import { EMPTY_SESSION, sourceName } from './session.ts'

interface Rows {
  readonly columns: readonly ResultColumn[]
  readonly rows: readonly Row[]
}

/** The rows of a statement of the console itself, once. @param sql undefined: nothing is asked yet */
export function useRows(sql: string | undefined) {
  return useQuery<Rows>({
    queryKey: ['rows', sql],
    enabled: sql !== undefined,
    placeholderData: keepPreviousData,
    // Each read of the record adds a query to the record, so the page does not repeat a read without need.
    staleTime: Infinity,
    async queryFn({ signal }): Promise<Rows> {
      const rows: Row[] = []
      let columns: readonly ResultColumn[] = []
      for await (const answer of answersOf(sql ?? '', { ...EMPTY_SESSION, ...sourceName('record') }, signal)) {
        columns = answer.columns ?? columns
        rows.push(...answer.rows)
      }
      return { columns, rows }
    },
  })
}
