import { Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { cellText, type Value } from '../api/statement/exact-json.ts'
import type { ResultColumn, Row } from '../api/statement/formats.ts'
import { DataTable, type Column } from './data-table.tsx'
import { EXPLANATIONS, type Explanation } from './explanations.ts'
import { LongText } from './long-text.tsx'

interface NumberedRow {
  readonly number: number
  readonly row: Row
}

/**
 * The rows of a result with exact values.
 * @param firstRow number of the first of these rows in the result, from 0
 * @param show shows a value in another form; undefined: as it is
 */
export function RowsTable({
  columns,
  rows,
  firstRow = 0,
  show,
  explanations = {},
  empty,
}: {
  readonly columns: readonly ResultColumn[]
  readonly rows: readonly Row[]
  readonly firstRow?: number
  readonly show?: (column: ResultColumn, text: string) => ReactNode | undefined
  /** Explanations of columns by their names; other columns have their type. */
  readonly explanations?: Readonly<Record<string, Explanation>>
  /** Shown where there are no rows. */
  readonly empty: string
}) {
  const shown = columns.map((column, index): Column<NumberedRow> => {
    const isNumeric = /^(tinyint|smallint|integer|bigint|real|double|decimal)/.test(column.type)
    return {
      id: String(index),
      title: column.name,
      explanation: Object.hasOwn(explanations, column.name)
        ? explanations[column.name]!
        : { text: `${EXPLANATIONS.resultNumber.text}; type ${column.type}` },
      value: ({ row }) => sortValue(row[index] ?? null, isNumeric),
      cell: ({ row }) => {
        const value = row[index] ?? null
        return (value === null ? undefined : show?.(column, cellText(value))) ?? <Cell value={value} />
      },
      ...(isNumeric && { numeric: true }),
    }
  })
  return (
    <DataTable
      label="Rows"
      columns={shown}
      rows={rows.map((row, index) => ({ number: firstRow + index, row }))}
      rowKey={({ number }) => String(number)}
      empty={empty}
    />
  )
}

function Cell({ value }: { readonly value: Value }) {
  if (value === null)
    return (
      <Text span size="sm" c="dimmed" fs="italic">
        NULL
      </Text>
    )
  return <LongText text={cellText(value)} />
}

/** Decimals and large numbers are texts here. Rows are sorted by their nearest number; NULL and NaN come last. */
function sortValue(value: Value, isNumeric: boolean): string | number | undefined {
  if (value === null) return undefined
  const text = cellText(value)
  if (!isNumeric) return text
  return Number.isNaN(Number(text)) ? undefined : Number(text)
}
