import { describe, expect, it } from 'vitest'
import { EngineLost, type EngineResult, type EngineStatement } from '../../../src/execution/engine/engine.ts'
import { EngineAttempts } from '../../../src/execution/worker/engine-attempts.ts'
import { deferred } from '../../../src/shared/deferred.ts'
import { EngineError } from '../../../src/shared/engine-error.ts'

const statement = { id: 's' } as EngineStatement
const lost = (): EngineLost => new EngineLost('crash', 'The engine ended')

/** Engines whose runs the test ends. */
function fakeEngines() {
  const runs: { readonly done: ReturnType<typeof deferred<EngineResult>>; canceled: boolean }[] = []
  return {
    runs,
    run: () => {
      const run = { done: deferred<EngineResult>(), canceled: false }
      runs.push(run)
      return { done: run.done.promise, cancel: () => void (run.canceled = true) }
    },
  }
}

describe('The attempts at a batch', () => {
  it('are repeated up to the allowed number while the engine is lost', async () => {
    const numbers: number[] = []
    const attempts = new EngineAttempts(fakeEngines(), 3)
    const ended = attempts.repeat(async (attempt) => {
      numbers.push(attempt)
      throw lost()
    })
    await expect(ended).rejects.toBeInstanceOf(EngineLost)
    expect(numbers).toEqual([1, 2, 3])
  })

  it('end with the first success', async () => {
    const attempts = new EngineAttempts(fakeEngines(), 4)
    expect(
      await attempts.repeat(async (attempt) => {
        if (attempt < 3) throw lost()
        return attempt
      }),
    ).toBe(3)
  })

  it.each([
    ['an error of the statement', new EngineError('DIVISION_BY_ZERO', 'Division by zero')],
    ['a bug, even with the message of a lost engine', new TypeError('The engine ended (crash)')],
  ])('end with %s', async (_what, error) => {
    let tried = 0
    const attempts = new EngineAttempts(fakeEngines(), 4)
    await expect(
      attempts.repeat(async () => {
        tried++
        throw error
      }),
    ).rejects.toBe(error)
    expect(tried).toBe(1)
  })

  it('end with a cancel, which also cancels the running statement', async () => {
    const engines = fakeEngines()
    const attempts = new EngineAttempts(engines, 4)
    const ended = attempts.repeat(() => attempts.run(statement))
    attempts.cancel()
    expect(engines.runs.map(({ canceled }) => canceled)).toEqual([true])
    engines.runs[0]!.done.reject(lost())
    await expect(ended).rejects.toBeInstanceOf(EngineLost)
    expect(engines.runs).toHaveLength(1)
    await expect(attempts.repeat(async () => 1)).rejects.toMatchObject({ errorName: 'USER_CANCELED' })
  })

  it('cancel a statement that begins after the cancel', () => {
    const engines = fakeEngines()
    const attempts = new EngineAttempts(engines, 4)
    attempts.cancel()
    void attempts.run(statement)
    expect(engines.runs[0]!.canceled).toBe(true)
  })

  it('can start again after a stop, unlike after a cancel', async () => {
    const engines = fakeEngines()
    const attempts = new EngineAttempts(engines, 2)
    const ended = attempts.repeat(() => attempts.run(statement))
    attempts.stop()
    engines.runs[0]!.done.reject(lost())
    await expect.poll(() => engines.runs.length).toBe(2)
    engines.runs[1]!.done.resolve({ rows: 1 } as EngineResult)
    expect(await ended).toEqual({ rows: 1 })
  })
})
