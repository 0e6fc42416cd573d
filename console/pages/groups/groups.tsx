import { Anchor, Title } from '@mantine/core'
import { Fragment } from 'react'
import { Link, useSearchParams } from 'wouter'
import type { ResourceGroupInfo } from '../../../src/protocol/info/schemas/server.ts'
import { useResourceGroups } from '../../api/server.ts'
import { DataTable, type Column } from '../../parts/data-table.tsx'
import { durationColumn, stateColumn } from '../../parts/figure-columns.tsx'
import { LongText } from '../../parts/long-text.tsx'
import { Problem } from '../../parts/problem.tsx'
import { bytesOf } from '../../parts/units.ts'
import { usePageTitle } from '../../shell/use-page-title.ts'
import { Waiting } from './waiting.tsx'
import { EXPLANATIONS } from '../../parts/explanations.ts'
import { Size } from '../../parts/figure.tsx'

const columns: readonly Column<ResourceGroupInfo>[] = [
  {
    id: 'group',
    title: 'Group',
    value: (group) => group.id.at(-1),
    cell: (group) => (
      <Anchor component={Link} href={addressOf(group.id)}>
        <LongText text={group.id.at(-1) ?? ''} />
      </Anchor>
    ),
  },
  stateColumn({ id: 'state', title: 'State', of: (group) => group.state }),
  { id: 'policy', title: 'Policy', value: (group) => group.schedulingPolicy.toLowerCase() },
  {
    id: 'weight',
    title: 'Weight',
    explanation: EXPLANATIONS.weight,
    numeric: true,
    value: (group) => group.schedulingWeight,
  },
  {
    id: 'running',
    title: 'Running',
    explanation: EXPLANATIONS.groupRunning,
    numeric: true,
    value: (group) => group.numRunningQueries,
    cell: (group) => `${group.numRunningQueries} of ${group.hardConcurrencyLimit}`,
  },
  {
    id: 'queued',
    title: 'Queued',
    explanation: EXPLANATIONS.groupQueued,
    numeric: true,
    value: (group) => group.numQueuedQueries,
    cell: (group) => `${group.numQueuedQueries} of ${group.maxQueuedQueries}`,
  },
  {
    id: 'memory',
    title: 'Memory',
    explanation: EXPLANATIONS.groupMemory,
    numeric: true,
    value: (group) => bytesOf(group.memoryUsage),
    cell: (group) => <Size of={group.memoryUsage} />,
  },
  durationColumn({ id: 'cpu', title: 'CPU', explanation: EXPLANATIONS.groupCpu, of: (group) => group.cpuUsage }),
]

/** The resource groups at the top, or one group with those below it. */
export function GroupsPage() {
  const [search] = useSearchParams()
  const names = search.getAll('group')
  const title = names.length === 0 ? 'Groups' : names.join(' › ')
  usePageTitle(title)
  const { data, error } = useResourceGroups(names)
  return (
    <>
      <Title order={1} size="h2">
        {names.length === 0 ? title : <GroupPath names={names} />}
      </Title>
      {error ? <Problem error={error} /> : null}
      {data ? (
        <DataTable
          label="Resource groups"
          columns={columns}
          rows={data.group ? [data.group, ...data.groups] : data.groups}
          rowKey={(group) => JSON.stringify(group.id)}
          empty="No group has queries now."
        />
      ) : null}
      <Waiting names={names} />
    </>
  )
}

/** The path of a group, with links to the groups above it. */
function GroupPath({ names }: { readonly names: readonly string[] }) {
  return (
    <>
      <Anchor component={Link} href="/groups" inherit underline="always">
        Groups
      </Anchor>
      {names.map((name, at) => (
        <Fragment key={at}>
          {' › '}
          {at + 1 === names.length ? (
            name
          ) : (
            <Anchor component={Link} href={addressOf(names.slice(0, at + 1))} inherit underline="always">
              {name}
            </Anchor>
          )}
        </Fragment>
      ))}
    </>
  )
}

function addressOf(id: readonly string[]): string {
  return `/groups?${new URLSearchParams(id.map((name) => ['group', name]))}`
}
