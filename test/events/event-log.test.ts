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

/** @param positions offset and number of valid events, by log partition */
function checkpoint(...positions: readonly (readonly [bigint, number])[]): Checkpoint {
  const [empty] = beginning().at
  return { logId: 'a', at: positions.map(([offset, count]) => ({ offset, state: { ...empty!.state, count } })) }
}

describe('A checkpoint', () => {
  it('survives a round trip through JSON, also with offsets beyond the range of a number', () => {
    const far = checkpoint([2n ** 63n - 1n, 7], [0n, 0])
    expect(checkpointFromJson(checkpointToJson(far))).toEqual(far)
  })

  it('has reached another one if it has reached it in every log partition', () => {
    const target = checkpoint([5n, 3], [9n, 4])
    expect(hasReached(target, target)).toBe(true)
    expect(hasReached(checkpoint([6n, 3], [9n, 4]), target)).toBe(true)
    expect(hasReached(checkpoint([99n, 90], [8n, 4]), target)).toBe(false)
    // A log partition that is missing in the checkpoint was not read.
    expect(hasReached(checkpoint([5n, 3]), target)).toBe(false)
  })

  it('has the events of another one, even if it lacks later records that are not valid', () => {
    const target = checkpoint([9n, 3])
    expect(hasReached(checkpoint([7n, 3]), target)).toBe(false)
    expect(hasEventsOf(checkpoint([7n, 3]), target)).toBe(true)
    expect(hasEventsOf(checkpoint([7n, 2]), target)).toBe(false)
  })

  it('compares a position with its own offset in the same log partition', () => {
    const until = checkpoint([5n, 0], [0n, 0])
    expect(isBelow({ partition: 0, offset: 4n }, until)).toBe(true)
    expect(isBelow({ partition: 0, offset: 5n }, until)).toBe(false)
    expect(isBelow({ partition: 1, offset: 0n }, until)).toBe(false)
    expect(isBelow({ partition: 2, offset: 0n }, until)).toBe(false)
  })

  it('has offset 0 and no events in every log partition at the beginning of the log', () => {
    expect(beginning(3).at.map(({ offset, state }) => [offset, state.count])).toEqual([[0n, 0], [0n, 0], [0n, 0]]) // prettier-ignore
  })
})

describe('An error of the log', () => {
  it('determines how the caller can retry', () => {
    expect(howToRetry(new SequenceConflict('s', 1, 2))).toBe('anew')
    expect(howToRetry(new TooLarge(10, 5))).toBe('never')
    expect(howToRetry(new Fenced('another writes'))).toBe('later')
    // Callers treat a full log like a log that is not available.
    expect(new LogFull('full')).toBeInstanceOf(LogUnavailable)
    expect(howToRetry(new LogFull('full'))).toBe('later')
  })

  it('contains the stream, the expected and the actual sequence of a conflict', () => {
    expect(new SequenceConflict('node/w1', 3, 5)).toMatchObject({ stream: 'node/w1', expected: 3, actual: 5 })
  })
})
