import { Anchor, Text } from '@mantine/core'
import { Link } from 'wouter'
import type { QueryInfo, QueryListItem } from '../../../src/protocol/info/schemas/query.ts'
import { useQueryList } from '../../api/queries.ts'
import { DataTable, type Column } from '../../parts/data-table.tsx'
import { countColumn } from '../../parts/figure-columns.tsx'
import {
  cpuColumn,
  createdColumn,
  elapsedColumn,
  queryColumn,
  queryStateColumn,
  userColumn,
} from '../../parts/listed-columns.tsx'
import { Problem } from '../../parts/problem.tsx'
import { Section } from '../../parts/section.tsx'
import { EXPLANATIONS } from '../../parts/explanations.ts'

/** Other queries with the same fingerprint: statements that differ in their literals only. */
export function OtherRuns({ query }: { readonly query: QueryInfo }) {
  return (
    <Section title="Other runs">
      {query.fingerprint === undefined ? (
        <Text size="sm">
          The query has no fingerprint: it is not planned yet, cannot be parsed, or was recorded by an earlier version.
        </Text>
      ) : (
        <RunsOf queryId={query.queryId} fingerprint={query.fingerprint} />
      )}
    </Section>
  )
}

function RunsOf({ queryId, fingerprint }: { readonly queryId: string; readonly fingerprint: string }) {
  const { data, error } = useQueryList(new URLSearchParams({ fingerprint }))
  if (error) return <Problem error={error} />
  if (!data) return null
  const columns: readonly Column<QueryListItem>[] = [
    queryColumn,
    createdColumn,
    userColumn,
    queryStateColumn,
    elapsedColumn,
    cpuColumn,
    countColumn({
      id: 'read',
      title: 'Rows read',
      explanation: EXPLANATIONS.rowsRead,
      of: (query) => query.queryStats.rawInputPositions,
    }),
    {
      id: 'compare',
      title: 'Comparison',
      cell: (query) => (
        <Anchor component={Link} size="sm" href={`/compare?${new URLSearchParams({ a: queryId, b: query.queryId })}`}>
          Compare
        </Anchor>
      ),
    },
  ]
  return (
    <DataTable
      label="Other runs"
      columns={columns}
      rows={data.queries.filter((query) => query.queryId !== queryId)}
      rowKey={(query) => query.queryId}
      empty="No other query has this fingerprint."
    />
  )
}
