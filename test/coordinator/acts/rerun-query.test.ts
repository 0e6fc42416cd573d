import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Acts, type ActOnQuery, type StartedAct } from '../../../src/coordinator/acts/acts.ts'
import type { KnownAct } from '../../../src/coordinator/acts/act-state.ts'
import { rerunQuery, type RerunDeps } from '../../../src/coordinator/acts/rerun-query.ts'
import { recordedSubmission } from '../../../src/coordinator/query/secrets/query-secrets.ts'
import type { Ending } from '../../../src/coordinator/query/stream/ending.ts'
import { LogUnavailable } from '../../../src/events/event-log.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { deferred } from '../../../src/shared/deferred.ts'
import { EngineError, type Failure } from '../../../src/shared/engine-error.ts'
import { queryLife, testQueryId, toLogEvents } from '../../support/query-life.ts'

const original = testQueryId(1)
const copy = testQueryId(2)
const started: StartedAct = {
  actId: 'a1',
  act: 'rerun',
  by: 'root',
  reason: 'outage',
  filter: {},
  before: '2026-03-02T00:00:00.000Z',
  matched: 1,
  queries: [original],
}

/** Answers of the statement service: an error is thrown. */
interface Script {
  readonly submits: readonly (EngineError | 'accepted')[]
  readonly polls?: readonly (LogUnavailable | 'more' | 'last')[]
  /** The new query gives no rows, and the act is stopped. */
  readonly stop?: boolean
}

/** Runs an ended query again by an act. @returns the outcome, and how often the service was called */
async function rerun({ submits, polls = ['last'], stop = false }: Script) {
  const calls = { submit: 0, poll: 0 }
  const canceled = deferred<{ readonly kind: 'answer'; readonly failure: Failure }>()
  const step = <T>(script: readonly (Error | T)[], call: keyof typeof calls): T => {
    const next = script[calls[call]++]
    if (next === undefined) throw new Error(`${call} was called too often`)
    if (next instanceof Error) throw next
    return next
  }
  const deps = {
    log: {
      async *readStream() {
        const events = toLogEvents(queryLife(original, { end: 'finished' }))
        for (const [at, event] of events.entries()) yield { ...event, stream: original, sequence: at + 1 }
      },
    },
    registry: { get: () => ({ firstToken: 0 }), list: () => [] },
    service: {
      submit: () => Promise.resolve().then(() => (step(submits, 'submit'), { queryId: copy })),
      poll: (_id: string, token: number) =>
        stop
          ? Promise.race([canceled.promise, sleep(1, { kind: 'answer', nextToken: token })])
          : Promise.resolve().then(() => ({
              kind: 'answer',
              nextToken: step(polls, 'poll') === 'more' ? token + 1 : undefined,
            })),
      cancel(_id: string, { failure }: Ending) {
        canceled.resolve({ kind: 'answer', failure })
        return Promise.resolve('done')
      },
    },
    prepare: {
      texts: {
        seal: (sql: string, session: object, rest: object) => recordedSubmission({ sql, session, ...rest } as never),
      },
      groupOf: () => 'all',
      propertyRules: () => undefined,
    },
    baseUri: 'http://here:8080',
    notAsBefore: () => undefined,
    recordedRerun: () => Promise.resolve(undefined),
  } as unknown as RerunDeps
  const ended = deferred<KnownAct>()
  const actOn: ActOnQuery = (id, act, again, stopped) => rerunQuery(deps, id, act, { again, stopped })
  const acts = new Acts({
    journal: { record: () => Promise.resolve() } as never,
    clock: systemClock,
    actOn: { kill: actOn, hold: actOn, release: actOn, rerun: actOn, forget: actOn },
    onOutcome() {},
    onStarted() {},
    onEnded: ended.resolve,
    onStopped() {},
    onError() {},
  })
  await acts.start(started)
  if (stop) await acts.stopAct(started.actId, 'ana', 0)
  const { outcomes, problems } = await ended.promise
  return { calls, outcomes, problems }
}

const tooMany = (retry: 'later' | 'never') => new EngineError('TOO_MANY_REQUESTS_FAILED', 'too many', { retry })

it('a rerun is sent again when the server takes no statement now', async () => {
  const { calls, outcomes } = await rerun({ submits: [tooMany('later'), 'accepted'] })
  expect(outcomes).toEqual({ done: 1 })
  expect(calls.submit).toBe(2)
})

it('a rerun fails when the server never takes its statement', async () => {
  const { calls, outcomes, problems } = await rerun({ submits: [tooMany('never')] })
  expect(outcomes).toEqual({ failed: 1 })
  expect(problems).toEqual([{ queryId: original, outcome: 'failed', why: 'TOO_MANY_REQUESTS_FAILED' }])
  expect(calls.submit).toBe(1)
})

it('a rerun that has begun is not sent again when the log does not answer a poll', async () => {
  const away = new LogUnavailable('the log does not answer')
  const { calls, outcomes } = await rerun({ submits: ['accepted'], polls: ['more', away, away, 'last'] })
  expect(outcomes).toEqual({ done: 1 })
  expect(calls).toEqual({ submit: 1, poll: 4 })
})

it('a rerun cancels its query when the act is stopped', async () => {
  const { outcomes, problems } = await rerun({ submits: ['accepted'], stop: true })
  expect(outcomes).toEqual({ failed: 1 })
  expect(problems).toEqual([{ queryId: original, outcome: 'failed', why: `Query ${copy} failed: USER_CANCELED` }])
})
