import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decide, type QueryCommand } from '../../../src/coordinator/query/stream/decider.ts'
import type { QueryEvent, QueryEventType } from '../../../src/coordinator/query/stream/events.ts'
import { evolve, foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import { initialQueryState, isTerminal, type QueryState } from '../../../src/coordinator/query/stream/state.ts'
import { failureOf } from '../../../src/shared/engine-error.ts'
import { at, event, QUERY_ID, ROOT_TASK, sampleData, WORKER_TASK } from '../../support/query-events.ts'

const figures = { stages: [], totals: sampleData.QueryFailed.totals }
const failure = failureOf('DIVISION_BY_ZERO', 'Division by zero')

const commands = {
  create: { type: 'CreateQuery', data: sampleData.QueryCreated },
  queue: { type: 'QueueQuery', data: sampleData.QueryQueued },
  admit: { type: 'AdmitQuery', data: sampleData.QueryAdmitted },
  plan: { type: 'PlanQuery', data: sampleData.QueryPlanned },
  createTask: { type: 'CreateTask', data: sampleData.TaskCreated },
  progress: { type: 'ReportProgress', data: sampleData.QueryProgressed },
  finishTask: { type: 'FinishTask', data: sampleData.TaskFinished },
  failTask: { type: 'FailTask', data: sampleData.TaskFailed },
  retryTask: { type: 'RetryTask', data: sampleData.TaskRetried },
  cancelTask: { type: 'CancelTask', data: sampleData.TaskCanceled },
  publish: { type: 'PublishPages', data: sampleData.ResultPagesPublished },
  deliver: { type: 'DeliverResults', data: sampleData.ResultsDelivered },
  lose: { type: 'LosePages', data: sampleData.ResultPagesLost },
  prepare: { type: 'PrepareWrite', data: sampleData.WritePrepared },
  commit: { type: 'CommitWrite', data: sampleData.WriteCommitted },
  recover: { type: 'RecoverQuery', data: sampleData.QueryRecovered },
  finish: { type: 'FinishQuery', data: sampleData.QueryFinished },
  fail: { type: 'FailQuery', failure, figures },
  cancel: { type: 'FailQuery', failure: failureOf('USER_CANCELED', 'Query was canceled'), figures },
} as const satisfies Record<string, QueryCommand>

function given(...events: QueryEvent[]) {
  const state = foldQuery(QUERY_ID, events)
  return {
    when: (command: QueryCommand) => ({
      then: (...types: QueryEventType[]) => expect(decide(state, command, at(9)).map((one) => one.type)).toEqual(types),
    }),
  }
}

const created = event('QueryCreated')
const planned = [created, event('QueryPlanned'), event('TaskCreated')]
const complete = [...planned, event('TaskFinished'), event('ResultPagesPublished')]

describe('`decide`', () => {
  it('queues a query once, even after a recovery', () => {
    const queued = [event('QueryCreated'), event('QueryQueued')]
    given(event('QueryCreated')).when(commands.queue).then('QueryQueued')
    given(...queued)
      .when(commands.queue)
      .then()
    given(...queued, event('QueryRecovered'))
      .when(commands.queue)
      .then()
  })

  it('creates a query once', () => {
    given().when(commands.create).then('QueryCreated')
    given(created).when(commands.create).then()
  })
  it('returns no events for a query that was not created', () => {
    for (const command of Object.values(commands)) if (command.type !== 'CreateQuery') given().when(command).then()
  })
  it('admits only a queued query', () => {
    given(created).when(commands.admit).then()
    given(created, event('QueryQueued')).when(commands.admit).then('QueryAdmitted')
    given(created, event('QueryQueued')).when(commands.queue).then()
  })
  it('plans a query once', () => {
    given(created).when(commands.plan).then('QueryPlanned')
    given(...planned)
      .when(commands.plan)
      .then()
  })
  it('ends a created task once, and also a root task without TaskCreated', () => {
    given(...planned)
      .when(commands.finishTask)
      .then('TaskFinished')
    given(...planned, event('TaskFinished'))
      .when(commands.finishTask)
      .then()
    given(...planned, event('TaskFinished'))
      .when(commands.failTask)
      .then()
    given(...planned)
      .when({ type: 'FinishTask', data: { ...sampleData.TaskFinished, taskId: ROOT_TASK, stage: 0 } })
      .then('TaskFinished')
    given(created, event('QueryPlanned')).when(commands.finishTask).then()
  })
  it('publishes each token once, in order, and nothing after the last', () => {
    given(...planned)
      .when(commands.publish)
      .then('ResultPagesPublished')
    given(...complete)
      .when(commands.publish)
      .then()
    given(...planned)
      .when({ type: 'PublishPages', data: { ...sampleData.ResultPagesPublished, firstToken: 1 } })
      .then()
  })
  it('finishes a query only with a complete result', () => {
    given(...planned)
      .when(commands.finish)
      .then()
    given(...complete)
      .when(commands.finish)
      .then('QueryFinished')
    given(created, event('QueryPlanned', 0, { columns: [] }))
      .when(commands.finish)
      .then('QueryFinished')
  })
  it('cancels an open query once, with USER_CANCELED', () => {
    const [event_] = decide(foldQuery(QUERY_ID, planned), commands.cancel, at(1))
    expect(event_).toMatchObject({
      type: 'QueryFailed',
      data: { failure: { errorName: 'USER_CANCELED', errorCode: 3 } },
    })
    given(...planned, event('QueryFailed'))
      .when(commands.cancel)
      .then()
    given(...complete, event('QueryFinished'))
      .when(commands.cancel)
      .then()
  })
  it('allows only commit and then finish for a prepared write', () => {
    const prepared = [...complete, event('WritePrepared')]
    given(...prepared)
      .when(commands.fail)
      .then()
    given(...prepared)
      .when(commands.cancel)
      .then()
    given(...prepared)
      .when(commands.finish)
      .then()
    given(...prepared)
      .when(commands.commit)
      .then('WriteCommitted')
    given(...prepared, event('WriteCommitted'))
      .when(commands.finish)
      .then('QueryFinished')
  })
  it('allows only failure for a write that became impossible', () => {
    const impossible = [...complete, event('WritePrepared'), event('WriteCommitted', 0, { outcome: 'impossible' })]
    given(...impossible)
      .when(commands.finish)
      .then()
    given(...impossible)
      .when(commands.fail)
      .then('QueryFailed')
    expect(foldQuery(QUERY_ID, [...impossible, event('QueryFailed')]).kind).toBe('FAILED')
  })
  it('prepares and commits a write once', () => {
    const prepared = [...planned, event('WritePrepared')]
    given(...prepared)
      .when(commands.prepare)
      .then()
    given(...planned)
      .when(commands.commit)
      .then()
    given(...prepared, event('WriteCommitted'))
      .when(commands.commit)
      .then()
  })
  it('records delivered and lost pages after the end of the query, each once', () => {
    const ended = [...complete, event('QueryFinished')]
    given(...ended)
      .when(commands.deliver)
      .then('ResultsDelivered')
    given(...ended, event('ResultsDelivered'))
      .when(commands.deliver)
      .then()
    given(...ended)
      .when(commands.lose)
      .then('ResultPagesLost')
    given(...ended, event('ResultPagesLost'))
      .when(commands.lose)
      .then()
  })
  it('copies the task id of the command into the event', () => {
    expect(decide(foldQuery(QUERY_ID, planned), commands.cancelTask, at(1))).toEqual([
      { type: 'TaskCanceled', time: at(1), data: { taskId: WORKER_TASK, reason: 'canceled' } },
    ])
  })
})

describe('`decide` and `evolve` together', () => {
  it('produce at most one terminal event for any commands, and a replay equals the live state', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...Object.values(commands)), { maxLength: 40 }), (wishes) => {
        let state: QueryState = initialQueryState
        const log: QueryEvent[] = []
        for (const [index, wish] of wishes.entries())
          for (const one of decide(state, wish, at(index))) {
            log.push(one)
            const before: QueryState = state
            state = evolve(QUERY_ID, state, one)
            // Each decided event changes the state: the fold drops no event of the decider.
            if (one.type !== 'TaskRetried') expect(state).not.toEqual(before)
          }
        expect(log.filter((one) => one.type === 'QueryFinished' || one.type === 'QueryFailed').length).toBe(
          isTerminal(state.kind) ? 1 : 0,
        )
        expect(foldQuery(QUERY_ID, log)).toEqual(state)
      }),
      { numRuns: 300 },
    )
  })
})
