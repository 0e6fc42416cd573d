import { Code, Table, Title } from '@mantine/core'
import { useState } from 'react'
import type { QueryEvent } from '../../api/queries.ts'
import { Instant } from '../../parts/instant.tsx'
import { eventName } from './event-name.ts'

/** The events of a query's stream; those after `asOf` are faded. The data of an event are rendered once it is opened. */
export function EventList({
  events,
  asOf,
}: {
  readonly events: readonly QueryEvent[]
  readonly asOf: number | undefined
}) {
  return (
    <section aria-label="Events">
      <Title order={2} size="h4" my="xs">
        Events
      </Title>
      <Table.ScrollContainer minWidth={320}>
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Sequence</Table.Th>
              <Table.Th>Event</Table.Th>
              <Table.Th>Time</Table.Th>
              <Table.Th>Data</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {events.map((event) => (
              <Table.Tr
                key={event.sequence}
                className={asOf !== undefined && event.sequence > asOf ? 'future' : undefined}
              >
                <Table.Td>{event.sequence}</Table.Td>
                <Table.Td>{eventName(event)}</Table.Td>
                <Table.Td>
                  <Instant iso={event.time} />
                </Table.Td>
                <Table.Td>
                  <EventData event={event} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </section>
  )
}

function EventData({ event }: { readonly event: QueryEvent }) {
  const [opened, setOpened] = useState(false)
  return (
    <details onToggle={(toggled) => setOpened(toggled.currentTarget.open)}>
      <summary>show</summary>
      {opened ? (
        <Code block className="sql" tabIndex={0}>
          {JSON.stringify(event.data, null, 2)}
        </Code>
      ) : null}
    </details>
  )
}
