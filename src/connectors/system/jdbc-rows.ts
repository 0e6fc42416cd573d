import type { Catalogs } from '../spi/catalogs.ts'
import type { Connector, ConnectorTable } from '../spi/connector.ts'
import type { Wanted } from '../spi/scan-conditions.ts'
import { displayType, namedTables, ofTables, visible } from './information-schema.ts'
import type { jdbcTables } from './jdbc-tables.ts'
import { jdbcType } from './jdbc-types.ts'
import type { SystemRow } from './rows-source.ts'

/** Types that JDBC's getTypeInfo lists, in Trino's words. */
const TYPES = [
  'boolean',
  'bigint',
  'integer',
  'smallint',
  'tinyint',
  'real',
  'double',
  'varchar',
  'varbinary',
  'date',
  'time(3)',
  'time(3) with time zone',
  'timestamp(3)',
  'timestamp(3) with time zone',
  'decimal(38, 0)',
  'char(65536)',
]

/** `DatabaseMetaData`'s constants: columnNoNulls, columnNullable, typeNullable, typeSearchable. */
const NO_NULLS = 0
const NULLABLE = 1
const SEARCHABLE = 3

const PLACE = { schema: 'table_schem', table: 'table_name' } as const

export async function jdbcRows(
  table: keyof typeof jdbcTables,
  catalogs: Catalogs,
  wanted: Wanted,
): Promise<SystemRow[]> {
  switch (table) {
    case 'catalogs':
      return catalogs.names().map((name) => ({ table_cat: name }))
    case 'schemas':
      return overCatalogs(catalogs, wanted, 'table_catalog', async (connector) =>
        (await connector.listSchemas())
          .filter((schema) => wanted.has('table_schem', schema))
          .map((schema) => ({ table_schem: schema, table_catalog: connector.catalog })),
      )
    case 'tables':
      return overCatalogs(catalogs, wanted, 'table_cat', async (connector) =>
        (await namedTables(connector, wanted, PLACE)).map(({ schema, table: name, kind }) => ({
          table_cat: connector.catalog,
          table_schem: schema,
          table_name: name,
          table_type: kind,
        })),
      )
    case 'columns':
      return overCatalogs(catalogs, wanted, 'table_cat', (connector) => columnRows(connector, wanted))
    case 'table_types':
      return [{ table_type: 'TABLE' }, { table_type: 'VIEW' }]
    case 'types':
      return TYPES.map(typeRow)
    case 'attributes':
    case 'procedure_columns':
    case 'procedures':
    case 'pseudo_columns':
    case 'super_tables':
    case 'super_types':
    case 'udts':
      // Quipu has no such objects.
      return []
    default:
      throw new Error(`Unknown table: ${JSON.stringify(table satisfies never)}`)
  }
}

async function columnRows(connector: Connector, wanted: Wanted): Promise<SystemRow[]> {
  const rowsOfTable = ({ schema, table, columns }: ConnectorTable): SystemRow[] =>
    visible(columns).flatMap((column, index) => {
      if (!wanted.has('column_name', column.name)) return []
      const type = jdbcType(column.type)
      const row: SystemRow = {
        table_cat: connector.catalog,
        table_schem: schema,
        table_name: table,
        column_name: column.name,
        data_type: type.dataType,
        type_name: displayType(column.type),
        column_size: type.columnSize,
        decimal_digits: type.decimalDigits,
        num_prec_radix: type.radix,
        nullable: column.nullable ? NULLABLE : NO_NULLS,
        remarks: column.comment ?? null,
        char_octet_length: type.charOctetLength,
        ordinal_position: index + 1,
        is_nullable: column.nullable ? 'YES' : 'NO',
      }
      return [row]
    })
  return ofTables(connector, wanted, PLACE, rowsOfTable, wanted.values('column_name'))
}

function typeRow(type: string): SystemRow {
  const jdbc = jdbcType(type)
  const numeric = jdbc.radix !== null
  return {
    type_name: type.replace(/\([^)]*\)/, ''),
    data_type: jdbc.dataType,
    precision: jdbc.columnSize,
    nullable: NULLABLE,
    case_sensitive: jdbc.charOctetLength !== null,
    searchable: SEARCHABLE,
    unsigned_attribute: numeric ? false : null,
    fixed_prec_scale: false,
    minimum_scale: numeric ? 0 : null,
    maximum_scale: numeric ? (type.startsWith('decimal') ? 38 : 0) : null,
    num_prec_radix: jdbc.radix,
  }
}

/**
 * Rows over all wanted catalogs. A catalog that cannot be listed has no rows and does not affect the others.
 * @param column names the catalog in the rows
 */
export async function overCatalogs(
  catalogs: Catalogs,
  wanted: Wanted,
  column: string,
  rowsOf: (connector: Connector) => Promise<readonly SystemRow[]>,
): Promise<SystemRow[]> {
  const perCatalog = await Promise.all(
    catalogs.names().map(async (name) => {
      const connector = wanted.has(column, name) ? catalogs.get(name) : undefined
      return connector ? rowsOf(connector).catch(() => []) : []
    }),
  )
  return perCatalog.flat()
}
