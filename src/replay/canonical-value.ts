import type { DataType } from '../sql/syntax/ast-types.ts'
import { parseTypeSyntax } from '../sql/syntax/parser.ts'
import { integer, joined, literal, sql, type Sql } from '../duckdb/text/sql.ts'

/**
 * A value in a form in which equal values have equal texts: the entries of a map, which have no order, are sorted.
 * @param sent SQL of a VARCHAR: the text itself, or the JSON of arrays, maps and rows
 */
export function canonicalValue(sent: Sql, type: string): Sql {
  const tree = typeOf(type)
  return tree && holdsMap(tree) ? canonical(sent, tree, 0) : sent
}

/** The type's tree; undefined for types of Trino that this parser does not know. */
function typeOf(type: string): DataType | undefined {
  try {
    return parseTypeSyntax(type)
  } catch {
    return undefined
  }
}

function holdsMap(type: DataType): boolean {
  return isMap(type) || partsOf(type).some(holdsMap)
}

function isMap(type: DataType): boolean {
  return type.kind === 'GenericDataType' && type.name.value.toLowerCase() === 'map'
}

function partsOf(type: DataType): readonly DataType[] {
  if (type.kind === 'RowDataType') return type.fields.map((field) => field.type)
  if (type.kind !== 'GenericDataType') return []
  return type.arguments.flatMap((argument) => (argument.kind === 'TypeParameter' ? [argument.type] : []))
}

/** `value` is JSON as text. Its maps become lists of key and value, sorted by key. */
function canonical(value: Sql, type: DataType, depth: number): Sql {
  if (!holdsMap(type)) return value
  const parts = partsOf(type)
  const item = sql`x${integer(depth)}`
  const texts = (list: Sql, each: Sql): Sql => sql`list_transform(${list}, lambda ${item}: ${each})`
  if (isMap(type)) {
    const entries = sql`map_entries(TRY_CAST(CAST(${value} AS JSON) AS MAP(VARCHAR, JSON)))`
    const inner = canonical(sql`(${item}.value ->> '$')`, parts[1]!, depth + 1)
    // If different keys have the same text, the value is no map here and stays as it was sent.
    return sql`coalesce(CAST(list_sort(${texts(entries, sql`[${item}.key, ${inner}]`)}) AS VARCHAR), ${value})`
  }
  if (type.kind === 'RowDataType') {
    const fields = parts.map((part, i) =>
      canonical(sql`json_extract_string(${value}, ${literal(`$[${i}]`)})`, part, depth),
    )
    return sql`CASE WHEN ${value} IS NOT NULL THEN CAST([${joined(fields, ', ')}] AS VARCHAR) END`
  }
  const items = sql`CAST(CAST(${value} AS JSON) AS JSON[])`
  return sql`CAST(${texts(items, canonical(sql`(${item} ->> '$')`, parts[0]!, depth + 1))} AS VARCHAR)`
}
