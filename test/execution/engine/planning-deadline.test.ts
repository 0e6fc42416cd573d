import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createRunningEngine, type RunningEngine } from '../../../src/execution/engine/running-engine.ts'
import type { Outcome } from '../../../src/execution/engine/engine-work.ts'
import { FakeChild } from '../../support/engine-fakes.ts'

const DEADLINE_MS = 1_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** An engine that plans a statement, and how that ended, once it has. */
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
  // It has run before.
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

it('planning that had its CPU in its time ends with the engine', async () => {
  const { child, ended } = planning()
  child.used += DEADLINE_MS
  await vi.advanceTimersByTimeAsync(DEADLINE_MS + 1)
  expect(child.killed).toBe(true)
  expect(ended()).toMatchObject({ kind: 'lost', reason: 'deadline', culprit: true })
})

it('planning that got little CPU on a busy machine goes on until it has had its share', async () => {
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

it('the CPU of a second planning beside it is not its own, whoever tells of it how often', async () => {
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

it('CPU that was used in less than the time is no fault: others may have had it', async () => {
  const { child } = planning()
  child.used += 2 * DEADLINE_MS
  await vi.advanceTimersByTimeAsync(DEADLINE_MS / 2)
  expect(child.killed).toBe(false)
})

it('planning that only waits ends too, ten times later', async () => {
  const { child } = planning()
  await vi.advanceTimersByTimeAsync(DEADLINE_MS * 9)
  expect(child.killed).toBe(false)
  await vi.advanceTimersByTimeAsync(DEADLINE_MS * 2)
  expect(child.killed).toBe(true)
})

it('once the engine says that the statement is planned nothing ends it', async () => {
  const { child, engine } = planning()
  engine.onReply({ header: { type: 'started', id: 1 }, body: Buffer.alloc(0) })
  child.used += 5 * DEADLINE_MS
  await vi.advanceTimersByTimeAsync(DEADLINE_MS * 20)
  expect(child.killed).toBe(false)
})
