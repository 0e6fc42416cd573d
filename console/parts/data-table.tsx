import { Table, UnstyledButton } from '@mantine/core'
import {
  createSortedRowModel,
  rowSortingFeature,
  sortFn_alphanumeric,
  sortFn_basic,
  tableFeatures,
  useTable,
  type ColumnDef,
} from '@tanstack/react-table'
import { useMemo, useState, type ReactNode } from 'react'
import classes from './data-table.module.css'
import { Pager } from './pager.tsx'

/** A column of a DataTable. */
export interface Column<T> {
  /** Unique in the table. */
  readonly id: string
  readonly title: string
  /** Explains the column, with its unit; the head shows it as its title. */
  readonly explanation?: string
  /** Aligned to the right, and compared as a number. */
  readonly numeric?: true
  /** The value by which a click on the head sorts the rows. */
  readonly value: (row: T) => string | number | undefined
  /** What the cell shows; default: the value. */
  readonly cell?: (row: T) => ReactNode
}

const features = tableFeatures({
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
  sortFns: { alphanumeric: sortFn_alphanumeric, basic: sortFn_basic },
})

/** The most rows that a table shows at once; further rows are on further pages. */
const PAGE = 200

export interface DataTableProps<T> {
  /** The table's name for screen readers. */
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  /** Identifies a row, so that rows keep their elements (and a selection of text) when data refresh. */
  readonly rowKey: (row: T) => string
  /** Shown where there are no rows. */
  readonly empty: string
}

/** A table with sortable columns. */
export function DataTable<T extends object>({ label, columns, rows, rowKey, empty }: DataTableProps<T>) {
  const definitions = useMemo(() => columns.map(definitionOf), [columns])
  const data = useMemo(() => [...rows], [rows])
  const table = useTable({ features, columns: definitions, data, getRowId: rowKey, enableSortingRemoval: true })
  const [chosen, setPage] = useState(0)
  if (rows.length === 0) return <p>{empty}</p>
  const page = Math.min(chosen, Math.ceil(rows.length / PAGE) - 1)
  const byId = new Map(columns.map((column) => [column.id, column]))
  return (
    <>
      <Pager page={page} pageSize={PAGE} rows={rows.length} onPage={setPage} />
      <Table.ScrollContainer minWidth={320}>
        <Table highlightOnHover aria-label={label} className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              {table.getHeaderGroups()[0]?.headers.map(({ column }) => (
                <Table.Th
                  key={column.id}
                  className={byId.get(column.id)?.numeric ? classes.numeric : undefined}
                  aria-sort={ariaSort(column.getIsSorted())}
                >
                  <UnstyledButton
                    className={classes.head}
                    title={byId.get(column.id)?.explanation}
                    onClick={column.getToggleSortingHandler()}
                  >
                    {byId.get(column.id)?.title}
                    {sortMark(column.getIsSorted())}
                  </UnstyledButton>
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {table
              .getRowModel()
              .rows.slice(page * PAGE, (page + 1) * PAGE)
              .map((row) => (
                <Table.Tr key={row.id}>
                  {columns.map((column) => (
                    <Table.Td key={column.id} className={column.numeric ? classes.numeric : undefined}>
                      {column.cell ? column.cell(row.original) : column.value(row.original)}
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </>
  )
}

function definitionOf<T extends object>(column: Column<T>): ColumnDef<typeof features, T> {
  return {
    id: column.id,
    header: column.title,
    accessorFn: (row: T) => column.value(row),
    sortFn: column.numeric ? 'basic' : 'alphanumeric',
    sortUndefined: 'last',
  }
}

function ariaSort(sorted: false | 'asc' | 'desc'): 'none' | 'ascending' | 'descending' {
  if (sorted === false) return 'none'
  return sorted === 'asc' ? 'ascending' : 'descending'
}

function sortMark(sorted: false | 'asc' | 'desc'): string {
  if (sorted === false) return ''
  return sorted === 'asc' ? ' ↑' : ' ↓'
}
