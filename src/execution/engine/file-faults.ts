import { basename, dirname } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { EngineWork } from './engine-work.ts'

/** What a statement reads, and how its files are named to users. */
export interface FilesRead {
  /** Absolute. */
  readonly paths: readonly string[]
  /** Folders with trailing slash: how far a path leads to them is no user's business. */
  readonly roots: readonly string[]
  readonly exists: (path: string) => boolean
}

/** A beginning of DuckDB's text with the file's name at `before` and behind, and what is wrong then. */
type Named = readonly [before: string, after: string, wrong: string]

const BAD_DATA: readonly Named[] = [
  ["Invalid Input Error: No magic bytes found at end of file '", "'", 'It does not end as Parquet files do'],
  ["Invalid Input Error: File '", "' too small to be a Parquet file", 'It is too small'],
  ["Invalid Input Error: Footer length error in file '", "'", 'Its footer has no length that is possible'],
  ['IO Error: Could not read enough bytes from file "', '"', 'It ends before its data'],
  ['Invalid Input Error: Failed to read file "', '"', 'Its data cannot be decoded'],
  ['Invalid Input Error: Invalid string encoding found in Parquet file "', '"', 'A text in it is not valid UTF-8'],
  ['Conversion Error: Error while reading file "', '"', 'A value in it has not the type of its column'],
  ['Invalid Input Error: Malformed JSON in file "', '"', 'It is not valid JSON'],
  ['Invalid Input Error: JSON transform error in file "', '"', 'A value in it has not the type of its column'],
  ['IO Error: Input is not a GZIP stream: ', '\n', 'It is not compressed as its name says'],
]

const NOT_OPENED: readonly (readonly [before: string, after: string])[] = [
  ['IO Error: No files found that match the pattern "', '"'],
  ['IO Error: Cannot open file "', '": No such file or directory'],
]

/** Names the file further down, in a line of its own. */
const CSV = /^(?:Conversion|Invalid Input) Error: CSV Error on Line: (\d+)\n/

/** Of Thrift, which reads footers and headers of pages, of what inflates pages, and of values: they know of no file. */
const NAMELESS: readonly (readonly [text: RegExp, wrong: string])[] = [
  [
    /^Invalid Error: (?:don't know what type: |invalid TType|T(?:Protocol|Transport)Exception|Variable-length int over|Out of buffer)/,
    'Its metadata cannot be read as that of Parquet',
  ],
  [/^Invalid Error: Failed to decompress GZIP block: /, 'Its data cannot be decoded'],
  [/^Conversion Error: Could not convert Timestamp\(MS\) to /, 'A timestamp in it is beyond what can be read'],
  [/^Not implemented Error: Duplicate name "/, 'Names in an object of it differ only in case'],
]

/**
 * A fault of a file that the statement reads, as Trino's Hive connector tells it. Texts are compared from their first
 * character on, and with names of files that are known: no value in a statement or a file can pass for one.
 */
export function fileFault(text: string, files: FilesRead): EngineError | undefined {
  const { paths, roots, exists } = files
  const bad = (path: string, wrong: string): EngineError =>
    new EngineError('HIVE_BAD_DATA', `Malformed file. ${wrong} [${told(path, roots)}]`)
  for (const [before, after, wrong] of BAD_DATA) {
    const path = namedIn(text, before, after, paths)
    if (path !== undefined) return bad(path, wrong)
  }
  for (const [before, after] of NOT_OPENED) {
    const path = namedIn(text, before, after, paths)
    // DuckDB says the same of a file in a folder that it may not enter.
    if (path !== undefined && !exists(path))
      return new EngineError('HIVE_CANNOT_OPEN_SPLIT', `Error opening split ${told(path, roots)}: It does not exist`)
  }
  const line = CSV.exec(text)?.[1]
  if (line !== undefined) {
    const path = paths.find((one) => text.includes(`\n  file = ${one}\n`))
    if (path !== undefined) return bad(path, `Line ${line} cannot be read as a row of the table`)
  }
  const wrong = NAMELESS.find(([pattern]) => pattern.test(text))?.[1]
  const [path, ...others] = new Set(paths)
  if (wrong === undefined || path === undefined) return undefined
  if (others.length === 0) return bad(path, wrong)
  const count = others.length + 1
  return new EngineError(
    'HIVE_BAD_DATA',
    `Malformed file. ${wrong} [one of ${count} files of ${told(`${dirname(path)}/`, roots)}]`,
  )
}

/** The files that a statement or a connector's question reads. */
export function pathsOf(asks: EngineWork['asks']): readonly string[] {
  if (asks.kind === 'files') return asks.question.paths
  return asks.query.scans.flatMap((parts) =>
    parts.flatMap((part) => {
      switch (part.kind) {
        case 'parquet':
          return part.ranges.map(({ path }) => path)
        case 'csv':
        case 'json':
          return [part.path]
        case 'rows':
        case 'empty':
          return []
        default:
          return unreachable(part)
      }
    }),
  )
}

function namedIn(text: string, before: string, after: string, paths: readonly string[]): string | undefined {
  if (!text.startsWith(before)) return undefined
  // Some texts end with the name.
  return paths.find((path) => `${text}\n`.startsWith(path + after, before.length))
}

/** A file as users may know it: from its catalog's folder on. */
function told(path: string, roots: readonly string[]): string {
  const root = roots.filter((one) => path.startsWith(one)).toSorted((a, b) => b.length - a.length)[0]
  if (root === undefined) return basename(path)
  return path === root ? 'the catalog' : path.slice(root.length)
}
