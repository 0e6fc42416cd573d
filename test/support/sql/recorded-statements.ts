import { readdirSync, readFileSync } from 'node:fs'

/** A statement with the answer of a Trino 476 server. */
export interface RecordedStatement {
  readonly id: string
  readonly sql: string
  /** Absent if the statement succeeded. */
  readonly errorName?: string
  readonly message?: string
  readonly line?: number
  readonly column?: number
}

function jsonLines(url: URL): readonly Record<string, unknown>[] {
  return readFileSync(url, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** All topics of the conformance corpus. */
export function conformanceStatements(): readonly RecordedStatement[] {
  const folder = new URL('../../conformance/', import.meta.url)
  return readdirSync(folder)
    .filter((file) => file.endsWith('.jsonl') && !file.startsWith('extra-'))
    .flatMap((file) => jsonLines(new URL(file, folder)))
    .map((line) => {
      const error = line['error'] as { errorName: string } | undefined
      return { id: String(line['id']), sql: String(line['sql']), ...(error && { errorName: error.errorName }) }
    })
}

/** Statements that Trino refused, with message and position of the error. */
export function refusedStatements(): readonly RecordedStatement[] {
  return jsonLines(new URL('../../fixtures/analyzer-errors.jsonl', import.meta.url)).map((line, index) => ({
    id: `analyzer-errors:${index + 1}`,
    sql: String(line['sql']),
    ...(typeof line['errorName'] === 'string' && { errorName: line['errorName'] }),
    ...(typeof line['message'] === 'string' && { message: line['message'] }),
    ...(typeof line['line'] === 'number' && { line: line['line'] }),
    ...(typeof line['column'] === 'number' && { column: line['column'] }),
  }))
}
