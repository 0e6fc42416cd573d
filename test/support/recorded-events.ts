import { queryEventVersions, type QueryEvent } from '../../src/coordinator/query/stream/events.ts'
import type { Recorded, StreamReader } from '../../src/events/event-log.ts'
import { QUERY_ID } from './query-events.ts'

/** Events of one query as a reader of the log gets them. */
export function recordedOf(events: readonly QueryEvent[], stream: string = QUERY_ID): readonly Recorded[] {
  return events.map(({ type, time, data }, index) => ({
    type,
    v: queryEventVersions[type],
    time,
    data,
    stream,
    sequence: index + 1,
    epoch: 1,
    prevhash: '',
    hash: '',
    digest: '',
    enc: 'none',
    stored: JSON.stringify(data),
    position: { partition: 0, offset: BigInt(index) },
  }))
}

/** The streams of a log, with the number of reads. */
export function streamsOf(recorded: readonly Recorded[]): StreamReader & { reads: number } {
  return {
    reads: 0,
    async *readStream(stream: string) {
      this.reads++
      yield* recorded.filter((one) => one.stream === stream)
    },
  }
}

/** A time in the format of RFC 3339. */
export function isValidMoment(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/.test(text) && !Number.isNaN(Date.parse(text))
}

export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(text)
}
