import { EMPTY_FORMAT, mysqlFormat } from '../../duckdb/datetime-shapes.ts'
import { integer, joined, literal, sql, type Sql } from '../../duckdb/text/sql.ts'

/**
 * The two format languages: date_format's (MySQL) and format_datetime's (Joda). The values are function names without
 * `u_`.
 */
export const MYSQL_FORMAT = 'date_format'
export const JODA_FORMAT = 'format_datetime'
export type FormatStyle = typeof MYSQL_FORMAT | typeof JODA_FORMAT

/** The value to print: the local time, rounded to milliseconds, and its zone and offset if it has a zone. */
interface Printed {
  readonly local: Sql
  readonly zoned: { readonly zone: Sql; readonly offset: Sql } | undefined
}

/**
 * A piece of a format: printed by strftime, or by an expression over the local time or the zone. `usual` is the
 * strftime format with the same output for years of four digits.
 */
type Piece =
  | { readonly strftime: string }
  | { readonly sql: (x: Sql) => Sql; readonly usual?: string }
  | { readonly ofZone: (zoned: NonNullable<Printed['zoned']>) => Sql }

/** A parsed format. */
export interface CompiledFormat {
  print(printed: Printed): Sql
  /** Whether the format prints the zone or the offset. */
  readonly usesZone: boolean
}

const mysql: Readonly<Record<string, Piece>> = {
  a: { strftime: '%a' },
  b: { strftime: '%b' },
  c: { strftime: '%-m' },
  d: { strftime: '%d' },
  e: { strftime: '%-d' },
  f: { strftime: '%g000' },
  H: { strftime: '%H' },
  h: { strftime: '%I' },
  I: { strftime: '%I' },
  i: { strftime: '%M' },
  j: { strftime: '%j' },
  k: { strftime: '%-H' },
  l: { strftime: '%-I' },
  M: { strftime: '%B' },
  m: { strftime: '%m' },
  p: { strftime: '%p' },
  r: { strftime: '%I:%M:%S %p' },
  S: { strftime: '%S' },
  s: { strftime: '%S' },
  T: { strftime: '%H:%M:%S' },
  v: { strftime: '%V' },
  W: { strftime: '%A' },
  Y: { sql: (x) => sql`ltrim(q_year(${x}), '+')`, usual: '%Y' },
  y: { sql: (x) => sql`lpad(CAST(abs(year(${x})) % 100 AS VARCHAR), 2, '0')`, usual: '%y' },
  x: { sql: (x) => sql`q_padded_year(isoyear(${x}))` },
  '%': { strftime: '%%' },
}

type Of = (x: Sql) => Sql

const text = (value: Of): Piece => ({ sql: (x) => sql`CAST(${value(x)} AS VARCHAR)` })
/** @param usual strftime formats for numbers of at least one digit, and for numbers of two digits */
const padded = (value: Of, digits: number, usual?: readonly [string, string]): Extract<Piece, { sql: Of }> => ({
  sql:
    digits === 1
      ? (x) => sql`CAST(${value(x)} AS VARCHAR)`
      : (x) =>
          sql`lpad(CAST(${value(x)} AS VARCHAR), greatest(${integer(digits)}, length(CAST(${value(x)} AS VARCHAR)))::INTEGER, '0')`,
  ...(usual !== undefined && digits <= 2 ? { usual: usual[digits - 1]! } : {}),
})
const year = (value: Of, count: number): Extract<Piece, { sql: Of }> => ({
  sql: (x) =>
    sql`(CASE WHEN ${value(x)} < 0 THEN '-' ELSE '' END || ${padded((y) => sql`abs(${value(y)})`, count).sql(x)})`,
  ...(count <= 4 ? { usual: '%Y' } : {}),
})

function joda(letter: string, count: number): Piece | undefined {
  switch (letter) {
    case 'y':
      return count === 2
        ? { sql: (x) => sql`lpad(CAST(abs(year(${x})) % 100 AS VARCHAR), 2, '0')`, usual: '%y' }
        : year((x) => sql`year(${x})`, count)
    case 'Y':
      return count === 2
        ? { sql: (x) => sql`lpad(CAST(q_year_of_era(${x}) % 100 AS VARCHAR), 2, '0')`, usual: '%y' }
        : year((x) => sql`q_year_of_era(${x})`, count)
    case 'x':
      return count === 2
        ? { sql: (x) => sql`lpad(CAST(abs(isoyear(${x})) % 100 AS VARCHAR), 2, '0')` }
        : { sql: year((x) => sql`isoyear(${x})`, count).sql }
    case 'M':
      if (count >= 4) return { strftime: '%B' }
      if (count === 3) return { strftime: '%b' }
      return { strftime: count === 2 ? '%m' : '%-m' }
    case 'd':
      return padded((x) => sql`day(${x})`, count, ['%-d', '%d'])
    case 'D':
      return padded((x) => sql`dayofyear(${x})`, count)
    case 'E':
      return { strftime: count >= 4 ? '%A' : '%a' }
    case 'e':
      return padded((x) => sql`isodow(${x})`, count)
    case 'w':
      return padded((x) => sql`week(${x})`, count)
    case 'a':
      return { strftime: '%p' }
    case 'H':
      return padded((x) => sql`hour(${x})`, count, ['%-H', '%H'])
    case 'h':
      return padded((x) => sql`((hour(${x}) + 11) % 12 + 1)`, count, ['%-I', '%I'])
    case 'K':
      return padded((x) => sql`(hour(${x}) % 12)`, count)
    case 'k':
      return padded((x) => sql`((hour(${x}) + 23) % 24 + 1)`, count)
    case 'm':
      return padded((x) => sql`minute(${x})`, count, ['%-M', '%M'])
    case 's':
      return padded((x) => sql`second(${x})`, count, ['%-S', '%S'])
    case 'S':
      return {
        sql: (x) =>
          count <= 3
            ? sql`left(strftime(${x}, '%g'), ${integer(count)})`
            : sql`rpad(strftime(${x}, '%g'), ${integer(count)}, '0')`,
        ...(count >= 3 ? { usual: `%g${'0'.repeat(count - 3)}` } : {}),
      }
    case 'G':
      return { sql: (x) => sql`CASE WHEN year(${x}) > 0 THEN 'AD' WHEN ${x} IS NOT NULL THEN 'BC' END` }
    case 'C':
      return text((x) => sql`q_year_of_era(${x}) // 100`)
    default:
      return undefined
  }
}

/**
 * Compiles a format that DuckDB can print. Returns an error if Trino refuses the format; undefined if only the general
 * function can print it (names of zones).
 */
export function compiledFormat(
  style: FormatStyle,
  given: string,
  zoned: boolean,
): CompiledFormat | { readonly error: string } | undefined {
  const format = style === MYSQL_FORMAT ? mysqlFormat(given) : given
  if (format === '') return { error: `INVALID_FUNCTION_ARGUMENT: ${EMPTY_FORMAT[style]}` }
  const pieces = style === MYSQL_FORMAT ? mysqlPieces(format) : jodaPieces(format, zoned)
  if (pieces === undefined || 'error' in pieces) return pieces
  return { print: (printed) => assemble(pieces, printed), usesZone: pieces.some((piece) => 'ofZone' in piece) }
}

function mysqlPieces(format: string): readonly Piece[] | { readonly error: string } {
  const pieces: Piece[] = []
  for (const [part] of format.matchAll(/%[^]|[^%]+|%$/g)) {
    if (!part.startsWith('%') || part === '%') {
      pieces.push({ strftime: part.replaceAll('%', '%%') })
      continue
    }
    const letter = part[1]!
    if ('DUuVwX'.includes(letter))
      return { error: `INVALID_FUNCTION_ARGUMENT: %${letter} not supported in date format string` }
    pieces.push(mysql[letter] ?? { strftime: letter })
  }
  return pieces
}

function jodaPieces(format: string, zoned: boolean): readonly Piece[] | { readonly error: string } | undefined {
  const pieces: Piece[] = []
  for (const [part] of format.matchAll(/''|'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+/g)) {
    if (part === "''") pieces.push({ strftime: "'" })
    else if (part.startsWith("'"))
      pieces.push({ strftime: part.slice(1, -1).replaceAll("''", "'").replaceAll('%', '%%') })
    else if (/^[A-Za-z]/.test(part)) {
      const letter = part[0]!
      if (!zoned && (letter === 'Z' || letter === 'z')) return { error: NO_ZONE }
      const piece = letter === 'Z' || letter === 'z' ? zonePiece(part) : joda(letter, part.length)
      if (piece === undefined) {
        if (letter === 'z' || letter === 'Z') return undefined
        return { error: `INVALID_FUNCTION_ARGUMENT: Illegal pattern component: ${part}` }
      }
      pieces.push(piece)
    } else pieces.push({ strftime: part.replaceAll('%', '%%') })
  }
  return pieces
}

const NO_ZONE =
  "INVALID_FUNCTION_ARGUMENT: format_datetime for TIMESTAMP type, cannot use 'Z' nor 'z' in format, as this type does not contain TZ information"

function zonePiece(part: string): Piece | undefined {
  if (part === 'ZZZ') return { ofZone: ({ zone }) => zone }
  if (part === 'ZZ') return { ofZone: ({ offset }) => sql`q_offset_text(${offset})` }
  return part === 'Z' ? { ofZone: ({ offset }) => sql`replace(q_offset_text(${offset}), ':', '')` } : undefined
}

/** For years of four digits a single strftime is used, if it can print all pieces. */
function assemble(pieces: readonly Piece[], printed: Printed): Sql {
  const all = inPieces(pieces, printed)
  const usual = pieces.map((piece) => ('strftime' in piece ? piece.strftime : 'sql' in piece ? piece.usual : undefined))
  if (!pieces.some((piece) => 'sql' in piece) || usual.includes(undefined)) return all
  return sql`CASE WHEN q_of_four_digits(${printed.local}) THEN strftime(${printed.local}, ${literal(usual.join(''))}) ELSE ${all} END`
}

function hasField(strftime: string): boolean {
  return /%[^%]/.test(strftime.replaceAll('%%', ''))
}

/** Combines adjacent strftime pieces into one call. */
function inPieces(pieces: readonly Piece[], { local, zoned }: Printed): Sql {
  const parts: Sql[] = []
  let run = ''
  const flush = (): void => {
    if (run !== '')
      parts.push(hasField(run) ? sql`strftime(${local}, ${literal(run)})` : literal(run.replaceAll('%%', '%')))
    run = ''
  }
  for (const piece of pieces) {
    if ('strftime' in piece) {
      run += piece.strftime
      continue
    }
    flush()
    if ('sql' in piece) parts.push(piece.sql(local))
    else if (zoned !== undefined) parts.push(piece.ofZone(zoned))
  }
  flush()
  const all = parts.length === 0 ? sql`''` : sql`(${joined(parts, ' || ')})`
  // A constant text is also NULL if the time is NULL.
  return pieces.some((piece) => !('strftime' in piece) || hasField(piece.strftime))
    ? all
    : sql`CASE WHEN ${local} IS NOT NULL THEN ${all} END`
}
