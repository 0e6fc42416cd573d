import type { ConstantExpr, RelationNode } from '../analyzer/tree.ts'
import type { ResultColumn } from '../front-end.ts'
import { parseTypeText } from '../types/type-names.ts'
import type { SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import type { GeneratedType, RowsQuery } from './rows-query.ts'

/** The types that the parameters of a described query got by coercion, by parameter number. */
export function parameterTypesIn(node: RelationNode): ReadonlyMap<number, SqlType> {
  const types = new Map<number, SqlType>()
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if (isParameter(value) && value.type.kind !== 'unknown') types.set(value.parameter, value.type)
    // Functions and operators contain no part of the query.
    for (const [name, child] of Object.entries(value)) if (name !== 'function' && name !== 'operator') visit(child)
  }
  visit(node)
  return types
}

function isParameter(value: object): value is ConstantExpr & { readonly parameter: number } {
  return 'parameter' in value && 'kind' in value && value.kind === 'constant' && typeof value.parameter === 'number'
}

/** DESCRIBE INPUT: the types of the parameters as far as they are known. */
export function describeInputQuery(types: readonly (SqlType | undefined)[]): RowsQuery {
  const rows = types.map((type, position) => [position, type === undefined ? 'unknown' : typeName(type)])
  return {
    columns: [
      { name: 'Position', ...(rows.length === 0 && { type: { name: 'bigint' } }) },
      { name: 'Type', ...(rows.length === 0 && { type: { name: 'varchar' } }) },
    ],
    rows,
  }
}

/** The size of a value in bytes if its type has a fixed width; otherwise 0. */
function typeSize(type: SqlType): number {
  switch (type.kind) {
    case 'boolean':
    case 'tinyint':
    case 'unknown':
      return 1
    case 'smallint':
      return 2
    case 'integer':
    case 'real':
    case 'date':
    case 'interval year to month':
      return 4
    case 'bigint':
    case 'double':
    case 'interval day to second':
    case 'time':
      return 8
    case 'timestamp':
      return type.precision > 6 ? 12 : 8
    case 'decimal':
      return type.precision > 18 ? 16 : 8
    case 'uuid':
    case 'ipaddress':
      return 16
    default:
      return 0
  }
}

/** DESCRIBE OUTPUT. @param aliased for each column, whether its name was given with AS */
export function describeOutputQuery(
  columns: readonly Pick<ResultColumn, 'name' | 'type' | 'lineage'>[],
  aliased: readonly boolean[],
): RowsQuery {
  const rows = columns.map((column, index) => {
    const source = column.lineage.length === 1 ? column.lineage[0]!.split('.') : []
    const [catalog = '', schema = '', table = ''] = source.length === 4 ? source : []
    const type = parseTypeText(column.type)
    return [column.name, catalog, schema, table, typeName(type), typeSize(type), aliased[index] ?? false]
  })
  const described = ['Column Name', 'Catalog', 'Schema', 'Table', 'Type', 'Type Size', 'Aliased']
  const types = ['varchar', 'varchar', 'varchar', 'varchar', 'varchar', 'bigint', 'boolean'] as const
  const type = (index: number): { type: GeneratedType } => ({ type: { name: types[index]! } })
  return { columns: described.map((name, index) => ({ name, ...(rows.length === 0 && type(index)) })), rows }
}
