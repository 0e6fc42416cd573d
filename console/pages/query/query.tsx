import { Alert, Group, Title } from '@mantine/core'
import { useSearchParams } from 'wouter'
import { useFollowedEvents } from '../../api/follow-events.ts'
import { isOver, useQueryInfo } from '../../api/queries.ts'
import { RequestRefused } from '../../api/request.ts'
import { NO_EVENTS } from '../../api/event-summary.ts'
import { useEvent, useEventSummary } from '../../api/query-events.ts'
import { LiveMark } from '../../parts/live-mark.tsx'
import { Problem } from '../../parts/problem.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { usePageTitle } from '../../shell/use-page-title.ts'
import { Downloads } from './downloads.tsx'
import { EndActions } from './end-actions.tsx'
import { EndedBy } from './ended-by.tsx'
import { QueryTabs } from './query-tabs.tsx'
import { TimeSlider } from './time/time-slider.tsx'

/** A query, now or as of one of its events. The parameter `asOf` of the address is the event's sequence. */
export function QueryPage({ queryId }: { readonly queryId: string }) {
  usePageTitle(queryId)
  const [search, setSearch] = useSearchParams()
  const asOf = sequenceOf(search.get('asOf'))
  const { data: query, error } = useQueryInfo(queryId, asOf)
  const { data: summary = NO_EVENTS } = useEventSummary(queryId)
  const { data: eventOfPast } = useEvent(queryId, asOf)
  const event = asOf === undefined ? summary.last : (eventOfPast ?? undefined)
  const over = isOver(query) || summary.hasEnd
  // The figures may be final before the last events are here. The server has no feed for a query that it refuses to show.
  const hasFeed = !summary.hasEnd && !(error instanceof RequestRefused)
  const feed = hasFeed ? `/v1/events?query=${encodeURIComponent(queryId)}` : undefined
  const connected = useFollowedEvents(feed, ['query', queryId])
  const travel = (sequence: number | undefined) => {
    const next = new URLSearchParams(search)
    if (sequence === undefined) next.delete('asOf')
    else next.set('asOf', String(sequence))
    setSearch(next, { replace: true })
  }
  return (
    <>
      <Group>
        <Title order={1} size="h2" className="id">
          {queryId}
        </Title>
        {query ? (
          <>
            <StateBadge state={query.state} />
            <Downloads queryId={queryId} over={over} />
            {over || asOf !== undefined ? null : <EndActions queryId={queryId} />}
            {over ? null : <LiveMark connected={connected} />}
          </>
        ) : null}
      </Group>
      {query || summary.last ? (
        <TimeSlider last={summary.last?.sequence ?? 1} event={event} asOf={asOf} onTravel={travel} />
      ) : null}
      {error ? <Problem error={error} /> : null}
      {query || error ? null : <p>The query is being read.</p>}
      {query?.errorCode ? (
        <Alert color="red" variant="outline" title={query.errorCode.name} my="sm">
          {query.failureInfo?.message}
          <EndedBy by={query.endedBy} />
        </Alert>
      ) : null}
      {query ? <QueryTabs query={query} summary={summary} event={event} asOf={asOf} onTravel={travel} /> : null}
    </>
  )
}

function sequenceOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}
