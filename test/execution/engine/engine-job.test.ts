import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createEngineJob, type EngineJob } from '../../../src/execution/engine/engine-job.ts'
import type { EngineSettings, EngineStatement } from '../../../src/execution/engine/engine.ts'
import type { Outcome } from '../../../src/execution/engine/engine-work.ts'
import type { RunningEngine } from '../../../src/execution/engine/running-engine.ts'

const MB = 2 ** 20

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const failed = (text: string, more: Partial<Extract<Outcome, { kind: 'error' }>> = {}): Outcome => ({
  kind: 'error',
  text,
  broken: false,
  refused: false,
  alone: false,
  delivered: false,
  ...more,
})
const lost = (more: Partial<Extract<Outcome, { kind: 'lost' }>> = {}): Outcome => ({
  kind: 'lost',
  reason: 'crash',
  alone: false,
  culprit: false,
  delivered: false,
  ...more,
})

/** Makes a job, its queue, and an engine whose attempts end as the test decides. */
function jobOf(overrides: Partial<EngineStatement> = {}) {
  const queue: EngineJob[] = []
  const kills: string[] = []
  const attempts: ((outcome: Outcome) => void)[] = []
  let cancels = 0
  let stopping = false
  const settings: Partial<EngineSettings> = {
    maxSpillBytes: 7 * MB,
    prepareDeadlineMs: 1_000,
    translateError: (text) => new Error(`translated ${text}`),
  }
  const job = createEngineJob(
    {
      id: 'q',
      query: { sql: 'SELECT 1', scans: [], row: { kind: 'text' } },
      placement: 'shared',
      risky: false,
      profile: false,
      cachePrepared: false,
      output: { kind: 'inline', maxBytes: 1 },
      ...overrides,
    },
    {
      settings: settings as EngineSettings,
      memoryLimit: (role) => (role === 'shared' ? 100 * MB : 400 * MB),
      enqueue: (waiting) => queue.push(waiting),
      dequeue: (waiting) => queue.splice(queue.indexOf(waiting), 1),
      isStopping: () => stopping,
    },
  )
  const engine: Partial<RunningEngine> = {
    child: { user: undefined } as RunningEngine['child'],
    kill: (reason) => kills.push(reason),
    running: () => 0,
    execute: () => ({
      outcome: new Promise((resolve) => attempts.push(resolve)),
      cancel: () => cancels++,
    }),
  }
  const answer = job.done.then(
    () => 'done',
    (error: Error) => error.message,
  )
  return {
    job,
    queue,
    kills,
    answer,
    cancels: () => cancels,
    stop: () => (stopping = true),
    async run(outcome: Outcome) {
      job.runIn(engine as RunningEngine)
      attempts.at(-1)!(outcome)
      await vi.advanceTimersByTimeAsync(0)
    },
    start: () => job.runIn(engine as RunningEngine),
  }
}

describe('The lane of an engine job', () => {
  it.each([
    ['shared', { placement: 'shared', risky: false }],
    ['dedicated', { placement: 'shared', risky: true }],
    ['dedicated', { placement: 'dedicated', risky: false }],
  ] as const)('is %s for %j', (lane, statement) => {
    expect(jobOf(statement).job.lane()).toBe(lane)
  })
})

describe('The second attempt of an engine job', () => {
  it.each([
    ['the engine was lost', lost(), []],
    ['other statements may have used the memory', failed('Out of Memory Error: x'), ['recycle']],
    ['the engine was broken before', failed('IO Error: x', { broken: true }), ['crash']],
  ])('runs in a dedicated engine if %s', async (_case, outcome, killed) => {
    const { job, queue, kills, run } = jobOf()
    await run(outcome)
    expect(queue).toEqual([job])
    expect(job.lane()).toBe('dedicated')
    expect(kills).toEqual(killed)
  })

  it('is the last one', async () => {
    const { queue, run, answer } = jobOf()
    await run(lost())
    await run(lost({ reason: 'hang' }))
    expect(await answer).toBe('The engine ended (hang) while the statement ran')
    expect(queue).toHaveLength(1)
  })

  it('fails with the memory limit of a dedicated engine', async () => {
    const { run, answer } = jobOf()
    await run(failed('Out of Memory Error: x'))
    await run(failed('Out of Memory Error: x'))
    expect(await answer).toBe('Query exceeded per-node memory limit of 400MB')
  })

  it.each([
    ['rows were delivered', lost({ delivered: true }), 'The engine ended (crash) while the statement ran'],
    [
      'the statement itself used the memory',
      failed('Out of Memory Error: x', { alone: true }),
      'Query exceeded per-node memory limit of 100MB',
    ],
    [
      'an engine with only this statement was killed for its memory',
      lost({ reason: 'memory', alone: true }),
      'Query exceeded per-node memory limit of 100MB',
    ],
    [
      'planning took too long',
      lost({ reason: 'deadline', culprit: true }),
      'Query exceeded the maximum planning time limit',
    ],
    [
      'the statement spilled too much',
      failed("Out of Memory Error: 'max_temp_directory_size'"),
      'Query exceeded local spill limit of 7MB',
    ],
    ['the statement was refused', failed('no', { refused: true }), 'no'],
    ['the statement is invalid', failed('Binder Error: x'), 'translated Binder Error: x'],
  ])('does not happen if %s', async (_case, outcome, message) => {
    const { queue, run, answer } = jobOf()
    await run(outcome)
    expect(await answer).toBe(message)
    expect(queue).toEqual([])
  })

  it('does not happen if the engines are stopping', async () => {
    const { queue, run, stop, answer } = jobOf()
    stop()
    await run(lost())
    expect(await answer).toBe('The engines are stopping')
    expect(queue).toEqual([])
  })
})

describe('The cancel of an engine job', () => {
  it('removes a waiting job from the queue', async () => {
    const { job, queue, answer } = jobOf()
    queue.push(job)
    job.cancel()
    expect(await answer).toBe('Query was canceled')
    expect(queue).toEqual([])
  })

  it('ends the attempt of a running job, once', async () => {
    const { job, start, cancels, answer } = jobOf()
    start()
    job.cancel()
    job.cancel()
    expect(await answer).toBe('Query was canceled')
    expect(cancels()).toBe(1)
  })

  it('happens automatically when the remaining time is over', async () => {
    const { start, cancels, answer } = jobOf({ remainingMillis: 5_000 })
    start()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await answer).toBe('Query exceeded its maximum run time limit')
    expect(cancels()).toBe(1)
  })
})
