import { Button, Group, Title } from '@mantine/core'
import { useSearchParams } from 'wouter'
import { useFollowedEvents } from '../../api/follow-events.ts'
import { useQueryList } from '../../api/queries.ts'
import { DataTable } from '../../parts/data-table.tsx'
import { LiveMark } from '../../parts/live-mark.tsx'
import { Problem } from '../../parts/problem.tsx'
import { usePageTitle } from '../../shell/use-page-title.ts'
import { FilterForm } from './filter-form.tsx'
import { filtersIn } from './filters.ts'
import { queryColumns } from './query-columns.tsx'
import { SavedFilters } from './saved-filters.tsx'
import { Totals } from './totals.tsx'

/** The list of queries, newest first; the page without a cursor follows the event log. */
export function QueriesPage() {
  usePageTitle('Queries')
  const [search, setSearch] = useSearchParams()
  const cursor = search.get('cursor')
  const connected = useFollowedEvents(cursor === null ? '/v1/events' : undefined, ['queries'])
  const { data, error } = useQueryList(search)
  const filters = filtersIn(search)
  return (
    <>
      <Group justify="space-between">
        <Title order={1} size="h2">
          Queries
        </Title>
        {cursor === null ? <LiveMark connected={connected} /> : null}
      </Group>
      <FilterForm key={search.toString()} search={search} onFilter={setSearch} />
      <SavedFilters filters={filters} onFilter={setSearch} />
      <Totals filters={filters} />
      {error ? <Problem error={error} /> : null}
      {data ? (
        <DataTable
          label="Queries"
          columns={queryColumns}
          rows={data.queries}
          rowKey={(query) => query.queryId}
          empty="No queries."
        />
      ) : null}
      <Group>
        {cursor === null ? null : (
          <Button variant="default" onClick={() => setSearch(filters)}>
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

function withCursor(search: URLSearchParams, cursor: string): URLSearchParams {
  const next = new URLSearchParams(search)
  next.set('cursor', cursor)
  return next
}
