import { Title } from '@mantine/core'
import type { NodeInfo } from '../../../src/protocol/info/schemas/server.ts'
import { drainWorker, useNodes } from '../../api/server.ts'
import { Confirmed } from '../../parts/confirmed.tsx'
import { DataTable, type Column } from '../../parts/data-table.tsx'
import { bytesColumn, countColumn, durationColumn, instantColumn, stateColumn } from '../../parts/figure-columns.tsx'
import { LongText } from '../../parts/long-text.tsx'
import { Problem } from '../../parts/problem.tsx'
import { EXPLANATIONS } from '../../parts/explanations.ts'

const columns: readonly Column<NodeInfo>[] = [
  {
    id: 'node',
    title: 'Node',
    value: (node) => node.nodeId,
    cell: (node) => <span className="id">{node.nodeId}</span>,
  },
  stateColumn({ id: 'state', title: 'State', of: (node) => node.state }),
  { id: 'address', title: 'Address', value: (node) => node.uri },
  { id: 'version', title: 'Version', value: (node) => node.nodeVersion.version },
  durationColumn({ id: 'age', title: 'Age', explanation: EXPLANATIONS.age, of: (node) => node.age }),
  countColumn({
    id: 'tasks',
    title: 'Tasks',
    explanation: EXPLANATIONS.workerTasks,
    of: (node) => node.runningTasks,
  }),
  countColumn({ id: 'cores', title: 'Cores', explanation: EXPLANATIONS.cores, of: (node) => node.cores }),
  bytesColumn({
    id: 'memory',
    title: 'Memory',
    explanation: EXPLANATIONS.workerMemory,
    of: (node) => node.memoryBytes,
  }),
  {
    id: 'requests',
    title: 'Requests',
    explanation: EXPLANATIONS.requests,
    numeric: true,
    value: (node) => node.recentRequests,
    cell: (node) => node.recentRequests.toFixed(1),
  },
  {
    id: 'failures',
    title: 'Failures',
    explanation: EXPLANATIONS.failures,
    numeric: true,
    value: (node) => node.recentFailures,
    cell: (node) => node.recentFailures.toFixed(1),
  },
  instantColumn({ id: 'answer', title: 'Last answer', of: (node) => node.lastResponseTime }),
  {
    id: 'failure',
    title: 'Last failure',
    value: (node) => node.lastFailureInfo?.message,
    cell: ({ lastFailureInfo: failure }) =>
      failure ? (
        <span title={failure.type}>
          <LongText text={failure.message} />
        </span>
      ) : null,
  },
  {
    id: 'actions',
    title: 'Actions',
    cell: (node) =>
      node.state === 'shutting_down' ? null : (
        <Confirmed
          button="Drain"
          title={`Drain worker ${node.nodeId}`}
          text="The worker finishes its tasks, takes no new ones, and ends."
          act={() => drainWorker(node.nodeId)}
          changes={['nodes']}
        />
      ),
  },
]

/** The workers, their health, and a button that drains a worker. */
export function Workers() {
  const { data, error } = useNodes()
  return (
    <section aria-label="Workers">
      <Title order={2} size="h4" mt="md" mb="xs">
        Workers
      </Title>
      {error ? <Problem error={error} /> : null}
      {data ? (
        <DataTable label="Workers" columns={columns} rows={data} rowKey={(node) => node.nodeId} empty="No workers." />
      ) : null}
    </section>
  )
}
