import type { QueryListItem } from '../../../src/protocol/info/schemas/query.ts'
import { Text } from '@mantine/core'
import { Fragment } from 'react'
import { MOST_QUERIES, useQueryList } from '../../api/queries.ts'
import type { Column } from '../../parts/data-table.tsx'
import { durationColumn } from '../../parts/figure-columns.tsx'
import { cpuColumn, elapsedColumn, queryColumn, userColumn } from '../../parts/listed-columns.tsx'
import { Problem } from '../../parts/problem.tsx'
import { QueryLink } from '../../parts/query-link.tsx'
import { TableSection } from '../../parts/table-section.tsx'
import { Explained } from '../../parts/explained.tsx'
import { EXPLANATIONS } from '../../parts/explanations.ts'
import { shownCount } from '../../parts/units.ts'

const EVERY_MS = 2000
const OPEN = new URLSearchParams({ state: 'QUEUED,PLANNING,STARTING,RUNNING,FINISHING' })
/** The most running queries that the page shows for a waiting query. */
const MOST_SHOWN = 5

interface WaitingQuery extends QueryListItem {
  /** Queries that run in the same group. */
  readonly waitsFor: readonly string[]
}

const waitingColumns: readonly Column<WaitingQuery>[] = [
  queryColumn,
  userColumn,
  { id: 'group', title: 'Group', value: groupOf },
  durationColumn({
    id: 'waits',
    title: 'Waits',
    explanation: EXPLANATIONS.waits,
    of: (query) => query.queryStats.queuedTime,
  }),
  {
    id: 'why',
    title: 'Why',
    explanation: { text: 'The limit that holds the query back' },
    value: (query) => query.queuedReason,
  },
  {
    id: 'for',
    title: 'Behind',
    explanation: { text: 'Queries that run in the same group now, at most five of them' },
    value: (query) => query.waitsFor.length,
    cell: (query) =>
      query.waitsFor.slice(0, MOST_SHOWN).map((id, at) => (
        <Fragment key={id}>
          {at > 0 ? ', ' : ''}
          <QueryLink queryId={id} />
        </Fragment>
      )),
  },
]

const runningColumns: readonly Column<QueryListItem>[] = [
  queryColumn,
  userColumn,
  { id: 'group', title: 'Group', value: groupOf },
  elapsedColumn,
  cpuColumn,
]

/** The queries that wait in a group or below it, with the reason and the running queries. @param names of the path */
export function Waiting({ names }: { readonly names: readonly string[] }) {
  const { data, error } = useQueryList(OPEN, { everyMs: EVERY_MS, limit: MOST_QUERIES })
  if (!data) return error ? <Problem error={error} /> : null
  const inGroup = data.queries.filter(({ resourceGroupId }) => names.every((name, at) => resourceGroupId[at] === name))
  const running = inGroup.filter(({ state }) => state !== 'QUEUED')
  const runningIn = idsByGroup(running)
  const waiting = inGroup
    .filter(({ state }) => state === 'QUEUED')
    .map((query) => ({ ...query, waitsFor: runningIn.get(groupOf(query)) ?? [] }))
  return (
    <>
      {error ? <Problem error={error} /> : null}
      {data.older === undefined ? null : (
        <Text size="sm" role="status">
          There are more than{' '}
          <Explained by={EXPLANATIONS.openQueries}>{shownCount(MOST_QUERIES)} open queries</Explained>: the page shows
          the newest of them.
        </Text>
      )}
      <TableSection
        title="Waiting queries"
        columns={waitingColumns}
        rows={waiting}
        rowKey={idOf}
        empty="No query waits here."
      />
      <TableSection
        title="Running queries"
        columns={runningColumns}
        rows={running}
        rowKey={idOf}
        empty="No query runs here."
      />
    </>
  )
}

function idsByGroup(queries: readonly QueryListItem[]): ReadonlyMap<string, readonly string[]> {
  const ids = new Map<string, string[]>()
  for (const query of queries) {
    const group = groupOf(query)
    const found = ids.get(group)
    if (found) found.push(query.queryId)
    else ids.set(group, [query.queryId])
  }
  return ids
}

function groupOf({ resourceGroupId }: QueryListItem): string {
  return resourceGroupId.join(' › ')
}

function idOf({ queryId }: QueryListItem): string {
  return queryId
}
