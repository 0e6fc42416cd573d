import { setImmediate as turned, setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { createCpuBudget, HoldsLoop, tick } from '../../src/shared/cpu-budget.ts'

const exceeded = (): Error => new Error('had its time')

function goOn(): never {
  for (;;) tick()
}

/** Uses CPU time, however slow the machine is. It never checks a budget. */
function spend(milliseconds: number): void {
  const before = process.cpuUsage()
  for (;;) {
    const { user, system } = process.cpuUsage(before)
    if (user + system >= milliseconds * 1000) return
  }
}

describe('A budget of CPU time', () => {
  it('stops work that exceeds it, and each further run', () => {
    const budget = createCpuBudget(50, exceeded)
    expect(() => budget.run(goOn)).toThrow('had its time')
    expect(() => budget.run(goOn)).toThrow('had its time')
  })

  it('counts all runs together', () => {
    const budget = createCpuBudget(200, exceeded)
    budget.run(() => spend(150))
    const before = process.cpuUsage()
    expect(() => budget.run(goOn)).toThrow('had its time')
    // The second run has the rest of the budget, not all of it again.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(190)
  })

  it('counts neither waiting nor the work of other budgets', async () => {
    const budget = createCpuBudget(1_000, exceeded)
    for (let step = 0; step < 4; step++) {
      expect(budget.run(() => step)).toBe(step)
      createCpuBudget(10_000, exceeded).run(() => spend(300))
      await sleep(1)
    }
    const shortly = (): void => {
      for (let round = 0; round < 1_000; round++) tick()
    }
    expect(() => budget.run(shortly)).not.toThrow()
  })

  it('counts runs that are shorter than the interval between checks of the CPU', () => {
    const budget = createCpuBudget(20, exceeded)
    const shortly = (): void => {
      const until = performance.now() + 0.2
      while (performance.now() < until) tick()
    }
    expect(() => {
      for (let run = 0; run < 10_000; run++) budget.run(shortly)
    }).toThrow('had its time')
  })

  it('stops work that holds the event loop for long, even if the machine gives it no CPU time', async () => {
    const clock = vi.spyOn(performance, 'now')
    const after = (milliseconds: number) => () => {
      clock.mockReturnValue(performance.now() + milliseconds)
      for (let round = 0; round < 1_000; round++) tick()
    }
    try {
      const inParts = createCpuBudget(3_000, exceeded)
      inParts.run(after(4_000))
      await Promise.resolve()
      expect(() => inParts.run(after(4_000))).toThrow('had its time')
      const turning = createCpuBudget(3_000, exceeded)
      turning.run(after(4_000))
      await turned()
      expect(() => turning.run(after(4_000))).not.toThrow()
      expect(() => createCpuBudget(3_000, exceeded).run(after(5_900))).not.toThrow()
      expect(() => createCpuBudget(3_000, exceeded).run(after(6_100))).toThrow('had its time')
      expect(() => createCpuBudget(60_000, exceeded).run(after(6_100))).not.toThrow()
    } finally {
      clock.mockRestore()
    }
  })

  it('throws `HoldsLoop` once all runs of one pass of the event loop exceed the limit together', async () => {
    const budget = createCpuBudget(60_000, exceeded, { holdMs: 40 })
    expect(() => budget.run(goOn)).toThrow(HoldsLoop)
    await turned()
    const inParts = createCpuBudget(60_000, exceeded, { holdMs: 400 })
    inParts.run(() => spend(350))
    await Promise.resolve()
    const before = process.cpuUsage()
    expect(() => inParts.run(goOn)).toThrow(HoldsLoop)
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(350)
  })

  it('counts the CPU time of its thread, if it can read this, and not the clock', () => {
    let cpuMs = 0
    const budget = createCpuBudget(100, exceeded, { threadCpuMs: () => cpuMs })
    const clock = vi.spyOn(performance, 'now')
    try {
      const after = (clockMs: number, usedMs: number) => () => {
        clock.mockReturnValue(performance.now() + clockMs)
        cpuMs += usedMs
        for (let round = 0; round < 1_000; round++) tick()
      }
      expect(() => budget.run(after(60_000, 50))).not.toThrow()
      expect(() => budget.run(after(60_000, 60))).toThrow('had its time')
    } finally {
      clock.mockRestore()
    }
  })

  it('charges the innermost running budget, and nothing outside a run', () => {
    const outer = createCpuBudget(60_000, exceeded)
    outer.run(() => {
      expect(() => createCpuBudget(20, exceeded).run(goOn)).toThrow('had its time')
      for (let round = 0; round < 1_000; round++) tick()
    })
    expect(() => outer.run(() => expect.fail('of the work'))).toThrow('of the work')
    for (let round = 0; round < 1_000; round++) tick()
  })
})
