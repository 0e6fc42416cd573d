import { allowAll } from '../../../../src/security/authorization.ts'
import type { QueryId } from '../../../../src/shared/ids.ts'
import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Analysis } from '../../../../src/coordinator/query/execution/analysis.ts'
import type { ThreadedFrontEnd } from '../../../../src/coordinator/front-end-threads/threaded-front-end.ts'
import type { PlannedStatement } from '../../../../src/planner/planned-statement.ts'
import type { MetadataPort } from '../../../../src/sql/front-end.ts'
import { StatementText } from '../../../../src/sql/parsed-statement.ts'
import { sampleData } from '../../../support/query-events.ts'
import { literals } from '../../../support/statement-bed.ts'
import { createStatementMemory } from '../../../../src/coordinator/dispatch/statement-memory.ts'
import { knownOwner } from '../../../../src/shared/limit-owner.ts'

const memory = createStatementMemory({ totalBytes: 100_000, userBytes: 100_000, addressBytes: 100_000 })

function analysisOf(frontEnd: ThreadedFrontEnd, metadata: MetadataPort, text: StatementText, queryId = 'q') {
  const held = memory.hold(knownOwner('alice'), 0)
  const submission = { text, session: sampleData.QueryCreated.session, created: sampleData.QueryCreated, held }
  const ports = {
    frontEnd,
    metadata,
    authorize: allowAll,
    objectsOf: () => undefined,
    onRuleFault: () => {},
    catalogs: { get: () => undefined, names: () => [] },
    limits: { server: { runMs: 1e6, executionMs: 1e6, planningMs: 1e6 } },
    filesInForce: () => ({}),
  }
  const { signal } = new AbortController()
  return {
    held,
    analysis: new Analysis(ports, { queryId: queryId as QueryId, submission, startTimeMillis: 0, signal }),
  }
}

/** A front end that finds a write in each text. */
const writing = {
  async plan(text: Parameters<ThreadedFrontEnd['plan']>[0]) {
    text.parse()
    return { kind: 'write' } as PlannedStatement
  },
} as Partial<ThreadedFrontEnd> as ThreadedFrontEnd

it('an analysis yields to the event loop before it starts and after each catalog call', async () => {
  const reported: string[] = []
  const work = (): void => {
    for (const until = performance.now() + 40; performance.now() < until;);
    reported.push('work')
  }
  const frontEnd = {
    async plan(...[, , metadata]: Parameters<ThreadedFrontEnd['plan']>) {
      work()
      await metadata.tables('tpch')
      work()
      return literals
    },
  } as Partial<ThreadedFrontEnd> as ThreadedFrontEnd
  // One answer for all analyses at the same moment.
  const tables = nextLoopPass().then(() => [])
  const metadata = { tables: () => tables } as Partial<MetadataPort> as MetadataPort
  let done = false
  const otherWork = (async () => {
    for (; !done; reported.push('turn')) await nextLoopPass()
  })()
  const all = Array.from({ length: 5 }, (_, index) =>
    analysisOf(frontEnd, metadata, new StatementText('SELECT 1'), `q${index}`).analysis.analyze(),
  )
  expect(await Promise.all(all)).toEqual(all.map(() => literals))
  done = true
  await otherWork
  expect(reported.filter((one) => one === 'work')).toHaveLength(10)
  expect(reported.join(' ')).not.toContain('work work')
})

it('an analysis keeps the syntax tree of a write for its second analysis, and counts its memory until then', async () => {
  const text = new StatementText('INSERT INTO t VALUES (1)')
  const { analysis, held } = analysisOf(writing, {} as MetadataPort, text)
  await analysis.analyze()
  const first = text.parsed
  expect(first).toBeDefined()
  expect(held.bytes).toBeGreaterThan(500)
  await analysis.analyze()
  expect(text.parsed).toBeUndefined()
  expect(held.bytes).toBe(0)
})

it('an analysis frees the syntax tree of a write for which there is no memory', async () => {
  const text = new StatementText(`INSERT INTO t VALUES ${'(1), '.repeat(1000)}(2)`)
  const { analysis, held } = analysisOf(writing, {} as MetadataPort, text)
  await analysis.analyze()
  expect(text.parsed).toBeUndefined()
  expect(held.bytes).toBe(0)
})
