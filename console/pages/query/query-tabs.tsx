import { Tabs } from '@mantine/core'
import type { ReactNode } from 'react'
import { useSearchParams } from 'wouter'
import type { QueryInfo } from '../../../src/protocol/info/schemas/query.ts'
import type { EventHead, EventSummary } from '../../api/event-summary.ts'
import { EventList } from './events/event-list.tsx'
import { Graphs } from './graphs/graphs.tsx'
import { LineageTables } from './lineage.tsx'
import { OtherRuns } from './other-runs.tsx'
import { Operators } from './operators/operators.tsx'
import { QueryFacts } from './query-facts.tsx'
import { Session } from './session.tsx'
import { Splits } from './splits/splits.tsx'
import { Statement } from './statement.tsx'
import { Tasks } from './tasks/tasks.tsx'
import { Phases } from './time/phases.tsx'

interface QueryTabsProps {
  readonly query: QueryInfo
  readonly summary: EventSummary
  /** The event that the page shows; undefined while it is being read. */
  readonly event: EventHead | undefined
  readonly asOf: number | undefined
  readonly onTravel: (sequence: number) => void
}

interface Tab {
  readonly id: string
  readonly title: string
  readonly content: (props: QueryTabsProps) => ReactNode
}

const TABS: readonly [Tab, ...Tab[]] = [
  {
    id: 'overview',
    title: 'Overview',
    content: ({ query }) => (
      <>
        <Statement sql={query.query} location={query.failureInfo?.errorLocation} />
        <Phases query={query} />
        <QueryFacts query={query} />
      </>
    ),
  },
  { id: 'graph', title: 'Graph', content: ({ query }) => <Graphs query={query} /> },
  { id: 'operators', title: 'Operators', content: ({ query }) => <Operators root={query.outputStage} /> },
  {
    id: 'tasks',
    title: 'Tasks',
    content: ({ query, event, asOf }) => (
      <Tasks root={query.outputStage} now={momentOf(query, asOf === undefined ? undefined : event)} />
    ),
  },
  {
    id: 'splits',
    title: 'Splits',
    content: ({ query, summary, asOf }) => (
      <Splits queryId={query.queryId} plan={summary.plans.findLast((plan) => asOf === undefined || plan <= asOf)} />
    ),
  },
  { id: 'lineage', title: 'Lineage', content: ({ query }) => <LineageTables query={query} /> },
  { id: 'runs', title: 'Other runs', content: ({ query }) => <OtherRuns query={query} /> },
  { id: 'session', title: 'Session', content: ({ query }) => <Session session={query.session} /> },
  {
    id: 'events',
    title: 'Events',
    content: ({ query, summary, asOf, onTravel }) => (
      <EventList queryId={query.queryId} summary={summary} asOf={asOf} onTravel={onTravel} />
    ),
  },
]

/** The parts of a query's page. The parameter `tab` of the address names the part that is shown. */
export function QueryTabs(props: QueryTabsProps) {
  const [search, setSearch] = useSearchParams()
  const shown = TABS.find(({ id }) => id === search.get('tab')) ?? TABS[0]
  const show = (id: string | null) => {
    const next = new URLSearchParams(search)
    next.set('tab', id ?? TABS[0].id)
    setSearch(next, { replace: true })
  }
  return (
    <Tabs value={shown.id} onChange={show} keepMounted={false}>
      <Tabs.List>
        {TABS.map(({ id, title }) => (
          <Tabs.Tab key={id} value={id}>
            {title}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value={shown.id} pt="xs">
        {shown.content(props)}
      </Tabs.Panel>
    </Tabs>
  )
}

/** The moment that the page shows, milliseconds since the epoch. @param event of the past; undefined: now */
function momentOf(query: QueryInfo, event: EventHead | undefined): number {
  const moment = event?.time ?? query.queryStats.endTime
  return moment === undefined ? Date.now() : Date.parse(moment)
}
