import { Progress } from '@mantine/core'
import { useMemo } from 'react'
import type { StageInfo } from '../../../../src/protocol/info/schemas/query.ts'
import type { Column } from '../../../parts/data-table.tsx'
import { TableSection } from '../../../parts/table-section.tsx'
import { shownDuration, shownOrUnknown, shownSize } from '../../../parts/units.ts'
import { allOperators, type OperatorFigures } from './operator-figures.ts'
import { EXPLANATIONS } from '../../../parts/explanations.ts'

type Row = OperatorFigures & { readonly share: number | undefined }

const columns: readonly Column<Row>[] = [
  {
    id: 'operator',
    title: 'Operator',
    explanation: { text: 'Name as in Trino; the title of a cell has the name in the engine' },
    value: (row) => row.name,
    cell: (row) => <span title={row.engine}>{row.name}</span>,
  },
  { id: 'stage', title: 'Stage', explanation: EXPLANATIONS.stage, value: (row) => row.stage },
  {
    id: 'share',
    title: 'Share',
    explanation: EXPLANATIONS.share,
    numeric: true,
    value: (row) => row.share,
    cell: (row) => (row.share === undefined ? '?' : <Share share={row.share} />),
  },
  {
    id: 'time',
    title: 'Time',
    explanation: EXPLANATIONS.operatorTime,
    numeric: true,
    value: (row) => row.nanos,
    cell: (row) => (row.nanos === undefined ? '?' : shownDuration(row.nanos)),
  },
  rowsColumn({ id: 'in', title: 'Rows in', explanation: EXPLANATIONS.rowsIn, value: (row) => row.rowsIn }),
  rowsColumn({ id: 'out', title: 'Rows out', explanation: EXPLANATIONS.rowsOut, value: (row) => row.rowsOut }),
  rowsColumn({
    id: 'estimate',
    title: 'Estimated rows',
    explanation: EXPLANATIONS.estimatedRows,
    value: (row) => row.estimatedRows,
  }),
  {
    id: 'bytes',
    title: 'Bytes out',
    explanation: EXPLANATIONS.bytesOut,
    numeric: true,
    value: (row) => row.bytesOut,
    cell: (row) => (row.bytesOut === 0 ? '' : shownSize(row.bytesOut)),
  },
]

/** A column of numbers of rows, some of which are unknown. */
function rowsColumn(
  column: Pick<Column<Row>, 'id' | 'title' | 'explanation'> & {
    readonly value: (row: Row) => number | undefined
  },
): Column<Row> {
  return { ...column, numeric: true, cell: (row) => shownOrUnknown(column.value(row)) }
}

/** The operators of all stages, those with the largest share of the time first. */
export function Operators({ root }: { readonly root: StageInfo | undefined }) {
  const rows = useMemo(() => withShares(allOperators(root)), [root])
  return (
    <TableSection
      title="Operators"
      columns={columns}
      rows={rows}
      rowKey={(row) => row.id}
      empty="No task has reported figures of operators."
    />
  )
}

function withShares(operators: readonly OperatorFigures[]): readonly Row[] {
  const all = operators.reduce((sum, { nanos = 0 }) => sum + nanos, 0)
  return operators
    .map((one) => ({ ...one, share: one.nanos === undefined || all === 0 ? undefined : one.nanos / all }))
    .sort((a, b) => (b.nanos ?? 0) - (a.nanos ?? 0))
}

function Share({ share }: { readonly share: number }) {
  return (
    <>
      {(100 * share).toFixed(1)} %
      <Progress value={100 * share} size="xs" aria-label="Share of the time" />
    </>
  )
}
