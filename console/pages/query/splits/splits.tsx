import { useMemo } from 'react'
import { useEvent } from '../../../api/query-events.ts'
import type { Column } from '../../../parts/data-table.tsx'
import { EXPLANATIONS } from '../../../parts/explanations.ts'
import { bytesColumn, countColumn } from '../../../parts/figure-columns.tsx'
import { Problem } from '../../../parts/problem.tsx'
import { TableSection } from '../../../parts/table-section.tsx'
import { plannedSplits, type PlannedSplit } from './planned-splits.ts'

const columns: readonly Column<PlannedSplit>[] = [
  { id: 'stage', title: 'Stage', explanation: EXPLANATIONS.stage, value: ({ stage }) => stage },
  countColumn({ id: 'scan', title: 'Scan', explanation: EXPLANATIONS.scan, of: ({ scan }) => scan }),
  { id: 'catalog', title: 'Catalog', value: ({ catalog }) => catalog },
  countColumn({ id: 'rows', title: 'Rows', explanation: EXPLANATIONS.splitRows, of: ({ rows }) => rows }),
  bytesColumn({ id: 'bytes', title: 'Bytes', explanation: EXPLANATIONS.splitBytes, of: ({ bytes }) => bytes }),
]

/**
 * The splits of the plan: the parts of tables that the stages read.
 * @param plan sequence of the event with the plan; undefined: there is none yet
 */
export function Splits({ queryId, plan }: { readonly queryId: string; readonly plan: number | undefined }) {
  if (plan === undefined) return <p>No splits: the query is not planned yet, or failed before its plan.</p>
  return <SplitsOf queryId={queryId} sequence={plan} />
}

function SplitsOf({ queryId, sequence }: { readonly queryId: string; readonly sequence: number }) {
  const { data, error } = useEvent(queryId, sequence)
  const splits = useMemo(() => plannedSplits(data?.data), [data])
  if (error) return <Problem error={error} />
  if (data === undefined) return <p>The plan is being read.</p>
  return (
    <TableSection
      title="Splits"
      columns={columns}
      rows={splits}
      rowKey={({ id }) => id}
      empty="The plan reads no splits, or an access rule hides them."
    />
  )
}
