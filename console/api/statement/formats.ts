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

/**
 * CSV of RFC 4180 in UTF-8. NULL is an empty field, an empty text is `""`. A text that a spreadsheet would run as a formula
 * has an apostrophe before it.
 */
export const csv: RowsFormat = {
  extension: 'csv',
  mediaType: 'text/csv; charset=utf-8',
  begin: (columns) => `${columns.map(({ name }) => csvField(withoutFormula(name))).join(',')}\r\n`,
  row: (row) =>
    `${row.map((value) => (value === null ? '' : csvField(typeof value === 'string' ? withoutFormula(value) : cellText(value)))).join(',')}\r\n`,
  end: () => '',
}

function csvField(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Numbers are no formulas, also where they are texts, as decimals are. */
function withoutFormula(text: string): string {
  return /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text
}

/** One JSON document: `columns` with names and types, `rows` as lists, as names may repeat. */
export const json: RowsFormat = {
  extension: 'json',
  mediaType: 'application/json',
  begin: (columns) => `{"columns":${JSON.stringify(columns.map(({ name, type }) => ({ name, type })))},"rows":[\n`,
  row: (row, index) => `${index === 0 ? '' : ',\n'}${exactJson(row)}`,
  end: () => '\n]}\n',
}
