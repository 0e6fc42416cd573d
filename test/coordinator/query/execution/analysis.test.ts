import { allowAll } from '../../../../src/security/authorization.ts'
import type { QueryId } from '../../../../src/shared/ids.ts'
import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Analysis } from '../../../../src/coordinator/query/execution/analysis.ts'
import type { ThreadedFrontEnd } from '../../../../src/coordinator/front-end-threads/threaded-front-end.ts'
import type { MetadataPort } from '../../../../src/sql/front-end.ts'
import { StatementText } from '../../../../src/sql/parsed-statement.ts'
import { sampleData } from '../../../support/query-events.ts'
import { literals } from '../../../support/statement-bed.ts'
import { createStatementMemory } from '../../../../src/coordinator/dispatch/statement-memory.ts'
import { knownOwner } from '../../../../src/shared/limit-owner.ts'

it('an analysis yields to the event loop before it starts and after each catalog call', async () => {
  const reported: string[] = []
  const work = (): void => {
    for (const until = performance.now() + 40; performance.now() < until;);
    reported.push('work')
  }
  const frontEnd = {
    async bind(_text, _session, metadata) {
      work()
      await metadata.tables('tpch')
      work()
      return literals
    },
  } as ThreadedFrontEnd
  // One answer for all analyses at the same moment.
  const tables = nextLoopPass().then(() => [])
  const metadata = { tables: () => tables } as Partial<MetadataPort> as MetadataPort
  const memory = createStatementMemory({ totalBytes: 1e9, userBytes: 1e9, addressBytes: 1e9 })
  const held = memory.hold(knownOwner('alice'), 0)
  const submission = {
    text: new StatementText('SELECT 1'),
    session: sampleData.QueryCreated.session,
    created: sampleData.QueryCreated,
    held,
  }
  const catalogs = { get: () => undefined, names: () => [] }
  let done = false
  const turns = (async () => {
    for (; !done; reported.push('turn')) await nextLoopPass()
  })()
  const all = Array.from({ length: 5 }, (_, index) =>
    new Analysis(
      {
        frontEnd,
        metadata,
        authorize: allowAll,
        objectsOf: () => undefined,
        onRuleFault: () => {},
        catalogs,
        limits: { server: { runMs: 1e6, executionMs: 1e6, planningMs: 1e6 } },
        filesInForce: () => ({}),
      },
      { queryId: `q${index}` as QueryId, submission, startTimeMillis: 0, signal: new AbortController().signal },
    ).analyze(),
  )
  expect(await Promise.all(all)).toEqual(all.map(() => literals))
  done = true
  await turns
  expect(reported.filter((one) => one === 'work')).toHaveLength(10)
  expect(reported.join(' ')).not.toContain('work work')
})
