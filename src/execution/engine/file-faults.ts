import { basename, dirname } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { EngineWork } from './engine-work.ts'
import { textFaultOf } from './text-files/text-fault.ts'

/** The files that a statement reads, and how users see their names. */
export interface FilesRead {
  /** Absolute. */
  readonly paths: readonly string[]
  /** Folders with trailing slash: users must not see the part of a path that leads to them. */
  readonly roots: readonly string[]
  readonly exists: (path: string) => boolean
}

/** The beginning of DuckDB's text, around the file's name, and the fault that it means. */
type Named = readonly [before: string, after: string, wrong: string]

const BAD_DATA: readonly Named[] = [
  ["Invalid Input Error: No magic bytes found at end of file '", "'", 'It does not end as Parquet files do'],
  ["Invalid Input Error: File '", "' too small to be a Parquet file", 'It is too small'],
  ["Invalid Input Error: Footer length error in file '", "'", 'Its footer has no length that is possible'],
  ["Invalid Input Error: Footer of file '", "' cannot be read", 'Its metadata cannot be read as that of Parquet'],
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

/** DuckDB names the file further down, in a line of its own. */
const CSV = /^(?:Conversion|Invalid Input) Error: CSV Error on Line: (\d+)\n/

const CSV_STATE = 'Invalid Input Error: The CSV Parser state machine reached an invalid state.'
/** Follows the name of a JSON file. */
const JSON_POSITION = /^"(?:, at byte \d+)?,? in (line|record\/value) (\d+):/

/**
 * Texts without a file's name: from Thrift (which reads footers and page headers), from decompression, and from values.
 */
const NAMELESS: readonly (readonly [text: RegExp, wrong: string])[] = [
  [
    /^Invalid Error: (?:don't know what type: |invalid TType|T(?:Protocol|Transport)Exception|Variable-length int over|Out of buffer)/,
    'Its metadata cannot be read as that of Parquet',
  ],
  [/^Invalid Error: Failed to decompress GZIP block: /, 'Its data cannot be decoded'],
  [/^Conversion Error: Could not convert Timestamp\(MS\) to /, 'A timestamp in it is beyond what can be read'],
  [/^Not implemented Error: Duplicate name "/, 'Names in an object of it differ only in case'],
]

/** Features that Parquet allows and DuckDB's reader does not support. */
const UNSUPPORTED: readonly (readonly [text: RegExp, what: string])[] = [
  [
    /^Invalid Error: BYTE_STREAM_SPLIT encoding is only supported for FLOAT or DOUBLE data/,
    'a column is in the encoding BYTE_STREAM_SPLIT and neither real nor double',
  ],
  [/^(?:Not implemented|Invalid) Error: Unsupported compression codec/, 'its compression is unknown'],
  [/^(?:IO|Invalid Input) Error: [^\n]*\b(?:encrypted|encryption)\b/i, 'it is encrypted'],
]

/** Errors that DuckDB's file readers throw, and that no function in a statement throws. */
const OF_READERS = /^(?:Invalid|IO|Serialization|Not implemented) Error: /

/**
 * A fault of a file that the statement reads, in the words of Trino's Hive connector. Texts are compared from their
 * first character on, and with the names of known files, so that no value in a statement or a file can imitate one.
 */
export function fileFault(text: string, files: FilesRead): EngineError | undefined {
  const { paths, roots, exists } = files
  const bad = (path: string, wrong: string): EngineError =>
    new EngineError('HIVE_BAD_DATA', `Malformed file. ${wrong} [${shownPath(path, roots)}]`)
  for (const path of paths) {
    const wrong = textFaultOf(text, path)
    if (wrong !== undefined) return bad(path, wrong)
  }
  for (const [before, after, wrong] of BAD_DATA) {
    const path = namedIn(text, before, after, paths)
    if (path !== undefined) return bad(path, placed(wrong, text.slice(before.length + path.length)))
  }
  for (const [before, after] of NOT_OPENED) {
    const path = namedIn(text, before, after, paths)
    // DuckDB gives the same text for a file in a folder that it may not enter.
    if (path !== undefined && !exists(path))
      return new EngineError(
        'HIVE_CANNOT_OPEN_SPLIT',
        `Error opening split ${shownPath(path, roots)}: It does not exist`,
      )
  }
  const line = CSV.exec(text)?.[1]
  if (line !== undefined || text.startsWith(CSV_STATE)) {
    const path = paths.find((one) => text.includes(`\n  file = ${one}\n`))
    const what = line === undefined ? 'A line of it' : `Line ${line}`
    if (path !== undefined) return bad(path, `${what} cannot be read as a row of the table`)
  }
  const wrong = NAMELESS.find(([pattern]) => pattern.test(text))?.[1]
  if (paths.length === 0) return undefined
  if (wrong !== undefined) return new EngineError('HIVE_BAD_DATA', `Malformed file. ${wrong} [${oneOf(files, text)}]`)
  const unsupported = UNSUPPORTED.find(([pattern]) => pattern.test(text))?.[1]
  if (unsupported !== undefined)
    return new EngineError('NOT_SUPPORTED', `The engine cannot read this file: ${unsupported} [${oneOf(files, text)}]`)
  return undefined
}

/**
 * The error for an unknown text that comes from reading a file. Every text for a question about files does; a text for
 * a statement does if only DuckDB's readers, not its functions, give such errors.
 * @param cause DuckDB's text, for the log
 */
export function unknownFileFault(text: string, files: FilesRead, isQuestion: boolean): EngineError | undefined {
  if (files.paths.length === 0 || !(isQuestion || OF_READERS.test(text) || namesOne(text, files.paths)))
    return undefined
  const name = text.startsWith('Not implemented Error: ') ? 'NOT_SUPPORTED' : 'HIVE_CURSOR_ERROR'
  return new EngineError(name, `The engine cannot read this file [${oneOf(files, text)}]`, { cause: new Error(text) })
}

function namesOne(text: string, paths: readonly string[]): boolean {
  const said = withoutStatement(text)
  return paths.some((path) => said.includes(path))
}

/** Cuts the line of the statement that DuckDB may append to an error: that line names all files. */
function withoutStatement(text: string): string {
  return text.replace(/\n\nLINE \d+: [^]*$/, '')
}

/**
 * The file that the text names, or the only file; otherwise the folder of the first file, and how many files there are.
 */
function oneOf({ paths, roots }: FilesRead, text: string): string {
  const all = [...new Set(paths)]
  const said = withoutStatement(text)
  const path = all.length === 1 ? all[0]! : all.find((one) => said.includes(one))
  if (path !== undefined) return shownPath(path, roots)
  return `one of ${all.length} files of ${shownPath(`${dirname(all[0]!)}/`, roots)}`
}

/** The files that a statement or a connector's question reads. */
export function pathsOf(asks: EngineWork['asks']): readonly string[] {
  if (asks.kind === 'files') return 'path' in asks.question ? [asks.question.path] : asks.question.paths
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

/** @param rest the text behind the file's name */
function placed(wrong: string, rest: string): string {
  const [, unit, number] = JSON_POSITION.exec(rest) ?? []
  if (unit === undefined) return wrong
  // For invalid JSON, DuckDB names the line behind it.
  const at = rest.startsWith('", at byte') ? Number(number) - 1 : number
  return `${unit === 'line' ? 'Line' : 'Value'} ${at}: ${wrong}`
}

function namedIn(text: string, before: string, after: string, paths: readonly string[]): string | undefined {
  if (!text.startsWith(before)) return undefined
  // Some error texts end with the name of the file.
  return paths.find((path) => `${text}\n`.startsWith(path + after, before.length))
}

/** A file's path as users may see it: from its catalog's folder on. */
function shownPath(path: string, roots: readonly string[]): string {
  const root = roots.filter((one) => path.startsWith(one)).toSorted((a, b) => b.length - a.length)[0]
  if (root === undefined) return basename(path)
  return path === root ? 'the catalog' : path.slice(root.length)
}
