import { parseQueryId, type QueryId } from '../../src/shared/ids.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { QueryEventType } from '../../src/coordinator/query/stream/events.ts'
import { transactionIdOf } from '../../src/coordinator/query/session/transaction-ids.ts'
import {
  endOf,
  patient,
  startKillableServer,
  type KillableServer,
  type StatementEnd,
} from '../support/killable-server.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { post, raw, trinoHeaders, type RawAnswer } from '../support/statement-client.ts'

/*
 * The coordinator is killed right before an append, while statements of every kind that writes no table are open. A
 * client that follows on gets the same result as in an undisturbed run, headers included.
 */

interface Statement {
  readonly sql: string
  readonly headers?: Readonly<Record<string, string>>
  /** The client sends it in a transaction, which no other statement is in. */
  readonly inTransaction?: true
  /** The client deletes it. */
  readonly canceled?: true
}

/** Has pages that are not kept beside the log, so the query has not ended before they are read. */
const UNREAD = "SELECT lpad(name, 100000, 'x') FROM region"

const statements = {
  worker: { sql: 'SELECT regionkey, count(*) c, min(name) FROM nation GROUP BY 1 ORDER BY 1 DESC' },
  failing: { sql: 'SELECT 10 / (nationkey - nationkey) FROM nation' },
  canceled: { sql: UNREAD, canceled: true },
  large: { sql: UNREAD },
  measured: { sql: 'EXPLAIN ANALYZE SELECT count(*) FROM nation' },
  showTables: { sql: 'SHOW TABLES' },
  engine: { sql: 'SELECT 1 + 1 AS two, random() < 2' },
  engineFailing: { sql: 'SELECT 1 / (length(CAST(now() AS varchar)) * 0)' },
  execute: {
    sql: "EXECUTE p USING 'A%'",
    headers: { 'x-trino-prepared-statement': 'p=SELECT+name+FROM+nation+WHERE+name+LIKE+%3F+ORDER+BY+1' },
  },
  literals: { sql: "SELECT 1 AS one, 'x', DATE '2020-01-01', NULL" },
  secret: { sql: "SELECT 'password=hunter2'" },
  explain: { sql: 'EXPLAIN SELECT name FROM nation WHERE nationkey > 3' },
  wrong: { sql: 'SELECT nosuch FROM nation' },
  setSession: { sql: "SET SESSION query_max_run_time = '17m'" },
  prepare: { sql: 'PREPARE q FROM SELECT name FROM nation WHERE nationkey = ?' },
  deallocate: { sql: 'DEALLOCATE PREPARE p', headers: { 'x-trino-prepared-statement': 'p=SELECT+1' } },
  use: { sql: 'USE tpch.sf1' },
  startTransaction: { sql: 'START TRANSACTION READ ONLY' },
  commit: { sql: 'COMMIT', inTransaction: true },
} as const satisfies Readonly<Record<string, Statement>>

type Name = keyof typeof statements
const names = Object.keys(statements) as Name[]
const SESSION = ['setSession', 'prepare', 'deallocate', 'use', 'startTransaction', 'commit'] as const

/** The number of statements that run at once. */
const SLOTS = 20

let server: KillableServer
const undisturbed = new Map<Name, unknown>()

beforeAll(async () => {
  server = await startKillableServer({ QUIPU_RUNNING_QUERIES: String(SLOTS) })
}, 240_000)
afterAll(() => server.close())

let transactions = 0

function newTransaction(): string {
  return transactionIdOf(parseQueryId(`20260101_000000_${String(transactions++).padStart(5, '0')}_00001`))
}

const submit = (name: Name): Promise<RawAnswer> => {
  const { sql, headers, inTransaction }: Statement = statements[name]
  const transaction = inTransaction && { 'x-trino-transaction-id': newTransaction() }
  return post(server.url, sql, { ...trinoHeaders, ...headers, ...transaction })
}

async function outcome(name: Name, first: RawAnswer): Promise<unknown> {
  const { canceled }: Statement = statements[name]
  if (canceled) await patient(first.json.nextUri!, { method: 'DELETE' })
  const end = await endOf(first)
  return name === 'measured' ? withoutFigures(end) : namingNoRun(end, parseQueryId(first.json.id))
}

/** The id of a transaction comes from the query that starts it, so it is replaced. */
function namingNoRun(end: StatementEnd, id: QueryId): unknown {
  const started = end.headers['x-trino-started-transaction-id']
  if (started !== transactionIdOf(id)) return end
  return { ...end, headers: { ...end.headers, 'x-trino-started-transaction-id': 'its own' } }
}

/** The figures of two measurements differ, so only the number of rows is kept. */
function withoutFigures(end: StatementEnd): unknown {
  return { ...end, data: end.data.length }
}

/** Stops the worker and takes all slots, so that statements wait in the queue until the slots are free again. */
async function takeSlots(): Promise<{ giveFree(): void; ended(): Promise<void> }> {
  server.signalWorker('SIGSTOP')
  const taken = await Promise.all(Array.from({ length: SLOTS }, () => post(server.url, 'SELECT count(*) FROM nation')))
  const end = async ({ json }: RawAnswer): Promise<unknown> => patient(json.nextUri!, { method: 'DELETE' })
  const ended = async (): Promise<void> => void (await Promise.all(taken.map(end)))
  return { giveFree: () => void ended().catch(() => {}), ended }
}

it('every statement ends as expected in an undisturbed run', { timeout: 240_000 }, async () => {
  for (const name of names) undisturbed.set(name, await outcome(name, await submit(name)))
  expect(Object.fromEntries(undisturbed)).toMatchObject({
    worker: { state: 'FINISHED', data: [[4], [3], [2], [1], [0]].map(([key]) => [key, 5, expect.any(String)]) },
    failing: { error: { errorName: 'DIVISION_BY_ZERO' } },
    canceled: { error: { errorName: 'USER_CANCELED' } },
    large: { state: 'FINISHED', data: { length: 5 } },
    measured: { state: 'FINISHED', data: 1 },
    showTables: { state: 'FINISHED' },
    engine: { data: [[2, true]] },
    engineFailing: { error: { errorName: 'DIVISION_BY_ZERO' } },
    execute: { data: [['ALGERIA'], ['ARGENTINA']] },
    literals: { data: [[1, 'x', '2020-01-01', null]] },
    secret: { data: [['password=hunter2']] },
    explain: { state: 'FINISHED' },
    wrong: { error: { errorName: 'COLUMN_NOT_FOUND' } },
    setSession: { headers: { 'x-trino-set-session': 'query_max_run_time=17m' } },
    prepare: { headers: { 'x-trino-added-prepare': expect.stringMatching(/^q=SELECT/) } },
    deallocate: { headers: { 'x-trino-deallocated-prepare': 'p' } },
    use: { headers: { 'x-trino-set-catalog': 'tpch', 'x-trino-set-schema': 'sf1' } },
    startTransaction: { headers: { 'x-trino-started-transaction-id': 'its own' } },
    commit: { headers: { 'x-trino-clear-transaction-id': 'true' } },
  })
})

interface Round {
  readonly at: readonly [QueryEventType, ...QueryEventType[]]
  /** Posted before appends are blocked, and not followed: they come to rest, and continue when a client follows. */
  readonly waiting: readonly Name[]
  /** Posted after appends are blocked. */
  readonly opened: readonly Name[]
}

/** Follows the statements through the death of the coordinator. */
async function throughDeath(open: ReadonlyMap<Name, RawAnswer>): Promise<ReadonlyMap<Name, unknown>> {
  const endings = Promise.all([...open].map(async ([name, first]) => [name, await outcome(name, first)] as const))
  endings.catch(() => {})
  server.kill()
  await server.appends.letThrough()
  return new Map(await endings)
}

async function openAll(some: readonly Name[]): Promise<Map<Name, RawAnswer>> {
  return new Map(await Promise.all(some.map(async (name) => [name, await submit(name)] as const)))
}

/** Waits until the query has no append under way. */
async function atRest(name: Name, id: string): Promise<void> {
  const { sql }: Statement = statements[name]
  const state = sql === UNREAD ? 'FINISHING' : 'STARTING'
  await waitUntil(`${name} is ${state}`, async () => {
    const info = JSON.parse((await raw(`${server.url}/v1/query/${id}`)).text) as { readonly state: string }
    return info.state === state
  })
}

function expectUndisturbed(endings: ReadonlyMap<Name, unknown>): void {
  expect(Object.fromEntries(endings)).toEqual(
    Object.fromEntries([...endings.keys()].map((name) => [name, undisturbed.get(name)])),
  )
}

const RESTARTED = { errorName: 'COORDINATOR_RESTARTED' }

const queued = [
  { type: 'QueryAdmitted', opened: names },
  { type: 'QueryPlanned', opened: names },
  // For the other statements the tasks are in the append of the plan, or in the rounds below.
  { type: 'TaskFinished', opened: ['engine', 'engineFailing', 'showTables'] },
] as const satisfies readonly { readonly type: QueryEventType; readonly opened: readonly Name[] }[]

describe('Queries that wait for a slot', () => {
  it.each(queued)(
    'end as in an undisturbed run if the coordinator is killed before $type',
    { timeout: 240_000 },
    async ({ type, opened }) => {
      const slots = await takeSlots()
      const open = await openAll(opened)
      expect([...open.values()].map((first) => first.json.stats.state)).toEqual(opened.map(() => 'QUEUED'))
      // All slots become free together, so that all statements continue together. A statement that continues early must not
      // get past the append either.
      await server.appends.block('QueryFailed', type)
      slots.giveFree()
      await server.appends.reached()
      await sleep(200)
      await server.appends.block(type)
      server.signalWorker('SIGCONT')
      await server.appends.reached()
      const ending = throughDeath(open)
      await slots.ended()
      const endings = new Map(await ending)
      // It is unknown how far these two came: a measurement is not repeated, and secrets are not kept.
      for (const name of ['measured', 'secret'] as const) {
        if (!endings.has(name)) continue
        const restarted = expect.objectContaining({ error: expect.objectContaining(RESTARTED) }) as unknown
        expect([undisturbed.get(name), restarted]).toContainEqual(endings.get(name))
        endings.delete(name)
      }
      expectUndisturbed(endings)
    },
  )
})

const rounds: readonly Round[] = [
  {
    at: ['TaskFinished', 'QueryFinished', 'QueryFailed'],
    waiting: [...SESSION, 'canceled', 'large'],
    opened: ['worker'],
  },
  { at: ['TaskFailed'], waiting: ['canceled'], opened: ['failing'] },
  { at: ['QueryFailed'], waiting: [], opened: ['failing'] },
]

it.each(rounds)(
  '$waiting $opened end as in an undisturbed run if the coordinator is killed before $at',
  { timeout: 240_000 },
  async ({ at, waiting, opened }) => {
    const open = await openAll(waiting)
    await Promise.all([...open].map(([name, first]) => atRest(name, first.json.id)))
    await server.appends.block(...at)
    for (const [name, first] of await openAll(opened)) open.set(name, first)
    await server.appends.reached()
    expectUndisturbed(await throughDeath(open))
  },
)

it(
  'EXPLAIN ANALYZE fails with COORDINATOR_RESTARTED if the coordinator is killed before TaskFinished',
  { timeout: 240_000 },
  async () => {
    await server.appends.block('TaskFinished')
    const open = await openAll(['measured'])
    await server.appends.reached()
    expect((await throughDeath(open)).get('measured')).toMatchObject({ error: RESTARTED })
  },
)
