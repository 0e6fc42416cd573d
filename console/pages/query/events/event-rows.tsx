import { Anchor, Table } from '@mantine/core'
import { memo, type Ref } from 'react'
import type { EventHead, EventSummary } from '../../../api/event-summary.ts'
import { kindOf } from '../../../api/event-summary.ts'
import { useEventWindow, type EventWindow } from '../../../api/query-events.ts'
import { EXPLANATIONS, type Explanation } from '../../../parts/explanations.ts'
import { Instant } from '../../../parts/instant.tsx'
import { Problem } from '../../../parts/problem.tsx'
import { shownDuration } from '../../../parts/units.ts'
import { EventData } from './event-data.tsx'
import { eventName } from './event-name.ts'

/** The columns of a list of events. */
export const COLUMNS: readonly { readonly title: string; readonly explanation?: Explanation }[] = [
  { title: 'Sequence', explanation: EXPLANATIONS.sequence },
  { title: 'Event' },
  { title: 'Time' },
  { title: 'After', explanation: EXPLANATIONS.after },
  { title: 'Data' },
]

export interface EventRowsProps extends EventWindow {
  readonly queryId: string
  readonly summary: EventSummary
  readonly asOf: number | undefined
  readonly onTravel: (sequence: number) => void
  /** Height of a row whose data is not open, pixels. */
  readonly rowHeight: number
  /** Gets the first row when it is made. */
  readonly firstRow: Ref<HTMLTableRowElement>
}

/** Some rows of a list of events. Until they are read, an empty row has their height. */
export const EventRows = memo(function EventRows({ queryId, summary, asOf, onTravel, ...shown }: EventRowsProps) {
  const { data, error } = useEventWindow(queryId, summary, shown)
  if (error)
    return (
      <Table.Tbody>
        <Table.Tr>
          <Table.Td colSpan={COLUMNS.length}>
            <Problem error={error} />
          </Table.Td>
        </Table.Tr>
      </Table.Tbody>
    )
  if (!data) return <EmptyRows height={shown.count * shown.rowHeight} />
  return (
    <Table.Tbody>
      {data.rows.map((event, at) => (
        <Table.Tr
          key={event.sequence}
          ref={at === 0 ? shown.firstRow : undefined}
          aria-rowindex={shown.from + at + 2}
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
          <Table.Td>{eventName(kindOf(event))}</Table.Td>
          <Table.Td>
            <Instant iso={event.time} />
          </Table.Td>
          <Table.Td>{elapsedSince(at === 0 ? data.before : data.rows[at - 1], event)}</Table.Td>
          <Table.Td>
            <EventData queryId={queryId} sequence={event.sequence} />
          </Table.Td>
        </Table.Tr>
      ))}
    </Table.Tbody>
  )
})

/** Takes the height of rows that are not read. @param height in pixels */
export function EmptyRows({ height }: { readonly height: number }) {
  return (
    <tbody aria-hidden>
      <tr>
        <td colSpan={COLUMNS.length} style={{ height, padding: 0 }} />
      </tr>
    </tbody>
  )
}

function elapsedSince(before: EventHead | undefined, { time }: EventHead): string {
  return before ? shownDuration(Math.max(0, Date.parse(time) - Date.parse(before.time)) * 1e6) : ''
}
