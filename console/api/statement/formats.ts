import { cellText, exactJson, type Value } from './exact-json.ts'

/** Name and type of a column of a result. */
export interface ResultColumn {
  readonly name: string
  readonly type: string
}

export type Row = readonly Value[]

/** Writes rows as the parts of a file. */
export interface RowsFormat {
  readonly extension: string
  readonly mediaType: string
  begin(columns: readonly ResultColumn[]): string
  /** @param index of the row in the result, from 0 */
  row(row: Row, index: number): string
  end(): string
}

/** CSV of RFC 4180 in UTF-8. NULL is an empty field, an empty text is `""`. No field is a formula for a spreadsheet. */
export const csv: RowsFormat = {
  extension: 'csv',
  mediaType: 'text/csv; charset=utf-8',
  begin: (columns) => csvRecord(columns.map(({ name }) => name)),
  row: (row) => csvRecord(row.map((value) => (value === null ? null : cellText(value)))),
  end: () => '',
}

function csvRecord(texts: readonly (string | null)[]): string {
  return `${texts.map((text) => (text === null ? '' : csvField(text))).join(',')}\r\n`
}

/** A field of a CSV file. An apostrophe before a text keeps spreadsheets from running the text as a formula. */
function csvField(text: string): string {
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text
  return safe === '' || /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/**
 * Matches what a spreadsheet may take for a formula: a sign that begins formulas, ASCII or full-width, also behind
 * characters that nobody sees, because some programs drop them; and a tab or a line break at the beginning.
 */
const FORMULA = /^(?:[\t\r\n]|[\s\p{Cc}\p{Cf}]*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/u
/** Matches numbers, which are no formulas, also where they are texts, as decimals are. */
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$|^-Infinity$/

/** One JSON document: `columns` with names and types, `rows` as lists, as names may repeat. */
export const json: RowsFormat = {
  extension: 'json',
  mediaType: 'application/json',
  begin: (columns) => `{"columns":${JSON.stringify(columns.map(({ name, type }) => ({ name, type })))},"rows":[\n`,
  row: (row, index) => `${index === 0 ? '' : ',\n'}${exactJson(row)}`,
  end: () => '\n]}\n',
}
