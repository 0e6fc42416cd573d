import { Button, Group, Title } from '@mantine/core'
import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { useFollowedEvents } from '../../api/follow-events.ts'
import { useQueryList } from '../../api/queries.ts'
import { DataTable, type ServerOrder } from '../../parts/data-table.tsx'
import { LiveMark } from '../../parts/live-mark.tsx'
import { Problem } from '../../parts/problem.tsx'
import { usePageTitle } from '../../shell/use-page-title.ts'
import { BulkBar } from './bulk-bar.tsx'
import { FilterForm } from './filter-form.tsx'
import { filtersIn } from './filters.ts'
import { queryColumns } from './query-columns.tsx'
import { SavedFilters } from './saved-filters.tsx'
import { SearchedSince } from './searched-since.tsx'
import { Totals } from './totals.tsx'

/** The list of queries, newest first; the page without a cursor follows the event log. */
export function QueriesPage() {
  usePageTitle('Queries')
  const [search, setSearch] = useSearchParams()
  const cursor = search.get('cursor')
  const isNewest = cursor === null && search.get('sort') === null
  const connected = useFollowedEvents(isNewest ? '/v1/events' : undefined, ['queries'])
  const { data, error } = useQueryList(search)
  const filters = filtersIn(search)
  const order = orderIn(search)
  const [selected, onSelect] = useState<ReadonlySet<string>>(new Set())
  return (
    <>
      <Group justify="space-between">
        <Title order={1} size="h2">
          Queries
        </Title>
        {isNewest ? <LiveMark connected={connected} /> : null}
      </Group>
      <FilterForm search={search} onFilter={(chosen) => setSearch(ordered(chosen, order))} />
      <SavedFilters filters={filters} onFilter={(chosen) => setSearch(ordered(chosen, order))} />
      {data?.searchedSince === undefined ? null : <SearchedSince iso={data.searchedSince} />}
      <Totals filters={filters} />
      <BulkBar filters={filters} selected={selected} onClear={() => onSelect(new Set())} />
      {error ? <Problem error={error} /> : null}
      {data ? (
        <DataTable
          label="Queries"
          columns={queryColumns}
          rows={data.queries}
          rowKey={(query) => query.queryId}
          empty={filters.size > 0 ? 'No query matches the filters.' : 'There are no queries that you may see.'}
          serverOrder={{ order, onOrder: (next) => setSearch(ordered(filters, next)) }}
          selection={{ selected, onSelect }}
        />
      ) : null}
      <Group>
        {cursor === null ? null : (
          <Button variant="default" onClick={() => setSearch(ordered(filters, order))}>
            First page
          </Button>
        )}
        {data?.older === undefined ? null : (
          <Button variant="default" onClick={() => setSearch(withCursor(search, data.older ?? ''))}>
            {order.by === 'created' && order.descending ? 'Older' : 'Next page'}
          </Button>
        )}
      </Group>
    </>
  )
}

/** The order of the list in an address; newest first where it has none. */
function orderIn(search: URLSearchParams): ServerOrder {
  return { by: search.get('sort') ?? 'created', descending: search.get('order') !== 'asc' }
}

/** An address with these filters and this order. */
function ordered(filters: URLSearchParams, { by, descending }: ServerOrder): URLSearchParams {
  const next = new URLSearchParams(filters)
  if (by !== 'created' || !descending) next.set('sort', by)
  if (!descending) next.set('order', 'asc')
  return next
}

function withCursor(search: URLSearchParams, cursor: string): URLSearchParams {
  const next = new URLSearchParams(search)
  next.set('cursor', cursor)
  return next
}
