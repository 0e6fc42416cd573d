import { Alert, Anchor, Group, Title } from '@mantine/core'
import { useSearchParams } from 'wouter'
import { isOver, useQueryEvents, useQueryInfo } from '../../api/queries.ts'
import { useFollowedEvents } from '../../api/follow-events.ts'
import { LiveMark } from '../../parts/live-mark.tsx'
import { Problem } from '../../parts/problem.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { usePageTitle } from '../../shell/use-page-title.ts'
import { EndActions } from './end-actions.tsx'
import { EndedBy } from './ended-by.tsx'
import { EventList } from './event-list.tsx'
import { QueryFacts } from './query-facts.tsx'
import { Stages } from './stages.tsx'
import { Statement } from './statement.tsx'
import { TimeSlider } from './time-slider.tsx'

/** A query, now or as of one of its events. The parameter `asOf` of the address is the event's sequence. */
export function QueryPage({ queryId }: { readonly queryId: string }) {
  usePageTitle(queryId)
  const [search, setSearch] = useSearchParams()
  const asOf = sequenceOf(search.get('asOf'))
  const { data: query, error } = useQueryInfo(queryId, asOf)
  const { data: events = [] } = useQueryEvents(queryId)
  const over = isOver(query)
  const connected = useFollowedEvents(over ? undefined : `/v1/events?query=${encodeURIComponent(queryId)}`, [
    'query',
    queryId,
  ])
  if (error) return <Problem error={error} />
  if (!query) return null
  const travel = (sequence: number | undefined) =>
    setSearch(sequence === undefined ? {} : { asOf: String(sequence) }, { replace: true })
  return (
    <>
      <Group>
        <Title order={1} size="h2" className="id">
          {queryId}
        </Title>
        <StateBadge state={query.state} />
        <Anchor href={`/v1/query/${queryId}?format=json`}>JSON</Anchor>
        {over ? <Anchor href={`/v1/query/${queryId}/trace`}>Trace</Anchor> : null}
        {over || asOf !== undefined ? null : <EndActions queryId={queryId} />}
        {over ? null : <LiveMark connected={connected} />}
      </Group>
      <TimeSlider events={events} asOf={asOf} onTravel={travel} />
      {query.errorCode ? (
        <Alert color="red" variant="outline" title={query.errorCode.name} my="sm">
          {query.failureInfo?.message}
          <EndedBy by={query.endedBy} />
        </Alert>
      ) : null}
      <Statement sql={query.query} location={query.failureInfo?.errorLocation} />
      <QueryFacts query={query} />
      {query.outputStage ? <Stages root={query.outputStage} /> : null}
      <EventList events={events} asOf={asOf} />
    </>
  )
}

function sequenceOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}
