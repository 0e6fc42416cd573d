import { EngineError } from '../../shared/engine-error.ts'
import { columnType, type ColumnType } from '../spi/column-type.ts'
import type { ConnectorContext } from '../spi/connector.ts'
import { quoteName } from '../spi/duckdb-text.ts'
import { parseDuckDbType } from '../spi/duckdb-type-text.ts'
import {
  csvShapeSchema,
  fits,
  jsonFileSchema,
  scalarBit,
  scalarType,
  type CsvShape,
  type DeclaredText,
  type JsonFile,
  type JsonShape,
} from '../spi/text-file.ts'

/** The facts that were derived from one text file. */
export type TextFacts =
  | { readonly kind: 'csv'; readonly shape: CsvShape }
  | { readonly kind: 'json'; readonly file: JsonFile }

/** A column of a table of text files, with the type as which DuckDB reads its values. */
interface TextColumn extends ColumnType {
  readonly source: string
  /** Lower case. */
  readonly name: string
  readonly duckdbType: string
}

/** DuckDB's types of columns that the administrator has fixed, by lower-case name. */
export type DeclaredTypes = ReadonlyMap<string, string>

/** The name of the only column when a file's values are not objects. */
const VALUE_COLUMN = 'json'
/** An object with more keys is read as a map: it is not a record. */
const MOST_FIELDS = 1000
const MAP_TYPE = 'MAP(VARCHAR, JSON)'

/** @param path absolute */
export async function textFacts(
  inspect: ConnectorContext['inspect'],
  format: 'csv' | 'json',
  path: string,
  declared: DeclaredText,
): Promise<TextFacts> {
  const [row] = await inspect(format === 'csv' ? { kind: 'csvShape', path, declared } : { kind: 'jsonShape', path })
  return format === 'csv'
    ? { kind: 'csv', shape: csvShapeSchema.parse(row) }
    : { kind: 'json', file: jsonFileSchema.parse(row) }
}

/** Names of a file's own columns, as written in the file. */
export function namesOf(facts: TextFacts): readonly string[] {
  if (facts.kind === 'csv') return facts.shape.columns.map(({ name }) => name)
  const { record } = facts.file
  if (record === undefined) return []
  return isRecord(record) ? (record.fields ?? []).map(({ name }) => name) : [VALUE_COLUMN]
}

export function isRecord(shape: JsonShape): boolean {
  return shape.fits !== fits.anything && (shape.fits & fits.object) !== 0
}

/**
 * The columns of a table, over all its files.
 * @throws EngineError AMBIGUOUS_NAME for names that differ only in case; HIVE_BAD_DATA for a name that no column can
 * have
 */
export function textColumns(all: readonly TextFacts[], declared: DeclaredTypes): readonly TextColumn[] {
  const found = columnsIn(all)
  const names = new Set([...found.keys()].map((name) => name.toLowerCase()))
  // A declared column that no file has is NULL.
  const missing = [...declared].filter(([name]) => !names.has(name))
  const columns: TextColumn[] = []
  const byName = new Set<string>()
  for (const [source, guessed] of [...found, ...missing]) {
    const name = source.toLowerCase()
    if (source === '' || source.includes('\0'))
      throw new EngineError('HIVE_BAD_DATA', `Column ${columns.length + 1} has a name that no column can have`, {
        retry: 'later',
      })
    if (byName.has(name)) {
      const message = `Column '${name}' is ambiguous: names in the files differ only in case`
      throw new EngineError('AMBIGUOUS_NAME', message, { retry: 'later' })
    }
    byName.add(name)
    const duckdbType = declared.get(name) ?? guessed
    const type = columnType(parseDuckDbType(duckdbType))
    if (type) columns.push({ ...type, source, name, duckdbType })
  }
  return columns
}

/** Names as the files have them, with the common type of their values, in the order of their first appearance. */
function columnsIn(all: readonly TextFacts[]): ReadonlyMap<string, string> {
  const csv = new Map<string, number>()
  let json: JsonShape | undefined
  for (const facts of all) {
    if (facts.kind === 'json') json = merge(json, facts.file.record)
    else
      for (const column of facts.shape.columns)
        csv.set(column.name, (csv.get(column.name) ?? fits.anything) & column.fits)
  }
  if (json === undefined) return new Map([...csv].map(([name, mask]) => [name, scalarType(mask) ?? 'VARCHAR']))
  if (!isRecord(json)) return new Map([[VALUE_COLUMN, jsonType(json)]])
  return new Map((json.fields ?? []).map(({ name, shape }) => [name, jsonType(shape)]))
}

function merge(one: JsonShape | undefined, other: JsonShape | undefined): JsonShape | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const fields = new Map((one.fields ?? []).map(({ name, shape }) => [name, shape]))
  for (const { name, shape } of other.fields ?? []) fields.set(name, merge(fields.get(name), shape)!)
  const element = merge(one.element, other.element)
  return {
    fits: one.fits & other.fits,
    ...(fields.size > 0 && { fields: [...fields].map(([name, shape]) => ({ name, shape })) }),
    ...(element && { element }),
  }
}

function jsonType({ fits: mask, fields = [], element }: JsonShape): string {
  if (mask === fits.anything) return 'JSON'
  if ((mask & fits.list) !== 0) return `${element ? jsonType(element) : 'JSON'}[]`
  if ((mask & fits.object) === 0) return scalarType(mask) ?? 'JSON'
  const names = new Set(fields.map(({ name }) => name.toLowerCase()))
  const odd = names.size < fields.length || names.has('') || fields.some(({ name }) => name.includes('\0'))
  if (fields.length === 0 || fields.length > MOST_FIELDS || odd) return MAP_TYPE
  return `STRUCT(${fields.map(({ name, shape }) => `${quoteName(name)} ${jsonType(shape)}`).join(', ')})`
}

/** Whether the type certainly fits all values of the file. Otherwise each value is checked when the file is read. */
export function isCertain(
  facts: TextFacts,
  columns: readonly { readonly name: string; readonly duckdbType: string }[],
): boolean {
  if (facts.kind === 'json') {
    const { complete, record } = facts.file
    if (record === undefined) return true
    const own = new Map((record.fields ?? []).map(({ name, shape }) => [name.toLowerCase(), shape]))
    if (!isRecord(record))
      return complete && columns.every(({ duckdbType }) => duckdbType === jsonType(record) || duckdbType === 'JSON')
    return complete && columns.every(({ name, duckdbType }) => canBe(own.get(name), duckdbType))
  }
  const own = new Map(facts.shape.columns.map((column) => [column.name.toLowerCase(), column.fits]))
  return facts.shape.complete && columns.every(({ name, duckdbType }) => {
    const mask = own.get(name)
    return mask === undefined || duckdbType === 'VARCHAR' || (mask & (scalarBit(duckdbType) ?? 0)) !== 0
  }) // prettier-ignore
}

/** Whether a column can have the type. Types of lists and objects were derived from all their values. */
function canBe(shape: JsonShape | undefined, duckdbType: string): boolean {
  if (shape === undefined || duckdbType === 'JSON') return true
  const bit = scalarBit(duckdbType)
  return bit === undefined ? (shape.fits & (fits.list | fits.object)) !== 0 : (shape.fits & bit) !== 0
}
