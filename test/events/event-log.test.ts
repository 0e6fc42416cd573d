import { describe, expect, it } from 'vitest'
import {
  beginning,
  checkpointFromJson,
  checkpointToJson,
  Fenced,
  hasEventsOf,
  hasReached,
  isBelow,
  LogFull,
  LogUnavailable,
  SequenceConflict,
  TooLarge,
  type Checkpoint,
} from '../../src/events/event-log.ts'
import { howToRetry } from '../../src/shared/quipu-error.ts'

/** @param places offset and number of events that count, by log partition */
function checkpoint(...places: readonly (readonly [bigint, number])[]): Checkpoint {
  const [empty] = beginning().at
  return { logId: 'a', at: places.map(([offset, count]) => ({ offset, state: { ...empty!.state, count } })) }
}

describe('a checkpoint', () => {
  it('comes back out of JSON, also with offsets beyond what a number holds', () => {
    const far = checkpoint([2n ** 63n - 1n, 7], [0n, 0])
    expect(checkpointFromJson(checkpointToJson(far))).toEqual(far)
  })

  it('has reached another when it has in every log partition', () => {
    const target = checkpoint([5n, 3], [9n, 4])
    expect(hasReached(target, target)).toBe(true)
    expect(hasReached(checkpoint([6n, 3], [9n, 4]), target)).toBe(true)
    expect(hasReached(checkpoint([99n, 90], [8n, 4]), target)).toBe(false)
    // A log partition that it does not know was not read.
    expect(hasReached(checkpoint([5n, 3]), target)).toBe(false)
  })

  it('has the events of another also where only records that do not count came after', () => {
    const target = checkpoint([9n, 3])
    expect(hasReached(checkpoint([7n, 3]), target)).toBe(false)
    expect(hasEventsOf(checkpoint([7n, 3]), target)).toBe(true)
    expect(hasEventsOf(checkpoint([7n, 2]), target)).toBe(false)
  })

  it('bounds what lies below it, log partition by log partition', () => {
    const until = checkpoint([5n, 0], [0n, 0])
    expect(isBelow({ partition: 0, offset: 4n }, until)).toBe(true)
    expect(isBelow({ partition: 0, offset: 5n }, until)).toBe(false)
    expect(isBelow({ partition: 1, offset: 0n }, until)).toBe(false)
    expect(isBelow({ partition: 2, offset: 0n }, until)).toBe(false)
  })

  it('at the beginning has nothing, in as many log partitions as there are', () => {
    expect(beginning(3).at.map(({ offset, state }) => [offset, state.count])).toEqual([[0n, 0], [0n, 0], [0n, 0]]) // prettier-ignore
  })
})

describe('what the log refuses', () => {
  it('says what may be done about it', () => {
    expect(howToRetry(new SequenceConflict('s', 1, 2))).toBe('anew')
    expect(howToRetry(new TooLarge(10, 5))).toBe('never')
    expect(howToRetry(new Fenced('another writes'))).toBe('later')
    // Who treats a log that is away treats a log that is full.
    expect(new LogFull('full')).toBeInstanceOf(LogUnavailable)
    expect(howToRetry(new LogFull('full'))).toBe('later')
  })

  it('says where the stream stands', () => {
    expect(new SequenceConflict('node/w1', 3, 5)).toMatchObject({ stream: 'node/w1', expected: 3, actual: 5 })
  })
})
