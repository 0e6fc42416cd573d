import { afterEach, describe, expect, it } from 'vitest'
import { createQueryAggregate } from '../../../src/coordinator/query/stream/query-aggregate.ts'
import { createEndedStreams, type StreamSpan } from '../../../src/coordinator/recovery/ended-streams.ts'
import { withStreams } from '../../../src/coordinator/recovery/with-streams.ts'
import type { Appended, EventLog } from '../../../src/events/event-log.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { kafkaAdapter } from '../../support/event-log/kafka-fixture.ts'
import { anEvent, type LogAdapter, type LogFixture } from '../../support/event-log/log-fixture.ts'
import { postgresAdapter } from '../../support/event-log/postgres-fixture.ts'
import { kafkaIsAvailable } from '../../support/kafka.ts'
import { QUERY_ID, sampleData } from '../../support/query-events.ts'

let fixture: LogFixture | undefined
afterEach(async () => {
  await fixture?.close()
  fixture = undefined
})

const cases: [string, LogAdapter, number][] = [
  ['Postgres', postgresAdapter, 1],
  ...((await kafkaIsAvailable())
    ? [['Kafka with three log partitions', kafkaAdapter, 3] as [string, LogAdapter, number]]
    : []),
]

async function toArray<T>(from: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const one of from) all.push(one)
  return all
}

function spanOf(appended: readonly Appended[]): StreamSpan {
  const events = appended.flatMap((one) => one.events)
  return { first: events[0]!.position, last: events.at(-1)!.position }
}

describe.each(cases)('Ended streams in %s', (_name, adapter, partitions) => {
  let log: EventLog
  const spans = new Map<string, StreamSpan>()

  /** Writes these streams with interleaved events. */
  async function written(streams: readonly string[], rounds: number): Promise<void> {
    fixture = await adapter.fixture({ partitions })
    log = await fixture.open()
    await log.claim({ address: 'http://here', version: 'test' })
    const appended = new Map<string, Appended[]>(streams.map((stream) => [stream, []]))
    for (let round = 0; round < rounds; round++)
      for (const [stream, those] of appended) those.push(await log.append(stream, round * 2, [anEvent(), anEvent()]))
    for (const [stream, those] of appended) spans.set(stream, spanOf(those))
  }

  it('are read at their positions in the log', async () => {
    const streams = ['a', 'b', 'c', 'd', 'e']
    await written(streams, 3)
    const ended = createEndedStreams(log)
    for (const stream of streams) ended.add(stream, spans.get(stream)!)
    for (const stream of streams) {
      const events = await ended.read(stream)
      expect(events.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6])
      expect(events.every((event) => event.stream === stream)).toBe(true)
    }
    expect(await ended.read('unknown')).toEqual([])

    // A query knows the positions of its events.
    const query = createQueryAggregate(QUERY_ID, log, systemClock, () => undefined)
    await query.execute([{ type: 'CreateQuery', data: sampleData.QueryCreated }])
    await query.execute([{ type: 'QueueQuery', data: sampleData.QueryQueued }])
    ended.add(QUERY_ID, { first: query.firstPosition!, last: query.position! })
    expect((await ended.read(QUERY_ID)).map(({ type }) => type)).toEqual(['QueryCreated', 'QueryQueued'])

    // A reader of the log gets the streams without the read models, even from a log without an index.
    const seen = withStreams(log, () => undefined, ended)
    expect((await toArray(seen.readStream('c', 4))).map(({ sequence }) => sequence)).toEqual([5, 6])
  })
})

describe('The positions of ended streams', () => {
  const span = (offset: number): StreamSpan => ({
    first: { partition: 0, offset: BigInt(offset) },
    last: { partition: 0, offset: BigInt(offset + 1) },
  })
  const nothing = {
    read: () => Promise.reject(new Error('not read')),
    tip: () => Promise.reject(new Error('not read')),
  }

  it('have a maximum number, and the oldest is dropped first', () => {
    const ended = createEndedStreams(nothing, 2)
    for (const [index, stream] of ['a', 'b', 'c'].entries()) ended.add(stream, span(index * 10))
    expect(['a', 'b', 'c'].map((stream) => ended.has(stream))).toEqual([false, true, true])
  })

  it('are dropped once the read models have the streams', () => {
    const ended = createEndedStreams(nothing)
    for (const [index, stream] of ['a', 'b', 'c'].entries()) ended.add(stream, span(index * 10))
    ended.projected(({ offset }) => offset < 12n)
    expect(['a', 'b', 'c'].map((stream) => ended.has(stream))).toEqual([false, false, true])
  })
})
