import { entrantOf } from '../../support/group-entrant.ts'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LogFull, TooLarge } from '../../../src/events/event-log.ts'
import { EngineError } from '../../../src/shared/engine-error.ts'
import type { PlannedStatement } from '../../../src/planner/planned-statement.ts'
import { createStatementBed, literals, MemoryLog } from '../../support/statement-bed.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

async function quiet(passes = 20): Promise<void> {
  for (let pass = 0; pass < passes; pass++) await settled()
}

/** A statement that changes the session: it stays open until a client follows it. */
const session: PlannedStatement = {
  kind: 'session',
  queryType: 'DATA_DEFINITION',
  updateType: 'USE',
  changes: [],
  warnings: [],
}

describe('A statement that the log refuses', () => {
  it('does not count as open and does not stay in its resource group', async () => {
    const log = new MemoryLog()
    const bed = createStatementBed({ log, openQueries: 10 })
    log.refuse = () => new LogFull('Too many events already wait for the event log')
    for (let refused = 0; refused < 12; refused++)
      await expect(bed.submit('SELECT 1')).rejects.toThrow('The event log does not answer')
    await quiet()
    expect(bed.registry.open).toBe(0)
    expect(bed.registry.list()).toEqual([])
    log.refuse = () => undefined
    await bed.submit('SELECT 1')
    expect(bed.groups.figures()).toMatchObject([{ running: 0, queued: 0 }])
    expect(bed.unrecorded).toEqual([])
  })

  it('does not count as open when its first event is too large for the log', async () => {
    const log = new MemoryLog()
    const bed = createStatementBed({ log, openQueries: 2 })
    log.refuse = () => new TooLarge(9, 8)
    for (let refused = 0; refused < 5; refused++) await expect(bed.submit('SELECT 1')).rejects.toThrow(TooLarge)
    await quiet()
    expect(bed.registry.open).toBe(0)
    expect(bed.unrecorded).toEqual([])
  })
})

describe('A statement with a too large plan, text or failure', () => {
  it.each([
    ['with the first event', 0],
    ['after the first event', 1],
  ])('fails when the log refuses its plan %s', async (_name, analysisSteps) => {
    const log = new MemoryLog()
    log.refuse = (_stream, events) =>
      events.some(({ type }) => type === 'QueryPlanned') ? new TooLarge(9_000_000, 8_000_000) : undefined
    const bed = createStatementBed({
      log,
      async analyze() {
        // After this time the first event is appended alone, without the plan.
        if (analysisSteps > 0) await new Promise((resolve) => setTimeout(resolve, 30))
        return literals
      },
    })
    const execution = await bed.submit('SELECT 1')
    while (execution.aggregate.state.kind !== 'FAILED') await settled()
    const { state } = execution.aggregate
    expect(state.kind === 'FAILED' && state.failure).toMatchObject({
      errorName: 'GENERIC_INSUFFICIENT_RESOURCES',
      message: expect.stringContaining('9000000'),
    })
    expect(log.typesOf(execution.queryId)).toEqual(['QueryCreated', 'QueryFailed'])
    expect(bed.unrecorded).toEqual([])
    expect(bed.internalErrors).toEqual([])
    expect(bed.registry.open).toBe(0)
  })

  it('fails with QUERY_EXCEEDED_COMPILER_LIMIT when its plan is over the limit for plans', async () => {
    const log = new MemoryLog()
    const { query } = literals as Extract<PlannedStatement, { kind: 'query' }>
    const outline = { ...query.outline, details: { text: 'x'.repeat(2 << 20) } }
    const bed = createStatementBed({
      log,
      analyze: () => Promise.resolve({ ...literals, query: { ...query, outline } }),
    })
    const execution = await bed.submit('SELECT 1')
    while (execution.aggregate.state.kind !== 'FAILED') await settled()
    const { state } = execution.aggregate
    expect(state.kind === 'FAILED' && state.failure.errorName).toBe('QUERY_EXCEEDED_COMPILER_LIMIT')
  })

  it('fails with QUERY_TEXT_TOO_LARGE when it prepares a text that is too long for a header', async () => {
    const changes = [{ kind: 'AddedPrepare', name: 'p', sql: 'x'.repeat(100_000) }] as const
    const bed = createStatementBed({ log: new MemoryLog(), analyze: () => Promise.resolve({ ...session, changes }) })
    const execution = await bed.submit('PREPARE p FROM …')
    while (execution.aggregate.state.kind !== 'FAILED') await settled()
    const { state } = execution.aggregate
    expect(state.kind === 'FAILED' && state.failure.errorName).toBe('QUERY_TEXT_TOO_LARGE')
  })

  it('fails with a cut message that has no half of a surrogate pair', async () => {
    const log = new MemoryLog()
    const analyze = () =>
      Promise.reject(new EngineError('INVALID_CAST_ARGUMENT', `Cannot cast '${'😀'.repeat(1 << 20)}'`))
    const execution = await createStatementBed({ log, analyze }).submit('SELECT 1')
    while (execution.aggregate.state.kind !== 'FAILED') await settled()
    const [, failed] = log.streams.get(execution.queryId)!
    expect(JSON.stringify(failed!.data).length).toBeLessThan(64_000)
    expect(JSON.stringify(failed!.data)).not.toMatch(/\\ud[89ab]/)
  })
})

describe('Slots of a resource group', () => {
  it('are free again when a query is canceled at the moment of its admission', async () => {
    const log = new MemoryLog()
    const bed = createStatementBed({ log, limits: { running: 1, queued: 10 } })
    let release = (): void => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    log.settle = () => gate
    const first = bed.submit('SELECT 1')
    const second = bed.submit('SELECT 2')
    while (bed.groups.figures()[0]?.queued !== 1) await settled()
    // The second query gets the slot while the listeners of the first learn of its end.
    bed.executions[0]!.aggregate.onValid(() => void bed.executions[1]!.cancel())
    release()
    await Promise.all([first, second])
    await quiet()
    expect(bed.groups.figures()).toMatchObject([{ running: 0, queued: 0 }])
    expect(bed.executions.map(({ aggregate }) => aggregate.state.kind)).toEqual(['FINISHED', 'FAILED'])
  })

  it('are free again after any order of admissions, cancels, ends and refusals by the log', async () => {
    const action = fc.record({
      kind: fc.constantFrom('literals', 'session', 'fails'),
      cancel: fc.option(fc.nat(6), { nil: undefined }),
      follow: fc.boolean(),
      refuse: fc.constantFrom(
        undefined,
        undefined,
        undefined,
        'QueryCreated',
        'QueryQueued',
        'QueryPlanned',
        'TaskFinished',
      ),
    })
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.array(action, { minLength: 1, maxLength: 8 }), async (scheduler, actions) => {
        const log = new MemoryLog()
        const kinds = new Map(actions.map((one, index) => [String(index), one]))
        const ofStream = new Map<string, string>()
        log.refuse = (stream, events) => {
          const created = events.find(({ type }) => type === 'QueryCreated')
          if (created) ofStream.set(stream, (created.data as { sql: string }).sql)
          const refused = kinds.get(ofStream.get(stream) ?? '')?.refuse
          if (!refused || !events.some(({ type }) => type === refused)) return undefined
          return refused === 'QueryCreated' ? new LogFull('full') : new TooLarge(9, 8)
        }
        log.settle = () => scheduler.schedule(Promise.resolve(), 'valid')
        const bed = createStatementBed({
          log,
          limits: { running: 1, queued: 100 },
          async analyze(sql) {
            await scheduler.schedule(Promise.resolve(), 'analysed')
            const kind = kinds.get(sql)!.kind
            if (kind === 'fails') throw new Error('a fault')
            return kind === 'session' ? session : literals
          },
        })
        const posts = actions.map(async ({ cancel, follow }, index) => {
          await scheduler.schedule(Promise.resolve(), 'post')
          const submitted = bed.submit(String(index)).catch(() => undefined)
          const execution = bed.executions.at(-1)!
          if (cancel !== undefined) {
            for (let pass = 0; pass < cancel; pass++) await scheduler.schedule(Promise.resolve(), 'cancel')
            await execution.cancel().catch(() => {})
          }
          await submitted
          // Some queries have no client that follows them: they are abandoned.
          if (follow) execution.follow()
          else
            await execution.fail({ errorName: 'ABANDONED_QUERY', errorCode: 2, errorType: 'USER_ERROR', message: 'x' })
        })
        const all = Promise.allSettled(posts)
        let over = false
        void all.then(() => (over = true))
        while (!over) {
          await settled()
          await scheduler.waitAll()
        }
        for (let pass = 0; pass < 10; pass++) {
          await settled()
          await scheduler.waitAll()
        }
        expect(bed.groups.figures()).toEqual([
          { group: 'global', running: 0, queued: 0, limits: { running: 1, queued: 100 } },
        ])
        expect(bed.registry.open).toBe(0)
        expect(bed.memory.heldBytes).toBe(0)
        expect(bed.unrecorded).toEqual([])
        // The only slot is free for the next query.
        expect(bed.groups.tryEnter(entrantOf())).toBeDefined()
        bed.registry.stop()
      }),
      { numRuns: 200 },
    )
  })
})
