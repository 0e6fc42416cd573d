import { queryOfStream } from '../../src/shared/ids.ts'
import { readdirSync, readFileSync } from 'node:fs'
import { decodeQueryEvent } from '../../src/coordinator/query/stream/decode-event.ts'
import { foldQuery } from '../../src/coordinator/query/stream/evolve.ts'
import type { Recorded } from '../../src/events/event-log.ts'

/** The folder of recorded streams of real runs, one file for each stream, and the states that they fold to. */
export const LOGS_FOLDER = new URL('../fixtures/logs/', import.meta.url)

/** An event of a recorded stream: the fields for a replay, and the hashes. */
export type RecordedLine = Omit<Recorded, 'position' | 'data'>

export interface RecordedLog {
  readonly name: string
  readonly events: readonly RecordedLine[]
  /** The state that the recording version folded from the stream. */
  readonly state: unknown
}

export function recordedLine({ position: _position, data: _data, ...event }: Recorded): string {
  return JSON.stringify(event)
}

/** The state after all events as JSON, with maps and sets as arrays. */
export function foldedOf(
  events: readonly Pick<Recorded, 'stream' | 'type' | 'v' | 'time' | 'data' | 'forgotten'>[],
): unknown {
  const decoded = events.map((event) => decodeQueryEvent(event)).filter((event) => event !== undefined)
  const state = foldQuery(queryOfStream(events[0]?.stream ?? ''), decoded)
  const plain = (_key: string, value: unknown): unknown =>
    value instanceof Map || value instanceof Set ? [...value] : value
  return JSON.parse(JSON.stringify(state, plain))
}

export function readRecordedLogs(): RecordedLog[] {
  const read = (name: string): string => readFileSync(new URL(name, LOGS_FOLDER), 'utf8')
  return readdirSync(LOGS_FOLDER)
    .filter((name) => name.endsWith('.jsonl'))
    .map((file) => ({
      name: file.slice(0, -'.jsonl'.length),
      events: read(file)
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as RecordedLine),
      state: JSON.parse(read(file.replace(/\.jsonl$/, '.state.json'))) as unknown,
    }))
}
