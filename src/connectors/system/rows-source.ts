import { EngineError } from '../../shared/engine-error.ts'
import type { RowShape, TableSource } from '../spi/table-source.ts'
import type { SystemColumns } from './information-schema-tables.ts'

/** A value of a row in a form for JSON: a time with zone is its UTC text `2026-03-01T10:00:00.000Z`. */
export type SystemValue = string | number | boolean | null | readonly string[]
/** A row by column name; missing values are null. */
export type SystemRow = Readonly<Record<string, SystemValue>>

/** The largest size of one table's rows that travel to an engine, bytes of text. */
const MAX_ROWS_BYTES = 32 * 1024 * 1024

/**
 * Rows in the form that travels: by position, in the order of the table's columns; null for columns that are not
 * wanted.
 * @throws EngineError EXCEEDED_LOCAL_MEMORY_LIMIT when they are too many
 */
export function rowArrays(
  columns: SystemColumns,
  rows: readonly SystemRow[],
  wanted: readonly string[] = Object.keys(columns),
): SystemValue[][] {
  const asked = new Set(wanted)
  const names = Object.keys(columns)
  let bytes = 0
  return rows.map((row) =>
    names.map((name) => {
      const value = asked.has(name) ? (row[name] ?? null) : null
      bytes += sizeOf(value)
      if (bytes > MAX_ROWS_BYTES)
        throw new EngineError(
          'EXCEEDED_LOCAL_MEMORY_LIMIT',
          `The rows of a system table take more than ${MAX_ROWS_BYTES} bytes: ask for fewer of its columns`,
        )
      return value
    }),
  )
}

/** Bytes that a row takes besides its values. */
const ROW_BYTES = 32

/**
 * Rows from pages, in the form that travels; reading stops once they are too many.
 * @throws EngineError EXCEEDED_LOCAL_MEMORY_LIMIT
 */
export async function boundedRows(
  pages: AsyncIterable<readonly (readonly SystemValue[])[]>,
): Promise<(readonly SystemValue[])[]> {
  const rows: (readonly SystemValue[])[] = []
  let bytes = 0
  for await (const page of pages) {
    for (const row of page) {
      bytes += row.reduce((sum: number, value) => sum + sizeOf(value), ROW_BYTES)
      rows.push(row)
    }
    if (bytes > MAX_ROWS_BYTES)
      throw new EngineError(
        'EXCEEDED_LOCAL_MEMORY_LIMIT',
        `The rows of a system table take more than ${MAX_ROWS_BYTES} bytes: ask for fewer of its columns, for less of its time, or for groups`,
      )
  }
  return rows
}

function sizeOf(value: SystemValue): number {
  if (typeof value === 'string') return value.length + 4
  return Array.isArray(value) ? value.reduce((sum: number, one: string) => sum + one.length + 4, 4) : 8
}

/** The rows that the coordinator loaded into splits. @throws when a split has none */
export function loadedRows(splits: readonly { readonly data: Readonly<Record<string, unknown>> }[]): SystemValue[][] {
  return splits.flatMap(({ data }) => {
    if (!Array.isArray(data['rows'])) throw new Error('Rows of a system table are loaded in the coordinator')
    return data['rows'] as SystemValue[][]
  })
}

/**
 * The source for rows in the statement itself, typed and named, so that every fragment reads its scans in the same way.
 */
export function rowsSource(
  columns: SystemColumns,
  rows: readonly (readonly SystemValue[])[],
  wanted: readonly string[],
): TableSource {
  const names = Object.keys(columns)
  const taken = wanted.map((name) => ({ name, index: names.indexOf(name) }))
  const missing = taken.find(({ index }) => index < 0)
  if (missing) throw new EngineError('COLUMN_NOT_FOUND', `Column '${missing.name}' cannot be resolved`)
  return [
    {
      kind: 'rows',
      rows: rows.map((row) =>
        Object.fromEntries(taken.map(({ name, index }) => [name, shaped(columns[name]!, row[index] ?? null)])),
      ),
      columns: taken.map(({ name }) => ({ name, shape: shapeOf(columns[name]!) })),
    },
  ]
}

const ZONED = /^timestamp\((\d+)\) with time zone$/

/** The shape of a SQL type for DuckDB's `from_json`. */
function shapeOf(type: string): RowShape {
  const zoned = ZONED.exec(type)
  if (zoned)
    return Number(zoned[1]) > 6 ? { t: 'TIMESTAMP', p: 'INTEGER', z: 'VARCHAR' } : { t: 'TIMESTAMP', z: 'VARCHAR' }
  switch (type) {
    case 'varchar':
      return 'VARCHAR'
    case 'bigint':
      return 'BIGINT'
    case 'boolean':
      return 'BOOLEAN'
    case 'double':
      return 'DOUBLE'
    case 'date':
      return 'DATE'
    case 'array(varchar)':
      return ['VARCHAR']
    case 'map(double, double)':
      return 'MAP(DOUBLE, DOUBLE)'
    default:
      throw new Error(`No system table has a column of type ${type}`)
  }
}

function shaped(type: string, value: SystemValue): unknown {
  if (value === null) return null
  const zoned = ZONED.exec(type)
  if (!zoned) return value
  const t = String(value).replace('T', ' ').replace('Z', '')
  return Number(zoned[1]) > 6 ? { t, p: 0, z: 'UTC' } : { t, z: 'UTC' }
}
