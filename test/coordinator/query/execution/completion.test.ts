import { describe, expect, it } from 'vitest'
import { decide } from '../../../../src/coordinator/query/stream/decider.ts'
import type { QueryEvent } from '../../../../src/coordinator/query/stream/events.ts'
import { evolve, foldQuery } from '../../../../src/coordinator/query/stream/evolve.ts'
import { Completion } from '../../../../src/coordinator/query/execution/completion.ts'
import { Ended } from '../../../../src/coordinator/query/execution/ongoing-work.ts'
import type { QueryStep } from '../../../../src/coordinator/query/stream/query-aggregate.ts'
import { Fenced, LogUnavailable, TooLarge } from '../../../../src/events/event-log.ts'
import type { TaskStats } from '../../../../src/execution/api/task.ts'
import { EngineError, failureOf } from '../../../../src/shared/engine-error.ts'
import type { TaskId } from '../../../../src/shared/ids.ts'
import { event, QUERY_ID, sampleData } from '../../../support/query-events.ts'
import { knownOwner } from '../../../../src/shared/limit-owner.ts'

const { stages, totals } = sampleData.QueryFinished
const { stats, taskId } = sampleData.TaskFinished
const CANCELED = failureOf('USER_CANCELED', 'Query was canceled')
const RUNNING = [event('QueryCreated'), event('QueryPlanned'), event('TaskCreated')]

/** A completion of a query with these events, over ports that record their calls. */
function completionOf(before: readonly QueryEvent[]) {
  let state = foldQuery(QUERY_ID, before)
  const reported: string[] = []
  const appends: (readonly QueryEvent[])[] = []
  const released: { readonly tasks: readonly string[]; readonly afterMs: number }[] = []
  const live = new Map<TaskId, TaskStats>()
  const held = { bytes: 700 }
  const work = {
    suspended: false,
    stop: () => void reported.push('stopped'),
    /** The stages that have a task with batches to drop. */
    droppable: new Set<number>(),
    dropped: [] as number[],
    dropPending(stages: ReadonlySet<number>) {
      const found = [...stages].filter((stage) => work.droppable.has(stage))
      work.dropped.push(...found)
      return found.length > 0 ? Promise.resolve() : undefined
    },
  }
  /** The reason for which the log refuses an append; by default it accepts each. */
  const log = { refusal: (_events: readonly QueryEvent[]): Error | undefined => undefined }
  const completion = new Completion({
    aggregate: {
      queryId: QUERY_ID,
      get state() {
        return state
      },
      get intended() {
        return state
      },
    },
    record(steps: readonly QueryStep[]) {
      const events: QueryEvent[] = []
      let next = state
      for (const step of steps)
        for (const command of typeof step === 'function' ? step(next) : [step])
          for (const decided of decide(next, command, '2026-01-01T00:00:10.000Z')) {
            events.push(decided)
            next = evolve(QUERY_ID, next, decided)
          }
      const refused = log.refusal(events)
      if (refused) return Promise.reject(refused)
      appends.push(events)
      state = next
      return Promise.resolve()
    },
    work,
    figures: { live, atEnd: (_query, end) => (reported.push(end), { stages, totals }) },
    held: {
      owner: knownOwner('alice'),
      get bytes() {
        return held.bytes
      },
      more: () => () => {},
      release: () => void (held.bytes = 0),
    },
    cleaner: {
      release: (tasks, afterMs) => void released.push({ tasks: tasks.map((task) => task.taskId), afterMs }),
    },
    digestsBy: undefined,
    answersKeptMs: 60_000,
    onInternalError: () => void reported.push('internal'),
    onUnrecorded: () => void reported.push('unrecorded'),
  })
  const types = () => appends.map((events) => events.map(({ type }) => type))
  return { completion, work, live, log, reported, released, appends, types, kind: () => state.kind }
}

describe('A failure', () => {
  it('stops the work, and ends open tasks and the query in one append with the newest figures', async () => {
    const bed = completionOf(RUNNING)
    bed.live.set(taskId, stats)
    await bed.completion.fail(failureOf('DIVISION_BY_ZERO', 'Division by zero'))
    expect(bed.types()).toEqual([['TaskCanceled', 'QueryFailed']])
    expect(bed.appends[0]![0]!.data).toEqual({ taskId, reason: 'aborted', stats })
    expect(bed.reported).toEqual(['stopped', 'FAILED'])
  })

  it('records the reason "canceled" for open tasks when the client cancels the query', async () => {
    const bed = completionOf(RUNNING)
    await bed.completion.fail(CANCELED)
    expect(bed.appends[0]![0]!.data).toEqual({ taskId, reason: 'canceled' })
    expect(bed.reported).toEqual(['stopped', 'CANCELED'])
  })

  it('is recorded without figures of tasks when the log refuses these as too large', async () => {
    const bed = completionOf(RUNNING)
    bed.live.set(taskId, stats)
    bed.log.refusal = ([first]) => (first && 'stats' in first.data ? new TooLarge(2000, 1000) : undefined)
    await bed.completion.fail(CANCELED)
    expect(bed.types()).toEqual([['TaskCanceled', 'QueryFailed']])
    expect(bed.appends[0]![0]!.data).toEqual({ taskId, reason: 'canceled' })
  })

  it('changes nothing for an ended query and for a prepared write', async () => {
    const finished = [...RUNNING, event('ResultPagesPublished'), event('QueryFinished')]
    for (const before of [finished, [...RUNNING, event('WritePrepared')]]) {
      const bed = completionOf(before)
      await bed.completion.fail(CANCELED)
      expect(bed.types()).toEqual([])
      expect(bed.reported).toEqual([])
    }
  })

  it('is not recorded by a process that is stopping', async () => {
    const bed = completionOf(RUNNING)
    bed.work.suspended = true
    await bed.completion.failFor(new Error('connection closed'))
    bed.completion.unrecorded(new LogUnavailable('away'))
    expect(bed.types()).toEqual([])
    expect(bed.reported).toEqual([])
  })

  it('has a message of at most 8 KiB', async () => {
    const bed = completionOf(RUNNING)
    await bed.completion.fail(failureOf('GENERIC_USER_ERROR', 'x'.repeat(100_000)))
    const failed = bed.appends[0]!.at(-1)!
    expect(failed.type === 'QueryFailed' && failed.data.failure.message).toBe(`${'x'.repeat(8 * 1024)}…`)
  })

  it.each([
    [new EngineError('TABLE_NOT_FOUND', 'No such table'), 'TABLE_NOT_FOUND', ['stopped', 'FAILED']],
    [new TypeError('undefined is not a function'), 'GENERIC_INTERNAL_ERROR', ['internal', 'stopped', 'FAILED']],
    [new TooLarge(2000, 1000), 'GENERIC_INSUFFICIENT_RESOURCES', ['stopped', 'FAILED']],
  ])('has the error name that fits the thrown error: %s', async (thrown, errorName, reported) => {
    const bed = completionOf(RUNNING)
    await bed.completion.failFor(thrown)
    const failed = bed.appends[0]!.at(-1)!
    expect(failed.type === 'QueryFailed' && failed.data.failure.errorName).toBe(errorName)
    expect(bed.reported).toEqual(reported)
  })

  it('is not recorded for work that the end of the query stopped', async () => {
    const bed = completionOf(RUNNING)
    await bed.completion.failFor(new Ended())
    expect(bed.types()).toEqual([])
  })
})

describe('An end that could not be recorded', () => {
  it('is left to a successor, except when the log fenced this writer or the query is not in the log', () => {
    const seen = completionOf(RUNNING)
    seen.completion.unrecorded(new LogUnavailable('away'))
    expect(seen.reported).toEqual(['internal', 'unrecorded'])
    const fenced = completionOf(RUNNING)
    fenced.completion.unrecorded(new Fenced('another writes'))
    expect(fenced.reported).toEqual(['internal'])
    const unseen = completionOf([])
    unseen.completion.unrecorded(new LogUnavailable('away'))
    expect(unseen.reported).toEqual(['internal'])
  })
})

describe('A finish', () => {
  it('is recorded once', async () => {
    const bed = completionOf([...RUNNING, event('ResultPagesPublished')])
    await bed.completion.finish()
    await bed.completion.finish()
    expect(bed.types()).toEqual([['QueryFinished']])
    expect(bed.appends[0]![0]!.data).toMatchObject({ rows: 3, bytes: 30, partial: false })
  })

  it('is partial after the pending batches of an existing stage were dropped', async () => {
    const bed = completionOf([...RUNNING, event('ResultPagesPublished')])
    await bed.completion.stopStage(1)
    bed.work.droppable.add(1)
    await bed.completion.stopStage(7)
    expect(bed.work.dropped).toEqual([])
    await bed.completion.stopStage(1)
    await bed.completion.stopStage(0)
    expect(bed.work.dropped).toEqual([1, 1])
    await bed.completion.finish()
    expect(bed.appends[0]![0]!.data).toMatchObject({ partial: true })
  })
})

describe('The release after the end of a query', () => {
  it('keeps the number of bytes readable after the memory is released', () => {
    const { completion } = completionOf(RUNNING)
    expect(completion.bytes).toBe(700)
    completion.releaseMemory()
    completion.releaseMemory()
    expect(completion.bytes).toBe(700)
  })

  it('deletes tasks once: at once when all pages are in the log, later when a worker serves pages', () => {
    const page = { rows: 3, bytes: 30, sha256: 'ab', taskToken: 0 }
    const finishedWith = (kept: 'log' | 'worker') =>
      completionOf([
        ...RUNNING,
        event('ResultPagesPublished', 0, { pages: [{ ...page, kept }] }),
        event('QueryFinished'),
      ])
    const beside = finishedWith('log')
    beside.completion.releaseTasks()
    beside.completion.releaseTasks()
    expect(beside.released).toEqual([
      { tasks: [], afterMs: 60_000 },
      { tasks: [taskId], afterMs: 0 },
    ])
    const serving = finishedWith('worker')
    serving.completion.releaseTasks()
    expect(serving.released).toEqual([
      { tasks: [taskId], afterMs: 60_000 },
      { tasks: [], afterMs: 0 },
    ])
  })

  it('deletes all tasks of a failed query at once', () => {
    const worker = { rows: 3, bytes: 30, sha256: 'ab', taskToken: 0, kept: 'worker' as const }
    const bed = completionOf([...RUNNING, event('ResultPagesPublished', 0, { pages: [worker] }), event('QueryFailed')])
    bed.completion.releaseTasks()
    expect(bed.released).toEqual([
      { tasks: [], afterMs: 60_000 },
      { tasks: [taskId], afterMs: 0 },
    ])
  })
})
