import { Button, Group, Table, Text, TextInput } from '@mantine/core'
import { useCallback, useState } from 'react'
import { countKinds } from '../../../api/event-summary.ts'
import { Explained } from '../../../parts/explained.tsx'
import { EXPLANATIONS } from '../../../parts/explanations.ts'
import { ScrolledTable } from '../../../parts/scrolled-table.tsx'
import { Section } from '../../../parts/section.tsx'
import { shownCount } from '../../../parts/units.ts'
import { eventName } from './event-name.ts'
import { COLUMNS, EmptyRows, EventRows, type EventRowsProps } from './event-rows.tsx'
import { EventTrack } from './event-track.tsx'

type Travel = Pick<EventRowsProps, 'queryId' | 'summary' | 'asOf' | 'onTravel'>

/** The events of a query's stream as a timeline; those after `asOf` are faded. */
export function EventList(props: Travel) {
  const { summary, asOf } = props
  const [text, setText] = useState('')
  const search = text.toLowerCase()
  const counts = [...countKinds(summary)].sort(([, a], [, b]) => b - a)
  const found = counts.filter(([kind]) => eventName(kind).includes(search))
  const kinds = found.map(([kind]) => kind)
  return (
    <Section title="Events">
      <Group align="end" my="xs">
        <TextInput
          label="Kind of event"
          type="search"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        <Group gap={4} data-explains>
          <Explained by={EXPLANATIONS.kinds}>Kinds</Explained>
          {counts.map(([kind, count]) => (
            <Button key={kind} size="compact-xs" variant="default" onClick={() => setText(eventName(kind))}>
              {eventName(kind)} {count}
            </Button>
          ))}
        </Group>
      </Group>
      <EventTrack summary={summary} kinds={kinds} asOf={asOf} />
      <ScrolledEvents
        key={search}
        {...props}
        search={search}
        kinds={kinds}
        all={found.reduce((sum, [, count]) => sum + count, 0)}
      />
    </Section>
  )
}

/** Rows that are read together. The list shows two such windows, and only one at its beginning and at its end. */
const WINDOW = 100
/** The next window replaces the one above when so many of its rows have left the list at the top. */
const ABOVE = 20

/** A list of events that reads the rows that are seen. @param all the number of all rows */
function ScrolledEvents({
  all,
  ...props
}: Travel & Pick<EventRowsProps, 'search' | 'kinds'> & { readonly all: number }) {
  const [first, setFirst] = useState(-1)
  // Until a row is measured.
  const [rowHeight, setRowHeight] = useState(37)
  const measure = useCallback((row: HTMLElement | null) => {
    if (row) setRowHeight(row.getBoundingClientRect().height)
  }, [])
  const windows = [first, first + 1].map((at) => at * WINDOW).filter((from) => from >= 0 && from < all)
  const [begin = 0] = windows
  const end = Math.min(begin + windows.length * WINDOW, all)
  return (
    <>
      {all > WINDOW ? (
        <Text size="sm" my="xs">
          <Explained by={EXPLANATIONS.shownRows}>
            {shownCount(begin + 1)} to {shownCount(end)} of {shownCount(all)}
          </Explained>
        </Text>
      ) : null}
      <ScrolledTable label="Events" onScroll={(pixels) => setFirst(Math.floor((pixels / rowHeight - ABOVE) / WINDOW))}>
        <Table stickyHeader aria-label="Events" aria-rowcount={all + 1}>
          <Table.Thead>
            <Table.Tr>
              {COLUMNS.map(({ title, explanation }) => (
                <Table.Th key={title}>{explanation ? <Explained by={explanation}>{title}</Explained> : title}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <EmptyRows height={begin * rowHeight} />
          {windows.map((from) => (
            <EventRows
              key={from}
              {...props}
              from={from}
              count={Math.min(WINDOW, all - from)}
              rowHeight={rowHeight}
              firstRow={measure}
            />
          ))}
          <EmptyRows height={(all - end) * rowHeight} />
        </Table>
      </ScrolledTable>
    </>
  )
}
