import { Anchor, Button, Group, Table, TextInput } from '@mantine/core'
import { useMemo, useState } from 'react'
import type { QueryEvent } from '../../../api/query-events.ts'
import { Instant } from '../../../parts/instant.tsx'
import { Pager } from '../../../parts/pager.tsx'
import { ScrolledTable } from '../../../parts/scrolled-table.tsx'
import { Section } from '../../../parts/section.tsx'
import { shownDuration } from '../../../parts/units.ts'
import { EventData } from './event-data.tsx'
import { eventName } from './event-name.ts'
import { EventTrack } from './event-track.tsx'
import { Explained } from '../../../parts/explained.tsx'
import { EXPLANATIONS } from '../../../parts/explanations.ts'

const PAGE = 100

interface EventListProps {
  readonly queryId: string
  readonly events: readonly QueryEvent[]
  readonly asOf: number | undefined
  readonly onTravel: (sequence: number) => void
}

/** The events of a query's stream as a timeline; those after `asOf` are faded. */
export function EventList({ queryId, events, asOf, onTravel }: EventListProps) {
  const [search, setSearch] = useState('')
  const [page, setPage] = useState(0)
  const found = useMemo(
    () => events.filter((event) => eventName(event).includes(search.toLowerCase())),
    [events, search],
  )
  const shown = found.slice(page * PAGE, (page + 1) * PAGE)
  return (
    <Section title="Events">
      <Group align="end" my="xs">
        <TextInput
          label="Kind of event"
          type="search"
          value={search}
          onChange={(event) => {
            setSearch(event.currentTarget.value)
            setPage(0)
          }}
        />
        <Kinds events={events} onChoose={setSearch} />
      </Group>
      <EventTrack events={found} asOf={asOf} />
      <Pager page={page} pageSize={PAGE} rows={found.length} onPage={setPage} />
      <ScrolledTable label="Events">
        <Table aria-label="Events">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Explained by={EXPLANATIONS.sequence}>Sequence</Explained>
              </Table.Th>
              <Table.Th>Event</Table.Th>
              <Table.Th>Time</Table.Th>
              <Table.Th>
                <Explained by={EXPLANATIONS.after}>After</Explained>
              </Table.Th>
              <Table.Th>Data</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {shown.map((event, index) => (
              <Table.Tr
                key={event.sequence}
                className={asOf !== undefined && event.sequence > asOf ? 'future' : undefined}
              >
                <Table.Td>
                  <Anchor
                    component="button"
                    type="button"
                    size="sm"
                    title="Show the query as of this event"
                    onClick={() => onTravel(event.sequence)}
                  >
                    {event.sequence}
                  </Anchor>
                </Table.Td>
                <Table.Td>{eventName(event)}</Table.Td>
                <Table.Td>
                  <Instant iso={event.time} />
                </Table.Td>
                <Table.Td>{elapsedSince(found[page * PAGE + index - 1], event)}</Table.Td>
                <Table.Td>
                  <EventData queryId={queryId} sequence={event.sequence} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrolledTable>
    </Section>
  )
}

/** A button for each kind of event, with its number; the most frequent first. */
function Kinds({
  events,
  onChoose,
}: {
  readonly events: readonly QueryEvent[]
  readonly onChoose: (name: string) => void
}) {
  const kinds = useMemo(() => {
    const counts = new Map<string, number>()
    for (const event of events) counts.set(eventName(event), (counts.get(eventName(event)) ?? 0) + 1)
    return [...counts].sort(([, a], [, b]) => b - a)
  }, [events])
  return (
    <Group gap={4} data-explains>
      <Explained by={EXPLANATIONS.kinds}>Kinds</Explained>
      {kinds.map(([name, count]) => (
        <Button key={name} size="compact-xs" variant="default" onClick={() => onChoose(name)}>
          {name} {count}
        </Button>
      ))}
    </Group>
  )
}

function elapsedSince(before: QueryEvent | undefined, { time }: QueryEvent): string {
  return before ? shownDuration(Math.max(0, Date.parse(time) - Date.parse(before.time)) * 1e6) : ''
}
