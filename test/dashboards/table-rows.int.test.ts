import { afterAll, beforeAll, expect, it } from 'vitest'
import { createSystemJournal } from '../../src/coordinator/system/system-journal.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { panelSql, tablePanel } from '../support/panels.ts'
import { appendLives, queryLife, testQueryId, type QueryLifeOptions } from '../support/query-life.ts'
import { openReadModelBed, type ReadModelBed } from '../support/read-models.ts'

/*
 * The tables of dashboards that a server without faults, log-ins and groups leaves empty. The rows come from events, by the
 * projection.
 */

let bed: ReadModelBed

beforeAll(async () => {
  bed = await openReadModelBed(undefined, { now: Date.now })
  const runner = await bed.startRunner()
  const lives: readonly QueryLifeOptions[] = [
    { user: 'alice', session: { groups: ['analysts', 'all'], originalUser: 'service' } },
    {
      user: 'bob',
      session: { groups: ['all'] },
      sql: '/* {"app": "dbt", "node_id": "model.a"} */ SELECT name FROM nation',
    },
  ]
  const startMillis = Date.now() - 60_000
  await appendLives(
    bed.log,
    lives.map((life, number) => ({
      queryId: testQueryId(number),
      events: queryLife(testQueryId(number), { ...life, startMillis }),
    })),
  )
  const journal = createSystemJournal(bed.log, systemClock)
  const minute = new Date(startMillis).toISOString().slice(0, 16)
  const remoteAddress = '10.0.0.1'
  for (const count of [2, 3])
    await journal.record('AccessDenied', { user: 'bob', action: 'select', object: 'a.b.c', count, minute })
  await journal.record('LoggedIn', {
    user: 'alice',
    principal: 'CN=alice',
    method: 'certificate',
    groups: [],
    count: 4,
    minute,
    remoteAddress,
  })
  await journal.record('AuthenticationFailed', { user: 'eve', method: 'password', count: 7, minute, remoteAddress })
  await journal.record('LogVerified', {
    by: 'root',
    findings: { hash: 1 },
    records: 20,
    events: 18,
    queries: 2,
    open: 0,
    anchors: 5,
    signatures: 4,
    periods: 0,
    tables: 10,
    milliseconds: 12,
  })
  expect(await runner.barrier(60_000)).toBe(true)
  await bed.query(
    `insert into dead_letters (projection, stream, sequence, kind, "position", "partition", type, v, "time", error_message, sqlstate, data)
     values ('read_models', $1, 3, 'failed', 7, 0, 'TaskFinished', 1, now(), 'no such column', '42703', '{}')`,
    [testQueryId(1)],
  )
}, 120_000)
afterAll(() => bed.close(), 60_000)

const rowsOf = (dashboard: string, title: string) =>
  bed.query(panelSql(tablePanel(dashboard, title).sql, { user: 'bob', table: '%' }))

it.each<[dashboard: string, title: string, rows: readonly object[]]>([
  ['access', 'Refused accesses', [{ user_name: 'bob', action: 'select', object: 'a.b.c', attempts: 5 }]],
  [
    'access',
    'Log-ins by user and address',
    [
      { kind: 'AuthenticationFailed', user_name: 'eve', method: 'password', remote_address: '10.0.0.1', attempts: 7 },
      { kind: 'LoggedIn', user_name: 'alice', method: 'certificate', remote_address: '10.0.0.1', attempts: 4 },
    ],
  ],
  ['access', 'Queries as another user', [{ by: 'service', as_user: 'alice', queries: '1' }]],
  ['access', 'Audits of the event log', [{ by: 'root', findings: { hash: 1 }, events: 18, anchors: 5, signatures: 4 }]],
  [
    'cost',
    'Cost by group of the user',
    [
      { user_group: 'all', queries: '2', cost: null },
      { user_group: 'analysts', queries: '1', cost: null },
    ],
  ],
  ['cost', 'Cost by app and object', [{ app: 'dbt', app_object: 'model.a', queries: '1', cost: null }]],
  [
    'audit',
    'Denied and refused',
    [{ kind: 'AuthenticationFailed' }, { kind: 'AccessDenied' }, { kind: 'AccessDenied' }],
  ],
  ['audit', 'Statements of $user', [{ query_id: testQueryId(1), user_name: 'bob' }]],
  ['log', 'Open dead letters', [{ query_id: testQueryId(1), type: 'TaskFinished', sqlstate: '42703' }]],
])('the dashboard %s, "%s", shows its rows', async (dashboard, title, expected) => {
  expect(await rowsOf(dashboard, title)).toMatchObject(expected)
})
