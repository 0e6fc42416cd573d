import type { CsvPart, FileColumn, JsonPart } from '../../src/connectors/spi/table-source.ts'

const dialect = {
  delimiter: ',',
  quote: '"',
  escape: '"',
  header: true,
  skip: 0,
  nullString: '',
  lineEnd: 'lf',
} as const

/** A CSV file with one field in each line. */
export function csvPart(path: string, columns: readonly FileColumn[]): CsvPart {
  return { kind: 'csv', path, bytes: 9, dialect, fields: 1, types: [], columns }
}

export function jsonPart(path: string, columns: readonly FileColumn[], types: JsonPart['types'] = []): JsonPart {
  return { kind: 'json', path, layout: 'newline_delimited', isRecord: true, types, columns }
}
