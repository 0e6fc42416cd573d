import { describe, expect, it } from 'vitest'
import { withStreams } from '../../../src/coordinator/recovery/with-streams.ts'
import type { Recorded, StreamReader } from '../../../src/events/event-log.ts'

const event = (stream: string, sequence: number): Recorded =>
  ({ stream, sequence, position: { partition: 0, offset: BigInt(sequence * 10) } }) as Recorded

/** A log that has two events of whichever stream it is asked for, and keeps what it was asked. */
function bed() {
  const asked: unknown[] = []
  const log: StreamReader = {
    async *readStream(...question) {
      asked.push(question)
      yield event(question[0], 1)
      yield event(question[0], 2)
    },
  }
  return { asked, log }
}

async function sequences(events: AsyncIterable<Recorded>): Promise<number[]> {
  const found: number[] = []
  for await (const { sequence } of events) found.push(sequence)
  return found
}

describe('streams from wherever they are', () => {
  const inMemory = { get: (stream: string) => (stream === 'a' ? [1, 2, 3].map((n) => event('a', n)) : undefined) }
  const ended = { has: (stream: string) => stream === 'b', read: async () => [1, 2].map((n) => event('b', n)) }

  it('are read from memory, from their place in the log, or by the log', async () => {
    const { asked, log } = bed()
    const { readStream } = withStreams(log, () => inMemory, ended)
    expect(await sequences(readStream('a'))).toEqual([1, 2, 3])
    expect(await sequences(readStream('b', 1))).toEqual([2])
    const until = { at: [{ offset: 15n }] }
    expect(await sequences(readStream('c', 0, until))).toEqual([1, 2])
    expect(asked).toEqual([['c', 0, until]])
  })

  it('end at a bound', async () => {
    const { readStream } = withStreams(bed().log, () => inMemory, ended)
    expect(await sequences(readStream('a', 1, { at: [{ offset: 30n }] }))).toEqual([2])
    expect(await sequences(readStream('b', 0, { at: [] }))).toEqual([])
  })

  it('are the log’s once memory has let go of them', async () => {
    let streams: typeof inMemory | undefined = inMemory
    const { log } = bed()
    const { readStream } = withStreams(log, () => streams)
    streams = undefined
    expect(await sequences(readStream('a'))).toEqual([1, 2])
  })
})
