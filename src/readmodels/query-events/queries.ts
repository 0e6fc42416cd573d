import { z } from 'zod'
import { openProjected, type StoredEncoding } from '../../events/envelope.ts'
import type { Recorded } from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import { selected } from '../table.ts'
import { queryEventsTable } from './table.ts'

const eventRow = queryEventsTable.row.extend({
  position: z.coerce.bigint(),
  enc: z.string().transform((enc) => enc as StoredEncoding),
})

const COLUMNS = selected(eventRow)

/** The columns that `storedEvent` needs, in this order. */
export const STORED_COLUMNS: readonly string[] = Object.keys(eventRow.shape).map((column) => `"${column}"`)

/** The same columns in a file of the archive. */
export const ARCHIVED_COLUMNS: readonly string[] = STORED_COLUMNS.map((column) =>
  column === '"time"' ? `strftime("time", '%Y-%m-%dT%H:%M:%S.%gZ')` : column,
)

/** Makes an event from a row. @param values of `STORED_COLUMNS` */
export function storedEvent(values: readonly unknown[]): Recorded {
  return toRecorded(Object.fromEntries(Object.keys(eventRow.shape).map((column, i) => [column, values[i]])))
}

/** Events of some streams, each stream in order. */
export async function readStreams(
  query: QueryRows,
  streams: readonly string[],
  mostOfEach = Number.MAX_SAFE_INTEGER,
): Promise<Recorded[]> {
  const rows = await query(
    `select ${COLUMNS} from query_events where stream = any($1) and sequence <= $2 order by stream, sequence`,
    [streams, mostOfEach],
  )
  return rows.map(toRecorded)
}

const headRow = eventRow.pick({
  stream: true,
  sequence: true,
  epoch: true,
  type: true,
  v: true,
  time: true,
  hash: true,
})
const HEAD_COLUMNS = selected(headRow)

/** An event without its data, which may be megabytes. */
export interface EventHead {
  readonly [column: string]: string | number
}

/** The events of some streams without their data. */
export async function readStreamHeads(query: QueryRows, streams: readonly string[]): Promise<EventHead[]> {
  const rows = await query(
    `select ${HEAD_COLUMNS} from query_events where stream = any($1) order by stream, sequence`,
    [streams],
  )
  return rows.map((row) => {
    const { v: version, ...head } = headRow.parse(row)
    return { ...head, version }
  })
}

/** Excludes later events; the time in ISO UTC. */
export interface StreamUntil {
  readonly sequence?: number
  readonly time?: string
}

/**
 * A page of a stream's events, oldest first.
 * @param after sequence to begin after
 */
export async function readStreamPage(
  query: QueryRows,
  stream: string,
  after: number,
  limit: number,
  until?: StreamUntil,
): Promise<Recorded[]> {
  const rows = await query(
    `select ${COLUMNS} from query_events
     where stream = $1 and sequence > $2 and sequence <= $4 and ($5::timestamptz is null or "time" <= $5)
     order by sequence limit $3`,
    [stream, after, limit, until?.sequence ?? Number.MAX_SAFE_INTEGER, until?.time ?? null],
  )
  return rows.map(toRecorded)
}

function toRecorded(row: Record<string, unknown>): Recorded {
  const { position, partition, stream, time, traceparent, forgotten, ...rest } = eventRow.parse(row)
  return openProjected(
    stream,
    {
      ...rest,
      time,
      ...(traceparent === null ? {} : { traceparent }),
      ...(forgotten ? { forgotten: true as const } : {}),
    },
    { partition, offset: position },
  )
}
