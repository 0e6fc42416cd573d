import { Anchor, Button, Group, NativeSelect, TextInput, Title } from '@mantine/core'
import type { FormEvent } from 'react'
import { Link, useSearchParams } from 'wouter'
import type { QueryListItem } from '../../src/protocol/info/wire-schemas.ts'
import { useFollowedEvents } from '../api/follow-events.ts'
import { useQueryList } from '../api/queries.ts'
import { DataTable, type Column } from '../parts/data-table.tsx'
import { countColumn, durationColumn, stateColumn } from '../parts/figure-columns.tsx'
import { Instant } from '../parts/instant.tsx'
import { LiveMark } from '../parts/live-mark.tsx'
import { Problem } from '../parts/problem.tsx'
import { usePageTitle } from '../shell/use-page-title.ts'

const STATES = ['QUEUED', 'PLANNING', 'STARTING', 'RUNNING', 'FINISHING', 'FINISHED', 'FAILED']
const FILTERS = ['state', 'user', 'q'] as const

const columns: readonly Column<QueryListItem>[] = [
  {
    id: 'query',
    title: 'Query',
    value: (query) => query.queryId,
    cell: (query) => (
      <Anchor component={Link} href={`/query/${query.queryId}`} className="id">
        {query.queryId}
      </Anchor>
    ),
  },
  stateColumn({ id: 'state', title: 'State', of: (query) => query.state }),
  { id: 'user', title: 'User', value: (query) => query.session.user },
  { id: 'source', title: 'Source', value: (query) => query.session.source },
  {
    id: 'created',
    title: 'Created',
    value: (query) => query.queryStats.createTime,
    cell: (query) => <Instant iso={query.queryStats.createTime} />,
  },
  durationColumn({
    id: 'elapsed',
    title: 'Elapsed',
    explanation: 'Time from the creation of the query to its end, or to now',
    of: (query) => query.queryStats.elapsedTime,
  }),
  countColumn({
    id: 'rows',
    title: 'Rows',
    explanation: 'Rows of the result',
    of: (query) => query.queryStats.outputPositions,
  }),
  {
    id: 'statement',
    title: 'Statement',
    value: (query) => query.query,
    cell: (query) => (
      <span className="statement" title={query.query}>
        {query.query}
      </span>
    ),
  },
]

/** The list of queries, newest first; the page without a cursor follows the event log. */
export function QueriesPage() {
  usePageTitle('Queries')
  const [search, setSearch] = useSearchParams()
  const cursor = search.get('cursor')
  const connected = useFollowedEvents(cursor === null ? '/v1/events' : undefined, ['queries'])
  const { data, error } = useQueryList(search)
  return (
    <>
      <Group justify="space-between">
        <Title order={1} size="h2">
          Queries
        </Title>
        {cursor === null ? <LiveMark connected={connected} /> : null}
      </Group>
      <Filter key={search.toString()} search={search} onFilter={setSearch} />
      {error ? <Problem error={error} /> : null}
      {data ? (
        <DataTable
          label="Queries"
          columns={columns}
          rows={data.queries}
          rowKey={(query) => query.queryId}
          empty="No queries."
        />
      ) : null}
      <Group>
        {cursor === null ? null : (
          <Button variant="default" onClick={() => setSearch(withoutCursor(search))}>
            Newest
          </Button>
        )}
        {data?.older === undefined ? null : (
          <Button variant="default" onClick={() => setSearch(withCursor(search, data.older ?? ''))}>
            Older
          </Button>
        )}
      </Group>
    </>
  )
}

function Filter({
  search,
  onFilter,
}: {
  readonly search: URLSearchParams
  readonly onFilter: (search: URLSearchParams) => void
}) {
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const chosen = new FormData(event.currentTarget)
    const given = FILTERS.map((name) => [name, String(chosen.get(name) ?? '')]).filter(([, value]) => value !== '')
    onFilter(new URLSearchParams(given))
  }
  return (
    <form onSubmit={submit}>
      <Group align="end" gap="xs" my="sm">
        <NativeSelect
          label="State"
          name="state"
          defaultValue={search.get('state') ?? ''}
          data={[{ value: '', label: 'any' }, ...STATES]}
        />
        <TextInput label="User" name="user" type="search" defaultValue={search.get('user') ?? ''} />
        <TextInput label="Text of the statement" name="q" type="search" defaultValue={search.get('q') ?? ''} />
        <Button type="submit" variant="default">
          Filter
        </Button>
      </Group>
    </form>
  )
}

function withCursor(search: URLSearchParams, cursor: string): URLSearchParams {
  const next = new URLSearchParams(search)
  next.set('cursor', cursor)
  return next
}

function withoutCursor(search: URLSearchParams): URLSearchParams {
  const next = new URLSearchParams(search)
  next.delete('cursor')
  return next
}
