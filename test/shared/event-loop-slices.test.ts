import { expect, it } from 'vitest'
import { EventLoopSlices } from '../../src/shared/event-loop-slices.ts'

/** An event loop whose time advances only by the work of the pieces. */
function createLoop() {
  let now = 0
  let pass: (() => void)[] = []
  let ticks: (() => void)[] = []
  return {
    clock: {
      now: () => now,
      nextLoopPass: (call: () => void) => void pass.push(call),
      afterThis: (call: () => void) => void ticks.push(call),
    },
    work: (ms: number) => void (now += ms),
    /** Runs the calls that wait for the next pass. */
    pass() {
      const calls = pass
      pass = []
      for (const call of calls) {
        call()
        for (let tick = ticks.shift(); tick; tick = ticks.shift()) tick()
      }
      return calls.length > 0
    },
    get ready() {
      return pass.length
    },
  }
}

it('`EventLoopSlices` begins pieces for a set time in each pass of the loop, and alternates between owners', () => {
  const loop = createLoop()
  const slices = new EventLoopSlices(8, loop.clock)
  const begun: string[] = []
  const take = (name: string, address: string): void =>
    slices.take({ address, user: '' }, () => {
      begun.push(name)
      loop.work(2)
    })
  for (let index = 0; index < 100; index++) take(`flood ${index}`, '127.0.1.1')
  expect(begun).toEqual(['flood 0', 'flood 1', 'flood 2', 'flood 3'])
  expect(slices.isFree()).toBe(false)
  loop.pass()
  expect(begun).toHaveLength(8)
  take('ana', '127.0.0.2')
  loop.pass()
  expect(begun.slice(8)).toContain('ana')
  while (loop.pass());
  expect(begun).toHaveLength(101)
  expect(begun.filter((one) => one !== 'ana')).toEqual(Array.from({ length: 100 }, (_, index) => `flood ${index}`))
  expect(slices.isFree()).toBe(true)
  expect(loop.ready).toBe(0)
})

it('`EventLoopSlices` begins at least one piece in each pass, and loses none that waits', () => {
  const loop = createLoop()
  const slices = new EventLoopSlices(8, loop.clock)
  let begun = 0
  for (let index = 0; index < 5; index++)
    slices.take({ address: 'x', user: '' }, () => {
      begun++
      loop.work(100)
    })
  for (let pass = 1; pass <= 5; pass++) {
    expect(begun).toBe(pass)
    loop.pass()
  }
})
