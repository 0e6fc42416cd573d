/** DuckDB's functions that read files. */
import { quoteText } from '../../connectors/spi/duckdb-text.ts'
import type { ParquetRange } from '../../connectors/spi/parquet-scan.ts'
import { RefusedStatement } from './statement-tokens.ts'

const READERS = { parquet: 'read_parquet', csv: 'read_csv', json: 'read_json' } as const

/** @param files a file, or a list of files, as `fileText` names them */
export function readerText(format: keyof typeof READERS, files: string, options: readonly string[] = []): string {
  // A folder called `a=1` is not a column `a`, and must not replace the file's own.
  const own = ['hive_partitioning=false']
  // The bounds in a footer leave out NaN; DuckDB treats NaN as the largest number.
  if (format === 'parquet') own.push('can_have_nan=true')
  return `${READERS[format]}(${[files, ...own, ...options].join(', ')})`
}

/**
 * The path of exactly this file: DuckDB's readers treat paths as patterns.
 * @throws RefusedStatement for a path that no pattern can name
 */
export function fileText(path: string): string {
  if (!/[*?[]/.test(path)) return quoteText(path)
  // A pattern cannot contain a backslash: DuckDB treats it as an escape, and as the end of a folder's name.
  if (path.includes('\\')) throw new RefusedStatement('a path with a backslash and a mark of patterns', 0)
  return quoteText(path.replaceAll(/[*?[]/g, '[$&]'))
}

export function wholeNumberText(value: unknown): string {
  if (!Number.isSafeInteger(value)) throw new RefusedStatement('a whole number that is none', 0)
  return String(value)
}

/** Joins ranges of one file that touch. */
export function joinTouching(ranges: readonly ParquetRange[]): ParquetRange[] {
  const sorted = [...ranges].sort((a, b) => (a.path === b.path ? a.firstRow - b.firstRow : a.path < b.path ? -1 : 1))
  const joined: ParquetRange[] = []
  for (const range of sorted) {
    const last = joined.at(-1)
    if (last && last.path === range.path && last.firstRow + last.rows === range.firstRow) {
      joined[joined.length - 1] = { ...last, rows: last.rows + range.rows }
    } else joined.push(range)
  }
  return joined
}
