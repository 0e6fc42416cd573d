import type { Catalogs } from '../spi/catalogs.ts'
import { withDeadline } from '../../shared/deadline.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { Asker, Connector, ConnectorTable } from '../spi/connector.ts'
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

const NAME_COLUMNS = { schema: 'table_schem', table: 'table_name' } as const

export async function jdbcRows(
  table: keyof typeof jdbcTables,
  catalogs: Catalogs,
  wanted: Wanted,
  onLeftOut?: OnLeftOut,
): Promise<SystemRow[]> {
  const over = (column: string, rowsOf: (connector: Connector) => Promise<readonly SystemRow[]>) =>
    overCatalogs(catalogs, wanted, { column, rowsOf, onLeftOut })
  switch (table) {
    case 'catalogs':
      return catalogs.names().map((name) => ({ table_cat: name }))
    case 'schemas':
      return over('table_catalog', async (connector) =>
        (await connector.listSchemas())
          .filter((schema) => wanted.has('table_schem', schema))
          .map((schema) => ({ table_schem: schema, table_catalog: connector.catalog })),
      )
    case 'tables':
      return over('table_cat', async (connector) =>
        (await namedTables(connector, wanted, NAME_COLUMNS)).map(({ schema, table: name, kind }) => ({
          table_cat: connector.catalog,
          table_schem: schema,
          table_name: name,
          table_type: kind,
        })),
      )
    case 'columns':
      return over('table_cat', (connector) => columnRows(connector, wanted))
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
  return ofTables(connector, wanted, NAME_COLUMNS, rowsOfTable, wanted.values('column_name'))
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

type OnLeftOut = Asker['onLeftOut']

/**
 * Rows over all wanted catalogs. A catalog that cannot be listed has no rows and does not affect the others; the same
 * holds for a catalog of another server that takes too long.
 * @param list `column` names the catalog in the rows; `onLeftOut` is called for each catalog of another server without
 * rows
 */
export async function overCatalogs(
  catalogs: Catalogs,
  wanted: Wanted,
  list: {
    readonly column: string
    readonly rowsOf: (connector: Connector) => Promise<readonly SystemRow[]>
    readonly onLeftOut: OnLeftOut
  },
): Promise<SystemRow[]> {
  const { column, rowsOf, onLeftOut } = list
  const ofCatalog = async (name: string, connector: Connector): Promise<readonly SystemRow[]> => {
    const { remote } = connector
    if (!remote) return rowsOf(connector).catch(() => [])
    const late = (): Error =>
      new EngineError('NO_NODES_AVAILABLE', `It gave no list within ${remote.listedWithinMs} ms`)
    return withDeadline(rowsOf(connector), remote.listedWithinMs, late).catch((error: unknown) => {
      onLeftOut?.(name, error instanceof Error ? error.message : String(error))
      return []
    })
  }
  const perCatalog = await Promise.all(
    catalogs.names().map(async (name) => {
      const connector = wanted.has(column, name) ? catalogs.get(name) : undefined
      return connector ? ofCatalog(name, connector) : []
    }),
  )
  return perCatalog.flat()
}
