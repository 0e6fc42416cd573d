import type { FileQuestion } from '../../src/connectors/spi/table-source.ts'
import { existsSync } from 'node:fs'
import { answerToFiles } from '../../src/execution/engine/file-answers.ts'
import { fileFault } from '../../src/execution/engine/file-faults.ts'
import { answerOfFile, isTextQuestion } from '../../src/execution/engine/text-files/answer-text.ts'
import { translateError } from '../../src/sql/functions/runtime-errors.ts'
import type { Rows } from './duckdb.ts'

/** Inspects files for connectors as an engine does, with a DuckDB in the process of the test. */
export function inspectedBy(duckdb: { query(sql: string): Promise<Rows> }): (question: FileQuestion) => Promise<Rows> {
  return async (question) => {
    const answer = isTextQuestion(question)
      ? answerOfFile(question, ['/'])
      : (answerToFiles(question, (sql) => duckdb.query(sql)) as Promise<Rows>)
    return answer.catch((error: Error) => {
      const paths = 'path' in question ? [question.path] : question.paths
      throw fileFault(error.message, { paths, roots: [], exists: existsSync }) ?? translateError(error.message)
    })
  }
}

/** Runs a statement over the files of a scan. Errors about a file are those of an engine. */
export function queryFiles(duckdb: { query(sql: string): Promise<Rows> }, scan: string, sql: string): Promise<Rows> {
  const paths = [...scan.matchAll(/read_(?:csv|json)\('([^']*)'/g)].map(([, path]) => path!)
  return duckdb.query(sql).catch((error: Error) => {
    throw fileFault(error.message, { paths, roots: [], exists: existsSync }) ?? error
  })
}
