import { quote } from './rendering.ts'

/** The two format languages: date_format's (MySQL) and format_datetime's (Joda). Names of functions without `u_`. */
export const MYSQL_FORMAT = 'date_format'
export const JODA_FORMAT = 'format_datetime'
export type FormatStyle = typeof MYSQL_FORMAT | typeof JODA_FORMAT

/** What a piece of a format prints, over `@x` (the local time, rounded to milliseconds), `@z` (zone) and `@o` (offset). */
type Piece = { readonly strftime: string } | { readonly sql: string }

const year = `ltrim(q_year(@x), '+')`
const isoYear = `q_padded_year(isoyear(@x))`

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
  Y: { sql: year },
  y: { sql: `lpad(CAST(abs(year(@x)) % 100 AS VARCHAR), 2, '0')` },
  x: { sql: isoYear },
  '%': { strftime: '%%' },
}

const text = (sql: string): Piece => ({ sql: `CAST(${sql} AS VARCHAR)` })
const padded = (sql: string, digits: number): Piece => ({
  sql:
    digits === 1
      ? `CAST(${sql} AS VARCHAR)`
      : `lpad(CAST(${sql} AS VARCHAR), greatest(${digits}, length(CAST(${sql} AS VARCHAR)))::INTEGER, '0')`,
})

function joda(letter: string, count: number): Piece | undefined {
  switch (letter) {
    case 'y':
      return count === 2 ? { sql: `lpad(CAST(abs(year(@x)) % 100 AS VARCHAR), 2, '0')` } : padded('year(@x)', count)
    case 'Y':
      return count === 2
        ? { sql: `lpad(CAST(q_year_of_era(@x) % 100 AS VARCHAR), 2, '0')` }
        : padded('q_year_of_era(@x)', count)
    case 'x':
      return count === 2
        ? { sql: `lpad(CAST(abs(isoyear(@x)) % 100 AS VARCHAR), 2, '0')` }
        : padded('isoyear(@x)', count)
    case 'M':
      if (count >= 4) return { strftime: '%B' }
      if (count === 3) return { strftime: '%b' }
      return { strftime: count === 2 ? '%m' : '%-m' }
    case 'd':
      return padded('day(@x)', count)
    case 'D':
      return padded('dayofyear(@x)', count)
    case 'E':
      return { strftime: count >= 4 ? '%A' : '%a' }
    case 'e':
      return padded('isodow(@x)', count)
    case 'w':
      return padded('week(@x)', count)
    case 'a':
      return { strftime: '%p' }
    case 'H':
      return padded('hour(@x)', count)
    case 'h':
      return padded('((hour(@x) + 11) % 12 + 1)', count)
    case 'K':
      return padded('(hour(@x) % 12)', count)
    case 'k':
      return padded('((hour(@x) + 23) % 24 + 1)', count)
    case 'm':
      return padded('minute(@x)', count)
    case 's':
      return padded('second(@x)', count)
    case 'S':
      return { sql: count <= 3 ? `left(strftime(@x, '%g'), ${count})` : `rpad(strftime(@x, '%g'), ${count}, '0')` }
    case 'G':
      return { sql: `CASE WHEN year(@x) > 0 THEN 'AD' ELSE 'BC' END` }
    case 'C':
      return text('q_year_of_era(@x) // 100')
    default:
      return undefined
  }
}

/**
 * A format as a SQL expression over `@x`, `@z`, `@o`; an error where Trino refuses it; undefined where it holds something
 * that only the general function knows (names of zones).
 */
export function compiledFormat(
  style: FormatStyle,
  format: string,
  zoned: boolean,
): string | { readonly error: string } | undefined {
  const pieces = style === MYSQL_FORMAT ? mysqlPieces(format) : jodaPieces(format, zoned)
  return Array.isArray(pieces) ? assemble(pieces) : (pieces as { readonly error: string } | undefined)
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
  if (part === 'ZZZ') return { sql: '@z' }
  if (part === 'ZZ') return { sql: 'q_offset_text(@o)' }
  return part === 'Z' ? { sql: `replace(q_offset_text(@o), ':', '')` } : undefined
}

/** Neighbouring strftime pieces become one call. */
function assemble(pieces: readonly Piece[]): string {
  const parts: string[] = []
  let run = ''
  const flush = (): void => {
    if (run !== '')
      parts.push(
        /%[^%]/.test(run.replaceAll('%%', '')) ? `strftime(@x, ${quote(run)})` : quote(run.replaceAll('%%', '%')),
      )
    run = ''
  }
  for (const piece of pieces) {
    if ('strftime' in piece) run += piece.strftime
    else {
      flush()
      parts.push(piece.sql)
    }
  }
  flush()
  return parts.length === 0 ? `''` : `(${parts.join(' || ')})`
}
