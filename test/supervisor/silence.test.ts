import { describe, expect, it } from 'vitest'
import { Silence, waitedForCpu } from '../../src/supervisor/silence.ts'

describe('The silence of a child', () => {
  it('grows with each tick until the child says something', () => {
    const silence = new Silence(() => undefined)
    expect([silence.tick(500), silence.tick(500)]).toEqual([500, 1_000])
    silence.broken()
    expect(silence.tick(500)).toBe(500)
  })

  it('does not grow while the child waits for a processor', () => {
    let waited = 10_000
    const silence = new Silence(() => waited)
    expect(silence.tick(500)).toBe(500)
    for (let tick = 0; tick < 100; tick++) {
      waited += 500
      silence.tick(500)
    }
    expect(silence.tick(500)).toBe(1_000)
    waited += 400
    expect(silence.tick(500)).toBe(1_100)
    // A processor that is late by more than a tick makes the silence no shorter.
    waited += 2_000
    expect(silence.tick(500)).toBe(1_100)
  })

  it('grows while the child sleeps or loops without end', () => {
    const silence = new Silence(() => 7)
    for (let tick = 0; tick < 19; tick++) silence.tick(500)
    expect(silence.tick(500)).toBe(10_000)
  })

  it.runIf(process.platform === 'linux')('`waitedForCpu` returns undefined for an unknown process', () => {
    expect(waitedForCpu(process.pid)()).toBeGreaterThanOrEqual(0)
    expect(waitedForCpu(2 ** 30)()).toBeUndefined()
  })
})
