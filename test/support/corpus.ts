import { isDeepStrictEqual } from 'node:util'
import { EngineError } from '../../src/shared/engine-error.ts'

/** A line of `test/conformance/*.jsonl`. The README there describes the fields. */
export interface CorpusEntry {
  readonly id: string
  readonly sql: string
  readonly ordered?: boolean
  readonly rows_checked?: boolean
  readonly columns?: readonly { readonly name: string; readonly type: string }[]
  readonly rows?: readonly (readonly unknown[])[]
  readonly error?: { readonly errorName: string; readonly errorType: string }
  /** The position of the error in Trino; in the further statements only. */
  readonly location?: { readonly lineNumber: number; readonly columnNumber: number }
}

interface Answer {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly (readonly unknown[])[]
}

/** Runs a statement. @returns the difference from the recorded answer, or undefined */
export async function differenceOf(
  entry: CorpusEntry,
  run: (sql: string) => Promise<Answer>,
): Promise<string | undefined> {
  try {
    const answer = await run(entry.sql)
    if (entry.error !== undefined) return `succeeded, expected ${entry.error.errorName}`
    return compareAnswers(entry, answer)
  } catch (error) {
    if (!(error instanceof EngineError)) return `not an EngineError: ${String(error)}`
    const { errorName, location, message } = error
    if (errorName !== entry.error?.errorName) return `${errorName}: ${message}`
    if (entry.location === undefined || isDeepStrictEqual(entry.location, location)) return undefined
    return `${errorName} at ${JSON.stringify(location)}, expected ${JSON.stringify(entry.location)}`
  }
}

/** The difference from the recorded answer, or undefined. */
export function compareAnswers(entry: CorpusEntry, answer: Answer): string | undefined {
  const wanted = entry.columns ?? []
  const describe = (columns: Answer['columns']): string => columns.map(({ name, type }) => `${name} ${type}`).join(', ')
  if (describe(wanted) !== describe(answer.columns)) {
    return `columns ${describe(answer.columns)}, expected ${describe(wanted)}`
  }
  if (entry.rows_checked === false) return undefined
  const types = wanted.map((column) => column.type)
  const rows = entry.rows ?? []
  if (rows.length !== answer.rows.length) return `${answer.rows.length} rows, expected ${rows.length}`
  const same = (a: readonly unknown[], b: readonly unknown[]): boolean =>
    a.length === b.length && a.every((value, i) => sameValue(value, b[i], types[i] ?? ''))
  const left = [...rows]
  for (const [i, row] of answer.rows.entries()) {
    const found = entry.ordered === true ? (same(row, rows[i]!) ? 0 : -1) : left.findIndex((each) => same(row, each))
    if (found < 0)
      return `row ${i} ${JSON.stringify(row)}, expected ${JSON.stringify(entry.ordered ? rows[i] : left[0])}`
    if (entry.ordered !== true) left.splice(found, 1)
  }
  return undefined
}

/** Compares numbers with the tolerance of their type, maps in any order of keys, and other values exactly. */
function sameValue(a: unknown, b: unknown, type: string): boolean {
  if (a === b) return true
  if (typeof a === 'number' && typeof b === 'number') {
    const tolerance = /\breal\b/.test(type) ? 1e-5 : /\bdouble\b/.test(type) ? 1e-9 : 0
    return Math.abs(a - b) <= tolerance * Math.max(Math.abs(a), Math.abs(b))
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => sameValue(item, b[i], type))
  }
  if (isRecord(a) && isRecord(b)) {
    const keys = Object.keys(a)
    return keys.length === Object.keys(b).length && keys.every((key) => key in b && sameValue(a[key], b[key], type))
  }
  return false
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
