import { Title } from '@mantine/core'
import type { NodeInfo } from '../../src/protocol/info/wire-schemas.ts'
import { useNodes } from '../api/server.ts'
import { DataTable, type Column } from '../parts/data-table.tsx'
import { Duration } from '../parts/figure.tsx'
import { Instant } from '../parts/instant.tsx'
import { Problem } from '../parts/problem.tsx'
import { StateBadge } from '../parts/state-badge.tsx'
import { nanosOf } from '../parts/units.ts'
import { usePageTitle } from '../shell/use-page-title.ts'

const columns: readonly Column<NodeInfo>[] = [
  {
    id: 'node',
    title: 'Node',
    value: (node) => node.nodeId,
    cell: (node) => <span className="id">{node.nodeId}</span>,
  },
  { id: 'state', title: 'State', value: (node) => node.state, cell: (node) => <StateBadge state={node.state} /> },
  { id: 'address', title: 'Address', value: (node) => node.uri },
  { id: 'version', title: 'Version', value: (node) => node.nodeVersion.version },
  {
    id: 'age',
    title: 'Age',
    numeric: true,
    value: (node) => nanosOf(node.age),
    cell: (node) => <Duration of={node.age} />,
  },
  {
    id: 'requests',
    title: 'Requests',
    explanation: 'Requests to this worker, weighted so that those of the last minute count most',
    numeric: true,
    value: (node) => node.recentRequests,
    cell: (node) => node.recentRequests.toFixed(1),
  },
  {
    id: 'failures',
    title: 'Failures',
    explanation: 'Failed requests to this worker, weighted so that those of the last minute count most',
    numeric: true,
    value: (node) => node.recentFailures,
    cell: (node) => node.recentFailures.toFixed(1),
  },
  {
    id: 'answer',
    title: 'Last answer',
    value: (node) => node.lastResponseTime,
    cell: (node) => <Instant iso={node.lastResponseTime} />,
  },
]

/** The workers and their health. */
export function NodesPage() {
  usePageTitle('Nodes')
  const { data, error } = useNodes()
  return (
    <>
      <Title order={1} size="h2">
        Nodes
      </Title>
      {error ? <Problem error={error} /> : null}
      {data ? (
        <DataTable label="Workers" columns={columns} rows={data} rowKey={(node) => node.nodeId} empty="No workers." />
      ) : null}
    </>
  )
}
