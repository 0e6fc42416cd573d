import { describe, expect, it } from 'vitest'
import { withStreams } from '../../../src/coordinator/recovery/with-streams.ts'
import type { Recorded, StreamReader } from '../../../src/events/event-log.ts'

const event = (stream: string, sequence: number): Recorded =>
  ({ stream, sequence, position: { partition: 0, offset: BigInt(sequence * 10) } }) as Recorded

/** A log with two events of each stream, which records the arguments of its reads. */
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

describe('The stream reader of `withStreams`', () => {
  const inMemory = { get: (stream: string) => (stream === 'a' ? [1, 2, 3].map((n) => event('a', n)) : undefined) }
  const ended = { has: (stream: string) => stream === 'b', read: async () => [1, 2].map((n) => event('b', n)) }

  it('reads a stream from memory, at its positions in the log, or through the log', async () => {
    const { asked, log } = bed()
    const { readStream } = withStreams(log, () => inMemory, ended)
    expect(await sequences(readStream('a'))).toEqual([1, 2, 3])
    expect(await sequences(readStream('b', 1))).toEqual([2])
    const until = { at: [{ offset: 15n }] }
    expect(await sequences(readStream('c', 0, until))).toEqual([1, 2])
    expect(asked).toEqual([['c', 0, until]])
  })

  it('stops at the bound', async () => {
    const { readStream } = withStreams(bed().log, () => inMemory, ended)
    expect(await sequences(readStream('a', 1, { at: [{ offset: 30n }] }))).toEqual([2])
    expect(await sequences(readStream('b', 0, { at: [] }))).toEqual([])
  })

  it('reads from the log once memory has released the streams', async () => {
    let streams: typeof inMemory | undefined = inMemory
    const { log } = bed()
    const { readStream } = withStreams(log, () => streams)
    streams = undefined
    expect(await sequences(readStream('a'))).toEqual([1, 2])
  })
})
