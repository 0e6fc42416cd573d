import type { Recorded } from '../../events/event-log.ts'
import type { TableWrite } from '../../events/projection.ts'
import { storableText } from '../../events/storable-text.ts'
import { defineTable } from '../table.ts'

const queryEventsTable = defineTable('query_events', ['stream', 'sequence', 'time'], {
  position: 'bigint',
  partition: 'integer',
  stream: 'text',
  sequence: 'bigint',
  epoch: 'bigint',
  type: 'text',
  v: 'integer',
  time: 'timestamptz',
  traceparent: 'text',
  prevhash: 'text',
  hash: 'text',
  digest: 'text',
  enc: 'text',
  data: 'text',
  forgotten: 'boolean',
})

/** Keeps every event as stored, in partitions by day that are made when the first event of the day before comes. */
export function queryEventWrites(
  batch: readonly Recorded[],
  madeDays: ReadonlySet<string>,
): { readonly writes: readonly TableWrite[]; readonly newDays: readonly string[] } {
  const days = new Set(batch.flatMap((event) => [dayOf(event.time, 0), dayOf(event.time, 1)]))
  const newDays = [...days].filter((day) => !madeDays.has(day))
  const rows = queryEventsTable.insert(
    batch.map((event) => ({
      position: String(event.position.offset),
      partition: event.position.partition,
      stream: storableText(event.stream),
      sequence: event.sequence,
      epoch: event.epoch,
      type: storableText(event.type),
      v: event.v,
      time: event.time,
      traceparent: event.traceparent ?? null,
      prevhash: event.prevhash,
      hash: event.hash,
      digest: event.digest,
      enc: event.enc,
      data: event.stored,
      forgotten: event.forgotten ?? false,
    })),
  )
  return { writes: [...newDays.map(partitionOfDay), ...(rows ? [rows] : [])], newDays }
}

function dayOf(time: string, daysLater: number): string {
  const day = new Date(time)
  day.setUTCDate(day.getUTCDate() + daysLater)
  return day.toISOString().slice(0, 10)
}

function partitionOfDay(day: string): TableWrite {
  const next = dayOf(`${day}T00:00:00.000Z`, 1)
  const name = `query_events_${day.replaceAll('-', '')}`
  return {
    text: `create table if not exists ${name} partition of query_events
           for values from ('${day} 00:00:00+00') to ('${next} 00:00:00+00')`,
    values: [],
  }
}
