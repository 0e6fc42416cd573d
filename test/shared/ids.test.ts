import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createQueryIds,
  epochOf,
  isQueryId,
  parseNodeId,
  parseQueryId,
  parseTaskId,
  splitTaskId,
  stageId,
  taskId,
} from '../../src/shared/ids.ts'

const QUERY = parseQueryId('20260102_030405_00006_0000a')

describe('Query ids', () => {
  it('are unique and ordered by time, whatever the clock does, and contain their epoch', () => {
    const steps = fc.array(fc.integer({ min: -5_000, max: 5_000 }), { minLength: 1, maxLength: 300 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 31 - 1 }), steps, (epoch, jumps) => {
        let now = Date.UTC(2026, 0, 1)
        const next = createQueryIds(epoch, () => now)
        const given = jumps.map((jump) => {
          now += jump
          return next()
        })
        expect(new Set(given).size).toBe(given.length)
        expect(given.every((id) => isQueryId(id) && epochOf(id) === epoch)).toBe(true)
        const seconds = given.map((id) => id.slice(0, 15))
        expect(seconds).toEqual(seconds.toSorted())
      }),
    )
  })

  it('continue in the next second when their counter wraps around', () => {
    const next = createQueryIds(1, () => Date.UTC(2026, 0, 1))
    const first = next()
    for (let i = 1; i < 100_000; i++) next()
    expect(first).toBe('20260101_000000_00000_00001')
    expect(next()).toBe('20260101_000001_00000_00001')
  })
})

describe('The parsers of ids', () => {
  it('refuse texts of another form', () => {
    const notFound = expect.objectContaining({ errorName: 'NOT_FOUND' }) as Error
    for (const text of ['', 'q', `${QUERY} `, `${QUERY}.1`, '20260102_030405_00006_0000w', '../x']) {
      expect(() => parseQueryId(text), text).toThrow(notFound)
      expect(epochOf(text), text).toBeUndefined()
    }
    for (const text of ['', QUERY, `${QUERY}.1`, `${QUERY}.1.x`, `${QUERY}.1.2.3`, `${QUERY}.-1.0`]) {
      expect(() => parseTaskId(text), text).toThrow(notFound)
      expect(splitTaskId(text), text).toBeUndefined()
    }
    for (const text of ['', 'a/b', 'a b', 'a\n', 'x'.repeat(201)]) {
      expect(() => parseNodeId(text), text).toThrow(notFound)
    }
  })

  it('split a task id into the parts that it was made from', () => {
    fc.assert(
      fc.property(fc.nat(999_999), fc.nat(999_999_999), (stage, task) => {
        const made = taskId(QUERY, stage, task)
        expect(parseTaskId(made)).toBe(made)
        expect(splitTaskId(made)).toEqual({ queryId: QUERY, stage, task })
        expect(made.startsWith(`${stageId(QUERY, stage)}.`)).toBe(true)
      }),
    )
  })
})
