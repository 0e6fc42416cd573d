import type { StoredColumn } from '../spi/table-writer.ts'
import { changeColumns } from '../spi/table-writer.ts'
import { FILE_INDEX, FILE_ROW_NUMBER } from '../spi/parquet-scan.ts'
import type { FileColumnId, TableColumn, TableContent } from './manifest.ts'

/** Names that DuckDB's reader or the columns of changed rows have: no column of a table is called so in a file. */
const RESERVED: ReadonlySet<string> = new Set([FILE_INDEX, FILE_ROW_NUMBER, ...changeColumns.map(({ name }) => name)])

/** The columns of a new table. */
export function newColumns(columns: readonly StoredColumn[], duckdbType: (type: string) => string): TableColumn[] {
  const used = new Set<string>(columns.map(({ name }) => name))
  return columns.map((column, index) => {
    const id = index + 1
    const physical = RESERVED.has(column.name) ? unusedName(column.name, id, used) : column.name
    return { ...column, id, physical, duckdbType: duckdbType(column.type) }
  })
}

/** The fields of a new table that follow from its columns. */
export function newTableParts(
  columns: readonly TableColumn[],
): Pick<TableContent, 'columns' | 'nextColumn' | 'schemas' | 'fileSchema'> {
  const id = 1
  return {
    columns: [...columns],
    nextColumn: columns.length + 1,
    schemas: [{ id, columns: fileColumns(columns) }],
    fileSchema: id,
  }
}

/** The columns as files have them. */
export function fileColumns(columns: readonly TableColumn[]): FileColumnId[] {
  return columns.map(({ id, physical, duckdbType }) => ({ id, physical, duckdbType }))
}

/** The name in files for a column that is added: no file of the table has another column of that name. */
export function physicalName(table: TableContent, name: string): string {
  const used = new Set(
    [...table.schemas, { columns: table.columns }].flatMap(({ columns }) => columns).map((c) => c.physical),
  )
  return RESERVED.has(name) || used.has(name) ? unusedName(name, table.nextColumn, used) : name
}

function unusedName(name: string, id: number, used: ReadonlySet<string>): string {
  let physical = `${name}#${id}`
  while (used.has(physical)) physical += '#'
  return physical
}

/**
 * Whether the table as it is now can take the rows of a new file: the columns that the file lacks accept NULL. Changed
 * names, wider types and dropped columns do not matter: the table is then as if the file had come before their change.
 * @param fileSchema the number of the file's schema
 */
export function takesFiles(
  { columns, schemas }: Pick<TableContent, 'columns' | 'schemas'>,
  fileSchema: number,
): boolean {
  const written = new Set(schemas.find(({ id }) => id === fileSchema)?.columns.map(({ id }) => id))
  return written.size > 0 && columns.every(({ id, nullable }) => nullable || written.has(id))
}

/** Whether row ids cannot be read: a file of the first format has a column with a name that the reader needs. */
export function hidesRowIds({ schemas }: TableContent): boolean {
  return schemas.some(({ columns }) => columns.some(({ physical }) => RESERVED.has(physical)))
}
