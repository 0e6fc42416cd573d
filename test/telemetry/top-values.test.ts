import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createMeters } from '../../src/telemetry/meters.ts'
import { PERIOD_MS, createTopValues } from '../../src/telemetry/top-values.ts'

describe('The most frequent values', () => {
  it('replace earlier values that each came once', () => {
    const values = createTopValues(3, () => 0)
    for (let rare = 0; rare < 500; rare++) {
      values.offer(`rare ${rare}`)
      for (const often of ['a', 'b', 'c']) values.offer(often)
    }
    for (const often of ['a', 'b', 'c']) expect(values.offer(often)).toEqual({ placed: true })
    expect(values.offer('rare 0').placed).toBe(false)
  })

  it('do not replace each other if each comes once', () => {
    const values = createTopValues(5, () => 0)
    const changes = Array.from({ length: 10_000 }, (_, one) => values.offer(`user ${one}`)).filter((of) => of.instead)
    expect(changes).toEqual([])
  })

  it('include every value above its share, and never exceed the limit', () => {
    const word = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz')
    fc.assert(
      fc.property(fc.array(word, { maxLength: 2000 }), (words) => {
        const values = createTopValues(4, () => 0)
        const placed = new Set<string>()
        for (const one of words) {
          const { placed: own, instead } = values.offer(one)
          if (instead !== undefined) placed.delete(instead)
          if (own) placed.add(one)
        }
        expect(placed.size).toBeLessThanOrEqual(4)
        for (const one of new Set(words)) {
          const count = words.filter((other) => other === one).length
          if (count > words.length / 5 + 1) expect(placed).toContain(one)
        }
      }),
    )
  })

  it('are those of the last period', () => {
    let now = 0
    const values = createTopValues(1, () => now)
    for (let count = 0; count < 100; count++) values.offer('yesterday')
    now = PERIOD_MS
    expect(values.offer('today')).toEqual({ placed: true, instead: 'yesterday' })
  })
})

describe('A counter of the most frequent values', () => {
  it('drops the count of a value that loses its slot, since "other" would count it twice', async () => {
    const meters = await createMeters({ on: 'coordinator', processMetrics: false })
    for (let user = 0; user < 20; user++) meters.count('userQueries', { user: `first ${user}` })
    for (let count = 0; count < 5; count++) meters.count('userQueries', { user: 'busy' })
    const { body } = await meters.text()
    const series = body.split('\n').filter((line) => line.startsWith('quipu_user_queries_total{'))
    expect(series).toHaveLength(21)
    expect(series).toContain('quipu_user_queries_total{user="busy"} 4')
    expect(series).toContain('quipu_user_queries_total{user="other"} 1')
  })
})
