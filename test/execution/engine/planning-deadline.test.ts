import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createRunningEngine, type RunningEngine } from '../../../src/execution/engine/running-engine.ts'
import type { Outcome } from '../../../src/execution/engine/engine-work.ts'
import { FakeChild } from '../../support/engine-fakes.ts'

const DEADLINE_MS = 1_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Starts an engine that plans a statement; `ended` returns the outcome once there is one. */
function planning(): { readonly child: FakeChild; readonly engine: RunningEngine; ended(): Outcome | undefined } {
  const child = new FakeChild({
    slot: 0,
    folder: '/nowhere',
    spillFolder: '/nowhere',
    connections: 1,
    dataLimitBytes: 0,
    arguments: { beatMs: 100 },
    onReply: () => undefined,
    onExit: () => undefined,
  })
  // The engine has used CPU before.
  child.used = 7_000
  const engine = createRunningEngine({
    child,
    capacity: 1,
    killBytes: 1e9,
    recycleBytes: 1e9,
    announceStarts: true,
    interruptToKillMs: 100,
    deadAfterMs: 10_000,
    onEvent: () => undefined,
    onIdle: () => undefined,
    onDead: () => undefined,
  })
  let outcome: Outcome | undefined
  const asks = {
    kind: 'rows',
    query: { sql: 'SELECT 1', scans: [], row: { kind: 'text' } },
    output: { kind: 'inline', maxBytes: 1000 },
    cachePrepared: false,
    profile: false,
  } as const
  void engine.execute({ id: 'q', asks, prepareDeadlineMs: DEADLINE_MS }).outcome.then((how) => (outcome = how))
  return { child, engine, ended: () => outcome }
}

it('The planning deadline kills the engine once its time is over and planning has used as much CPU', async () => {
  const { child, ended } = planning()
  child.used += DEADLINE_MS
  await vi.advanceTimersByTimeAsync(DEADLINE_MS + 1)
  expect(child.killed).toBe(true)
  expect(ended()).toMatchObject({ kind: 'lost', reason: 'deadline', culprit: true })
})

it('The planning deadline waits on a busy machine until planning has used its CPU time', async () => {
  const { child } = planning()
  for (let second = 0; second < 4; second++) {
    child.used += DEADLINE_MS / 5
    await vi.advanceTimersByTimeAsync(DEADLINE_MS)
    expect(child.killed).toBe(false)
  }
  child.used += DEADLINE_MS / 5
  await vi.advanceTimersByTimeAsync(DEADLINE_MS)
  expect(child.killed).toBe(true)
})

it('The planning deadline counts half of the CPU used after the first report of a second planning', async () => {
  const { child, engine } = planning()
  const again = (): void => engine.onReply({ header: { type: 'again', id: 1 }, body: Buffer.alloc(0) })
  child.used += 0.2 * DEADLINE_MS
  again()
  child.used += 1.4 * DEADLINE_MS
  await vi.advanceTimersByTimeAsync(DEADLINE_MS + 1)
  expect(child.killed).toBe(false)
  again()
  child.used += 0.2 * DEADLINE_MS
  await vi.advanceTimersByTimeAsync(DEADLINE_MS)
  expect(child.killed).toBe(true)
})

it('The planning deadline kills nothing before its time is over, even if its CPU time is used up', async () => {
  const { child } = planning()
  child.used += 2 * DEADLINE_MS
  await vi.advanceTimersByTimeAsync(DEADLINE_MS / 2)
  expect(child.killed).toBe(false)
})

it('The planning deadline kills the engine after ten times its time if planning uses no CPU', async () => {
  const { child } = planning()
  await vi.advanceTimersByTimeAsync(DEADLINE_MS * 9)
  expect(child.killed).toBe(false)
  await vi.advanceTimersByTimeAsync(DEADLINE_MS * 2)
  expect(child.killed).toBe(true)
})

it('The planning deadline no longer applies once the engine reports that the statement is planned', async () => {
  const { child, engine } = planning()
  engine.onReply({ header: { type: 'started', id: 1 }, body: Buffer.alloc(0) })
  child.used += 5 * DEADLINE_MS
  await vi.advanceTimersByTimeAsync(DEADLINE_MS * 20)
  expect(child.killed).toBe(false)
})
