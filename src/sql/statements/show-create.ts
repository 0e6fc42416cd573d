import { accessOf } from '../access-control.ts'
import type { ConnectorTable } from '../../connectors/spi/connector.ts'
import { qualify } from '../analyzer/resolve.ts'
import type { ShowCreate } from '../syntax/ast-statements.ts'
import { printName, printText } from '../syntax/print-names.ts'
import { parseTypeText } from '../types/type-names.ts'
import { typeInStatement } from '../types/type-text.ts'
import { kindOf } from './object-checks.ts'
import type { RowsQuery } from './rows-query.ts'
import { errorAt } from '../analyzer/context.ts'
import type { StatementInput } from '../statement-input.ts'

/** SHOW CREATE: one row with the statement that would create the object. */
export async function showCreate(input: StatementInput, node: ShowCreate): Promise<RowsQuery> {
  switch (node.type) {
    case 'SCHEMA':
      return one('Create Schema', await createSchema(input, node))
    case 'TABLE':
      return one('Create Table', await createTable(input, node))
    case 'VIEW':
      return one('Create View', await createView(input, node))
    case 'MATERIALIZED_VIEW':
      return one('Create Materialized View', await createMaterializedView(input, node))
    case 'FUNCTION':
      throw errorAt(
        input,
        node,
        'NOT_SUPPORTED',
        'Catalog and schema must be specified when function schema is not configured',
      )
  }
}

function one(column: string, text: string): RowsQuery {
  return { columns: [{ name: column }], rows: [[text]] }
}

async function createSchema(input: StatementInput, node: ShowCreate): Promise<string> {
  const parts = node.name.parts.map((part) => part.value.toLowerCase())
  const schema = parts.at(-1)!
  const catalog = parts.length > 1 ? parts.at(-2)! : input.session.catalog
  if (catalog === undefined) {
    throw errorAt(input, node, 'MISSING_CATALOG_NAME', 'Catalog must be specified when session catalog is not set')
  }
  const exists =
    parts.length <= 2 &&
    input.metadata.catalogs().includes(catalog) &&
    (await input.metadata.schemas(catalog)).includes(schema)
  if (!exists) throw errorAt(input, node, 'SCHEMA_NOT_FOUND', `Schema '${catalog}.${schema}' does not exist`)
  accessOf(input.session)?.checkOwnsSchema(catalog, schema, 'show create schema for')
  return `CREATE SCHEMA ${printName(catalog)}.${printName(schema)}`
}

async function find(input: StatementInput, node: ShowCreate, what: string) {
  const { catalog, schema, table } = qualify(node.name, input.session)
  const name = `${catalog}.${schema}.${table}`
  if (!input.metadata.catalogs().includes(catalog)) {
    throw errorAt(input, node, 'CATALOG_NOT_FOUND', `Catalog '${catalog}' not found`)
  }
  const found = await input.metadata.table(catalog, schema, table)
  if (found === undefined) throw errorAt(input, node, 'TABLE_NOT_FOUND', `${what} '${name}' does not exist`)
  accessOf(input.session)?.checkTable({ catalog, schema, table }, 'OWNERSHIP', 'show create table for')
  const printed = [catalog, schema, table].map(printName).join('.')
  return { table: found, name, printed }
}

async function createTable(input: StatementInput, node: ShowCreate): Promise<string> {
  const { table, name, printed } = await find(input, node, 'Table')
  const kind = kindOf(table)
  if (kind !== 'table') throw errorAt(input, node, 'NOT_SUPPORTED', `Relation '${name}' is a ${kind}, not a table`)
  const columns = table.columns.filter((column) => column.hidden !== true).map(columnText)
  const comment = table.comment === undefined ? '' : `\nCOMMENT ${printText(table.comment)}`
  return `CREATE TABLE ${printed} (\n${columns.join(',\n')}\n)${comment}${withText(table.properties)}`
}

function withText(properties: ConnectorTable['properties'] = {}): string {
  const lines = Object.entries(properties).map(([name, value]) => {
    const text =
      typeof value === 'string'
        ? printText(value)
        : typeof value === 'object'
          ? `ARRAY[${value.map(printText).join(', ')}]`
          : String(value)
    return `   ${printName(name)} = ${text}`
  })
  return lines.length === 0 ? '' : `\nWITH (\n${lines.join(',\n')}\n)`
}

function columnText(column: ConnectorTable['columns'][number]): string {
  const nullable = column.nullable ? '' : ' NOT NULL'
  const comment = column.comment === undefined || column.comment === '' ? '' : ` COMMENT ${printText(column.comment)}`
  return `   ${printName(column.name)} ${typeInStatement(parseTypeText(column.type))}${nullable}${comment}`
}

async function createView(input: StatementInput, node: ShowCreate): Promise<string> {
  const { table, name, printed } = await find(input, node, 'View')
  const kind = kindOf(table)
  if (table.view === undefined || kind !== 'view') {
    throw errorAt(input, node, 'NOT_SUPPORTED', `Relation '${name}' is a ${kind}, not a view`)
  }
  const comment = table.comment === undefined ? '' : ` COMMENT ${printText(table.comment)}`
  const security = table.view.runAsInvoker === true ? 'INVOKER' : 'DEFINER'
  return `CREATE VIEW ${printed}${comment} SECURITY ${security} AS\n${table.view.sql.trimEnd()}`
}

async function createMaterializedView(input: StatementInput, node: ShowCreate): Promise<string> {
  const { table, name, printed } = await find(input, node, 'Materialized view')
  const kind = kindOf(table)
  if (table.view === undefined || !table.materialized) {
    throw errorAt(input, node, 'NOT_SUPPORTED', `Relation '${name}' is a ${kind}, not a materialized view`)
  }
  const { gracePeriodMillis } = table.materialized
  const grace = gracePeriodMillis === undefined ? '' : `\nGRACE PERIOD ${intervalText(gracePeriodMillis)}`
  const comment = table.comment === undefined ? '' : `\nCOMMENT ${printText(table.comment)}`
  return `CREATE MATERIALIZED VIEW ${printed}${grace}${comment} AS\n${table.view.sql.trimEnd()}`
}

const UNITS = [
  ['DAY', 86_400_000],
  ['HOUR', 3_600_000],
  ['MINUTE', 60_000],
] as const

/** Writes an interval in the largest unit that divides it. */
function intervalText(millis: number): string {
  const amount = Math.abs(millis)
  const [unit, size] = UNITS.find(([, each]) => amount > 0 && amount % each === 0) ?? ['SECOND', 1000]
  return `INTERVAL ${millis < 0 ? '-' : ''}${printText(String(amount / size))} ${unit}`
}
