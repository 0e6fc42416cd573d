import { Group, Title } from '@mantine/core'
import type { ClusterInfo } from '../../../src/protocol/info/schemas/server.ts'
import { RequestRefused } from '../../api/request.ts'
import { setClusterState, useClusters } from '../../api/server.ts'
import { Confirmed } from '../../parts/confirmed.tsx'
import { DataTable, type Column } from '../../parts/data-table.tsx'
import { instantColumn, stateColumn } from '../../parts/figure-columns.tsx'
import { Problem } from '../../parts/problem.tsx'
import { EXPLANATIONS } from '../../parts/explanations.ts'

/** What each state means for new statements. */
const CHANGES: readonly {
  readonly state: ClusterInfo['state']
  readonly button: string
  readonly text: string
}[] = [
  { state: 'ACTIVE', button: 'Activate', text: 'The cluster gets new statements.' },
  { state: 'DRAINING', button: 'Drain', text: 'The cluster gets no new statements; those that run there finish.' },
  { state: 'INACTIVE', button: 'Deactivate', text: 'The cluster gets no new statements until someone activates it.' },
]

const columns: readonly Column<ClusterInfo>[] = [
  { id: 'cluster', title: 'Cluster', value: (cluster) => cluster.name },
  { id: 'group', title: 'Group', value: (cluster) => cluster.group },
  stateColumn({ id: 'state', title: 'State', of: (cluster) => cluster.state }),
  stateColumn({ id: 'health', title: 'Health', of: (cluster) => cluster.health }),
  { id: 'reason', title: 'Reason', value: (cluster) => cluster.reason },
  { id: 'by', title: 'By', value: (cluster) => cluster.by },
  instantColumn({ id: 'since', title: 'Since', of: (cluster) => cluster.since }),
  {
    id: 'running',
    title: 'Running',
    explanation: EXPLANATIONS.clusterRunning,
    numeric: true,
    value: (cluster) => cluster.running,
    cell: (cluster) =>
      cluster.maxRunning === undefined ? cluster.running : `${cluster.running} of ${cluster.maxRunning}`,
  },
  {
    id: 'waiting',
    title: 'Waiting',
    explanation: EXPLANATIONS.clusterWaiting,
    numeric: true,
    value: (cluster) => cluster.waiting,
  },
  { id: 'version', title: 'Version', value: (cluster) => cluster.version },
  {
    id: 'actions',
    title: 'Actions',
    cell: (cluster) => (
      <Group gap={4} wrap="nowrap">
        {CHANGES.filter(({ state }) => state !== cluster.state).map(({ state, button, text }) => (
          <Confirmed
            key={state}
            button={button}
            title={`${button} cluster ${cluster.name}`}
            text={text}
            reason="The event of the change keeps it"
            act={(reason) => setClusterState(cluster.name, state, reason)}
            changes={['clusters']}
          />
        ))}
      </Group>
    ),
  },
]

/** The clusters to which statements can be sent. A stand-by, which does not follow them, shows nothing. */
export function Clusters() {
  const { data, error } = useClusters()
  if (error instanceof RequestRefused && error.status === 404) return null
  return (
    <section aria-label="Clusters">
      <Title order={2} size="h4" mt="md" mb="xs">
        Clusters
      </Title>
      {error ? <Problem error={error} /> : null}
      {data ? (
        <DataTable
          label="Clusters"
          columns={columns}
          rows={data}
          rowKey={(cluster) => cluster.name}
          empty="No clusters are configured."
        />
      ) : null}
    </section>
  )
}
