import type { FileQuestion } from '../../src/connectors/spi/table-source.ts'
import { questionText } from '../../src/execution/engine/scan-text.ts'
import { translateError } from '../../src/sql/functions/runtime-errors.ts'
import type { Rows } from './duckdb.ts'

/** Answers connectors' questions as an engine does, by a DuckDB of the test's own process. */
export function inspectedBy(duckdb: { query(sql: string): Promise<Rows> }): (question: FileQuestion) => Promise<Rows> {
  return (question) =>
    duckdb.query(questionText(question)).catch((error: Error) => {
      throw translateError(error.message)
    })
}
