import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Event } from '../../src/events/event-log.ts'
import type { DeadLetter } from '../../src/events/projection.ts'
import { migrate, readMigrations } from '../../src/events/postgres/migrate.ts'
import type { ProjectionRunner } from '../../src/events/projection-runner.ts'
import { rebuildReadModels } from '../../src/readmodels/rebuild.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { createDatabase } from '../support/postgres.ts'
import { appendLives, queryLife, testQueryId, toLogEvents } from '../support/query-life.ts'
import { openReadModelBed, type ReadModelBed } from '../support/read-models.ts'

let bed: ReadModelBed

beforeEach(async () => {
  bed = await openReadModelBed()
})
afterEach(() => bed.close())

/** Makes an incompressible text, which takes its full size in an index row. */
function randomText(characters: number): string {
  return Array.from(randomBytes(characters * 2).subarray(0, characters), (_, index) =>
    String.fromCodePoint(0x4e00 + (randomBytes(2).readUInt16LE(0) % 0x5000) + (index % 2)),
  ).join('')
}

/** Texts that a client may choose. */
const HOSTILE: readonly (readonly [what: string, text: string])[] = [
  ['1,000 characters of three bytes', randomText(1000)],
  ['a hundred kilobytes', randomText(35_000)],
  [
    'a character of each plane',
    Array.from({ length: 17 }, (_, plane) => String.fromCodePoint(plane * 0x10000 + 0xfffd)).join(''),
  ],
  ['noncharacters', '\ufffe\uffff\u{1ffff}\u{10ffff}'],
  ['NUL', 'a\0b'],
  ['lone surrogates', '\ud800 \udc00 \udbff\udbff'],
  ['characters that JSON escapes', '\\u0000 \\ "\u2028\u2029\b\f\n\r\t'],
  ['quotes of SQL', `'; drop table queries; -- $1 \${x} $$ E'\\'`],
  ['ends of lines', 'a\r\nb\tc\u0085d'],
]

/** Makes the events of a query in which every text that a client chooses is this one. */
function lifeOf(text: string, queryId: string): Event[] {
  return toLogEvents(queryLife(queryId, { end: 'failed', sql: text, user: text, source: text })).map((event) => {
    const data = structuredClone(event.data) as Record<string, unknown>
    if (event.type === 'QueryCreated') {
      data['resourceGroup'] = text
      Object.assign(data['session'] as object, {
        principal: text,
        originalUser: text,
        catalog: text,
        schema: text,
        path: text,
        timeZone: text,
        language: text,
        clientInfo: text,
        traceToken: text,
        userAgent: text,
        groups: [text],
        roles: { [text]: text },
        properties: { [text]: text },
        preparedStatements: { [text]: text },
        capabilities: [text],
        clientTags: [text],
        resourceEstimates: { [text]: text },
        remoteUserAddress: text,
      })
    }
    if (event.type === 'QueryPlanned') {
      data['columns'] = [{ name: text, type: text, typeSignature: {}, lineage: [text] }]
      data['tables'] = ['READ', 'WRITE'].map((mode) => ({
        catalog: text,
        schema: text,
        table: text,
        columns: [text],
        mode,
      }))
      data['warnings'] = [{ warningCode: { code: 1, name: text }, message: text }]
      data['updateType'] = text
    }
    if (event.type === 'QueryFailed') Object.assign(data['failure'] as object, { message: text })
    return { ...event, data }
  })
}

async function started(letters: DeadLetter[] = []): Promise<ProjectionRunner> {
  return bed.startRunner({
    onTrouble: (trouble) => {
      if (trouble.kind === 'dead_letter') letters.push(trouble.letter)
    },
  })
}

describe('A text that a client chooses', () => {
  it.each(HOSTILE)('can be in every field of a query: %s', async (_what, text) => {
    const queryId = testQueryId(1)
    await bed.log.append(queryId, 0, lifeOf(text, queryId))
    await appendLives(bed.log, [{ queryId: testQueryId(2), events: queryLife(testQueryId(2)) }])
    const runner = await started()
    expect(await runner.barrier(60_000)).toBe(true)
    expect(runner.deadLetters).toBe(0)
    // A rebuild must accept the texts too: no index of its tables may be too small for them.
    const rebuilt = await rebuildReadModels({ log: bed.log, database: bed.config, clock: systemClock })
    expect(rebuilt.deadLetters).toBe(0)
    expect(await bed.query('select query_id, state from queries order by 1')).toEqual([
      { query_id: queryId, state: 'FAILED' },
      { query_id: testQueryId(2), state: 'FINISHED' },
    ])
    expect(await bed.query('select count(*) from table_access where query_id = $1', [queryId])).toEqual([
      { count: '2' },
    ])
  })

  it('is never completely in an index if its length is not limited', async () => {
    // Texts in indexes with limited length: the log limits them (a stream name has 255 characters), or the coordinator
    // makes them.
    const bounded = new Set(
      ['stream', 'query_id', 'task_id', 'node_id', 'state', 'kind', 'name', 'projection'].concat([
        // Columns of the log itself.
        'id',
        'log',
        'log_id',
        'block',
        'path',
        // The folder of a period in the archive of read models.
        'folder',
        // A hash of the address of a login.
        'source',
        // A hash of the statement.
        'fingerprint',
      ]),
    )
    // `limited`: the index only has rows whose text in this column has at most 100 or 200 characters.
    const columns = await bed.query<{ index: string; column: string; limited: boolean }>(
      `select i.relname as index, a.attname as column,
         coalesce(pg_get_expr(x.indpred, x.indrelid) ~ ('COALESCE\\(length\\(' || a.attname || '\\), 0\\) <= (100|200)\\M'), false) as limited
       from pg_index x
       join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
       join pg_namespace n on n.oid = t.relnamespace
       join pg_attribute a on a.attrelid = t.oid and a.attnum = any(x.indkey)
       where n.nspname in ('m', 'quipu_log') and a.atttypid in ('text'::regtype, 'jsonb'::regtype, 'bytea'::regtype)
         and t.relkind in ('r', 'p') and not t.relispartition
         -- These indexes contain hashes of 4 bytes.
         and not exists (select from pg_opclass o where o.oid = any(x.indclass) and o.opcname = 'jsonb_path_ops')`,
    )
    expect(columns.length).toBeGreaterThan(10)
    expect(columns.filter(({ column, limited }) => !limited && !bounded.has(column))).toEqual([])
    expect(columns.filter(({ limited }) => limited).length).toBeGreaterThan(4)
    const expressions = await bed.query<{ definition: string }>(
      `select pg_get_indexdef(indexrelid) as definition from pg_index where indexprs is not null
         and indrelid::regclass::text not like 'pg_%'`,
    )
    // A trigram index contains groups of three letters, which are small for any length of the text. COALESCE is of
    // numbers. A hash has 8 bytes.
    for (const { definition } of expressions)
      expect(definition).toMatch(
        /"left"\(.+, \d{1,3}\)|"left"\(sql_text, 4096\) \w+\.gin_trgm_ops|COALESCE\(\w+, \(0\)::(?:double precision|bigint)\)|jsonb_hash_extended\(\w+, /,
      )
  })
})

describe('An event that the database always refuses', () => {
  /** Checks that the other events of the batch are applied, and that the projection does not retry for ever. */
  async function buries(life: readonly Event[], sqlstate: string): Promise<DeadLetter[]> {
    const bad = testQueryId(7)
    const others = Array.from({ length: 12 }, (_, index) => testQueryId(20 + index))
    for (const queryId of others.slice(0, 6)) await appendLives(bed.log, [{ queryId, events: queryLife(queryId) }])
    await bed.log.append(bad, 0, life)
    for (const queryId of others.slice(6)) await appendLives(bed.log, [{ queryId, events: queryLife(queryId) }])
    const letters: DeadLetter[] = []
    const runner = await started(letters)
    expect(await runner.barrier(60_000)).toBe(true)
    expect(runner.condition).toEqual({ kind: 'following' })
    expect(await bed.query(`select sqlstate, stream from dead_letters where kind = 'failed'`)).toEqual([
      { sqlstate, stream: bad },
    ])
    expect(await bed.query(`select count(*) from queries where state = 'FINISHED'`)).toEqual([{ count: '12' }])
    expect(await bed.query('select count(*) from query_events where stream = $1', [bad])).toEqual([
      { count: String(life.length) },
    ])
    return letters
  }

  it('becomes a dead letter: a row that is too large for an index, 54000', async () => {
    await bed.query('create index too_small on queries (resource_group)')
    const letters = await buries(lifeOf(randomText(1000), testQueryId(7)), '54000')
    expect(letters[0]).toMatchObject({ kind: 'failed', event: { sequence: 1 } })
  })

  it('becomes a dead letter: an existing row that can no longer be written', async () => {
    const life = lifeOf(randomText(1000), testQueryId(7))
    await bed.log.append(testQueryId(7), 0, life.slice(0, 1))
    const runner = await started()
    expect(await runner.barrier(60_000)).toBe(true)
    // As after an update of Postgres or with a manual index: even the existing row cannot be written again.
    await bed.query(
      `create function refuse() returns trigger language plpgsql as
       $$ begin if length(new.user_name) > 500 then raise exception using errcode = '54000'; end if; return new; end $$`,
    )
    await bed.query('create trigger refuse before insert or update on queries for each row execute function refuse()')
    await bed.log.append(testQueryId(7), 1, life.slice(1))
    await appendLives(bed.log, [{ queryId: testQueryId(8), events: queryLife(testQueryId(8)) }])
    expect(await runner.barrier(60_000)).toBe(true)
    expect(await bed.query(`select sequence from dead_letters where kind = 'failed'`)).toEqual([{ sequence: '2' }])
    expect(await bed.query('select count(*) from query_events where stream = $1', [testQueryId(7)])).toEqual([
      { count: String(life.length) },
    ])
  })

  it('becomes a dead letter: nesting that is too deep for the server, 54001', async () => {
    let deep: unknown = 'deep'
    for (let level = 0; level < 3000; level++) deep = [deep]
    const node = { nodeId: 'w', url: 'http://w', version: '1', role: 'worker' }
    const lastFailure = { type: 't', message: 'm', stack: [], suppressed: [deep] }
    const time = new Date().toISOString()
    const fails = (failure: object): Event => ({
      type: 'NodeFailed',
      v: 1,
      time,
      data: { ...node, reason: 'no_answer', lastFailure: failure },
    })
    await bed.query(
      `do $$ begin execute format('alter database %I set max_stack_depth = ''100kB''', current_database()); end $$`,
    )
    await bed.log.append('node/w', 0, [fails(lastFailure)])
    await appendLives(bed.log, [{ queryId: testQueryId(1), events: queryLife(testQueryId(1)) }])
    const runner = await started()
    expect(await runner.barrier(60_000)).toBe(true)
    expect(await bed.query('select sqlstate, stream from dead_letters')).toEqual([
      { sqlstate: '54001', stream: 'node/w' },
    ])
    expect(await bed.query('select state from queries')).toEqual([{ state: 'FINISHED' }])
  })
})

describe('A temporary error of the database', () => {
  async function refuseWith(errcode: string, when = 'true'): Promise<() => Promise<void>> {
    await bed.query(
      `create or replace function refuse() returns trigger language plpgsql as
       $$ begin if ${when} then raise exception using errcode = '${errcode}'; end if; return null; end $$`,
    )
    await bed.query(
      `create trigger refuse after insert on query_events referencing new table as added
       for each statement execute function refuse()`,
    )
    return async () => void (await bed.query('drop trigger refuse on query_events'))
  }

  it.each(['53100', '53200', '57014', '40001', '42501'])(
    'makes the projection retry, and the condition and the lag report it: SQLSTATE %s',
    async (errcode) => {
      const accept = await refuseWith(errcode)
      const runner = await started()
      const queryId = testQueryId(1)
      await appendLives(bed.log, [{ queryId, events: queryLife(queryId, { startMillis: Date.now() - 3_600_000 }) }])
      await expect
        .poll(() => runner.condition, { timeout: 60_000 })
        .toMatchObject({
          kind: 'retrying',
          reason: `SQLSTATE ${errcode}`,
        })
      // The lag is right at any moment, also between two attempts.
      for (let look = 0; look < 20; look++) {
        const { events, oldestMillis } = await runner.lag()
        expect(events).toBe((await bed.log.tip()).at[0]!.state.count)
        expect(oldestMillis).toBeGreaterThan(0)
      }
      expect(runner.deadLetters).toBe(0)
      await accept()
      expect(await runner.barrier(60_000)).toBe(true)
      await expect.poll(() => runner.condition).toEqual({ kind: 'following' })
      expect(await runner.lag()).toEqual({ events: 0, oldestMillis: 0 })
      expect(await bed.query('select state from queries')).toEqual([{ state: 'FINISHED' }])
    },
  )

  it('makes the projection use smaller batches if it is a timeout of a large batch', async () => {
    await refuseWith('57014', '(select count(*) from added) > 20')
    const ids = Array.from({ length: 30 }, (_, index) => testQueryId(index))
    await appendLives(
      bed.log,
      ids.map((queryId) => ({ queryId, events: queryLife(queryId) })),
    )
    const runner = await started()
    expect(await runner.barrier(120_000)).toBe(true)
    expect(await bed.query('select count(*) from queries')).toEqual([{ count: '30' }])
  })
})

it('The migrations convert table_access with rows of an earlier version', async () => {
  const database = await createDatabase()
  const folder = await mkdtemp(join(tmpdir(), 'quipu-migrations-'))
  const client = new pg.Client(database.url)
  try {
    const all = await readMigrations()
    for (const { number, name, sql } of all) if (number <= 5) await writeFile(join(folder, name), sql)
    await migrate({ connectionString: database.url }, folder)
    await client.connect()
    await client.query(
      `insert into m.table_access select 'q' || i / 2, 'c', 's', 't' || i, 'READ', '[]', 'u', now() from generate_series(0, 5) i`,
    )
    await migrate({ connectionString: database.url })
    const { rows } = await client.query('select query_id, ordinal, table_name from m.table_access order by 1, 2')
    expect(rows.map((row) => Object.values(row).join())).toEqual([
      'q0,0,t0',
      'q0,1,t1',
      'q1,0,t2',
      'q1,1,t3',
      'q2,0,t4',
      'q2,1,t5',
    ])
  } finally {
    await client.end()
    await database.drop()
    await rm(folder, { recursive: true })
  }
})
