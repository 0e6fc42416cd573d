import type { Catalogs } from '../spi/catalogs.ts'
import type { Connector } from '../spi/connector.ts'
import { describedTables, displayType, visible } from './information-schema.ts'
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

export async function jdbcRows(table: keyof typeof jdbcTables, catalogs: Catalogs): Promise<SystemRow[]> {
  switch (table) {
    case 'catalogs':
      return catalogs.names().map((name) => ({ table_cat: name }))
    case 'schemas':
      return overCatalogs(catalogs, async (connector) =>
        (await connector.listSchemas()).map((schema) => ({ table_schem: schema, table_catalog: connector.catalog })),
      )
    case 'tables':
      return overCatalogs(catalogs, async (connector) =>
        (await connector.listTables()).map(({ schema, table: name, kind }) => ({
          table_cat: connector.catalog,
          table_schem: schema,
          table_name: name,
          table_type: kind,
        })),
      )
    case 'columns':
      return overCatalogs(catalogs, columnRows)
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
      // There are no such things here.
      return []
    default:
      throw new Error(`Unknown table: ${JSON.stringify(table satisfies never)}`)
  }
}

async function columnRows(connector: Connector): Promise<SystemRow[]> {
  return (await describedTables(connector)).flatMap(({ schema, table, columns }) =>
    visible(columns).map((column, index) => {
      const type = jdbcType(column.type)
      return {
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
    }),
  )
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

/** One catalog that cannot be listed hides no other. */
export async function overCatalogs(
  catalogs: Catalogs,
  rowsOf: (connector: Connector) => Promise<readonly SystemRow[]>,
): Promise<SystemRow[]> {
  const perCatalog = await Promise.all(
    catalogs.names().map(async (name) => {
      const connector = catalogs.get(name)
      return connector ? rowsOf(connector).catch(() => []) : []
    }),
  )
  return perCatalog.flat()
}
