import { Checkbox, Table, UnstyledButton } from '@mantine/core'
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
import { Explained } from './explained.tsx'
import type { Explanation } from './explanations.ts'
import { LongText } from './long-text.tsx'
import { Pager } from './pager.tsx'
import { ScrolledTable } from './scrolled-table.tsx'

/** A column of a DataTable. */
export interface Column<T> {
  /** Unique in the table. */
  readonly id: string
  readonly title: string
  /** Explains the column, with its unit; every column of numbers has one. */
  readonly explanation?: Explanation
  /** Aligned to the right, and compared as a number. */
  readonly numeric?: true
  /** The value by which a click on the head sorts the rows; absent: the rows cannot be sorted by this column. */
  readonly value?: (row: T) => string | number | undefined
  /** What the cell shows; default: the value. */
  readonly cell?: (row: T) => ReactNode
  /** The parameter of the request that sorts the rows by this column; absent: the server cannot sort by it. */
  readonly serverSort?: string
}

/** The order of rows that the server sorts. */
export interface ServerOrder {
  /** A `serverSort` of a column. */
  readonly by: string
  readonly descending: boolean
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
  /** Present if the server sorts the rows: a click on a head then asks for another order. */
  readonly serverOrder?: { readonly order: ServerOrder; readonly onOrder: (order: ServerOrder) => void }
  /** Rows that the user selected; absent: rows cannot be selected. */
  readonly selection?: Selection
}

/** Rows that the user selected, by their keys. They stay selected while data refresh. */
export interface Selection {
  readonly selected: ReadonlySet<string>
  readonly onSelect: (selected: ReadonlySet<string>) => void
}

/** A table with sortable columns. */
export function DataTable<T extends object>(props: DataTableProps<T>) {
  const { label, columns, rows, rowKey, empty, serverOrder, selection } = props
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
      <ScrolledTable label={label}>
        <Table highlightOnHover aria-label={label} className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              {selection ? (
                <Table.Th>
                  <SelectAll {...selection} keys={rows.map(rowKey)} />
                </Table.Th>
              ) : null}
              {table.getHeaderGroups()[0]?.headers.map(({ column: sortable }) => {
                const column = byId.get(sortable.id)
                const sorted = serverOrder ? sortedAtServer(column, serverOrder.order) : sortable.getIsSorted()
                const onSort = serverOrder
                  ? sorter(column, serverOrder)
                  : column?.value && sortable.getToggleSortingHandler()
                return (
                  <Table.Th
                    key={sortable.id}
                    className={column?.numeric ? classes.numeric : undefined}
                    aria-sort={onSort && ariaSort(sorted)}
                  >
                    <Head column={column} sorted={sorted} onSort={onSort} />
                  </Table.Th>
                )
              })}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {table
              .getRowModel()
              .rows.slice(page * PAGE, (page + 1) * PAGE)
              .map((row) => (
                <Table.Tr key={row.id}>
                  {selection ? (
                    <Table.Td>
                      <SelectRow {...selection} id={row.id} />
                    </Table.Td>
                  ) : null}
                  {columns.map((column) => (
                    <Table.Td key={column.id} className={column.numeric ? classes.numeric : undefined}>
                      {column.cell ? column.cell(row.original) : <Value of={column.value?.(row.original)} />}
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
          </Table.Tbody>
        </Table>
      </ScrolledTable>
    </>
  )
}

/** A short text is shown as it is. */
const SHORT = 60

function Value({ of }: { readonly of: string | number | undefined }) {
  return typeof of === 'string' && of.length > SHORT ? <LongText text={of} /> : of
}

type Sorted = false | 'asc' | 'desc'

/** The head of a column. A click on the title sorts the rows. */
function Head<T>({
  column,
  sorted,
  onSort,
}: {
  readonly column: Column<T> | undefined
  readonly sorted: Sorted
  readonly onSort: ((event: unknown) => void) | undefined
}) {
  const text = `${column?.title ?? ''}${sortMark(sorted)}`
  if (column?.explanation)
    return (
      <Explained by={column.explanation} onClick={onSort}>
        {text}
      </Explained>
    )
  return onSort ? (
    <UnstyledButton className={classes.head} onClick={onSort}>
      {text}
    </UnstyledButton>
  ) : (
    text
  )
}

function sortedAtServer<T>(column: Column<T> | undefined, { by, descending }: ServerOrder): Sorted {
  if (column?.serverSort !== by) return false
  return descending ? 'desc' : 'asc'
}

/** Asks the server for the order of a column, the largest first; a second click reverses the order. */
function sorter<T>(
  column: Column<T> | undefined,
  { order, onOrder }: NonNullable<DataTableProps<object>['serverOrder']>,
): (() => void) | undefined {
  const by = column?.serverSort
  return by === undefined ? undefined : () => onOrder({ by, descending: order.by !== by || !order.descending })
}

function SelectAll({ selected, onSelect, keys }: Selection & { readonly keys: readonly string[] }) {
  const all = keys.every((key) => selected.has(key))
  const others = [...selected].filter((key) => !keys.includes(key))
  return (
    <Checkbox
      aria-label="Select all rows of this page"
      checked={all}
      indeterminate={!all && keys.some((key) => selected.has(key))}
      onChange={() => onSelect(new Set(all ? others : [...others, ...keys]))}
    />
  )
}

function SelectRow({ selected, onSelect, id }: Selection & { readonly id: string }) {
  const others = [...selected].filter((key) => key !== id)
  return (
    <Checkbox
      aria-label={`Select ${id}`}
      checked={selected.has(id)}
      onChange={() => onSelect(new Set(selected.has(id) ? others : [...others, id]))}
    />
  )
}

function definitionOf<T extends object>(column: Column<T>): ColumnDef<typeof features, T> {
  return {
    id: column.id,
    header: column.title,
    accessorFn: (row: T) => column.value?.(row),
    sortFn: column.numeric ? 'basic' : 'alphanumeric',
    sortUndefined: 'last',
  }
}

function ariaSort(sorted: Sorted): 'none' | 'ascending' | 'descending' {
  if (sorted === false) return 'none'
  return sorted === 'asc' ? 'ascending' : 'descending'
}

function sortMark(sorted: Sorted): string {
  if (sorted === false) return ''
  return sorted === 'asc' ? ' ↑' : ' ↓'
}
