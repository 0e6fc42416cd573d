import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RecordedStatement } from '../../src/replay/recorded-statement.ts'
import { comparePlans } from '../../src/replay/compare-plans.ts'
import { DigestComparison } from '../../src/replay/digest-comparison.ts'
import type { RecordedDigest } from '../../src/coordinator/query/stream/events.ts'
import { replayStatement } from '../../src/replay/replay-statement.ts'
import type { ReplayAnswer, ReplayServer } from '../../src/replay/replay-server.ts'
import { openScratch, type ScratchResults } from '../../src/replay/scratch-results.ts'
import { sampleData } from '../support/query-events.ts'
import { temporaryFolder } from '../support/quipu-process.ts'

let folder: ReturnType<typeof temporaryFolder>
let scratch: ScratchResults
beforeAll(async () => {
  folder = temporaryFolder()
  scratch = await openScratch(folder.path)
})
afterAll(() => {
  scratch.close()
  folder.remove()
})

const statement = (sql: string): RecordedStatement => ({
  queryId: 'recorded',
  createdAt: '2026-01-01T00:00:00.000Z',
  sql,
  session: sampleData.QueryCreated.session,
  ordered: false,
  columns: [{ name: 'a', type: 'bigint' }],
  outline: undefined,
  snapshots: new Map(),
  fingerprint: undefined,
})

interface Said {
  readonly rows?: string
  readonly error?: string
  /** The snapshot of `table`. */
  readonly snapshot?: string
  /** @default c.s.t */
  readonly table?: string
  /** The names of the columns, of type bigint. @default a */
  readonly columns?: readonly string[]
  /** The sum, then optionally a dash and the chain. */
  readonly digest?: string
}

function reported(digest: string | undefined, key = 'k'): RecordedDigest | undefined {
  const [sum = '', chain] = digest?.split('-') ?? []
  return digest === undefined ? undefined : { version: 'sip24-1', key, sum, rows: 1, ...(chain && { chain }) }
}

/** A server that gives these answers in this order. It repeats the last answer for all later statements. */
function serverOf(...answers: readonly Said[]): ReplayServer & { readonly asked: string[] } {
  const asked: string[] = []
  const said = new Map<string, Said>()
  return {
    asked,
    async *run(sql): AsyncGenerator<ReplayAnswer> {
      const queryId = `q${asked.length}`
      const answer = answers[Math.min(asked.length, answers.length - 1)]!
      asked.push(sql)
      said.set(queryId, answer)
      const { rows = '[]', error, columns = ['a'] } = answer
      yield {
        queryId,
        text: `{"data":${rows}}`,
        columns: error === undefined ? columns.map((name) => ({ name, type: 'bigint' })) : undefined,
        hasRows: rows !== '[]',
        error: error === undefined ? undefined : { name: error, message: 'no' },
      }
    },
    snapshots: (queryId) => {
      const { snapshot, table = 'c.s.t' } = said.get(queryId)!
      return Promise.resolve(new Map(snapshot === undefined ? [] : [[table, snapshot]]))
    },
    digest: (queryId) => Promise.resolve(reported(said.get(queryId)!.digest)),
  }
}

async function verdictOf(here: ReplayServer, there: ReplayServer, sql = 'SELECT a FROM t') {
  const { verdict } = await replayStatement(statement(sql), {
    here,
    there,
    scratch,
    signal: new AbortController().signal,
    catalogs: new Map(),
    repeat: 0,
  })
  const left = await scratch.connection.runAndReadAll('SELECT count(*) FROM duckdb_tables()')
  expect(Number(left.getRowsJS()[0]![0])).toBe(0)
  return verdict
}

describe('The verdict of a replayed statement', () => {
  it('is SAME for equal rows, after one run on each server', async () => {
    const [here, there] = [serverOf({ rows: '[[1]]' }), serverOf({ rows: '[[1]]' })]
    expect(await verdictOf(here, there)).toEqual({ verdict: 'SAME' })
    expect([here.asked.length, there.asked.length]).toEqual([1, 1])
  })

  it('is DIFFERENT if the baseline repeats its answer', async () => {
    expect(await verdictOf(serverOf({ rows: '[[1]]', snapshot: 'v1' }), serverOf({ rows: '[[2]]' }))).toMatchObject({
      verdict: 'DIFFERENT',
    })
  })

  it('is DATA_MOVED if the baseline then answers otherwise from another snapshot', async () => {
    const here = serverOf({ rows: '[[1]]', snapshot: 'v1' }, { rows: '[[2]]', snapshot: 'v2' })
    expect(await verdictOf(here, serverOf({ rows: '[[2]]' }))).toMatchObject({
      verdict: 'DATA_MOVED',
      tables: ['c.s.t'],
    })
  })

  it.each([
    ['from the same snapshot', 'v1'],
    ['from an unknown snapshot', undefined],
  ])('is NON_DETERMINISTIC if the baseline then answers otherwise %s', async (_, snapshot) => {
    const of = snapshot === undefined ? {} : { snapshot }
    const here = serverOf({ rows: '[[1]]', ...of }, { rows: '[[2]]', ...of })
    expect(await verdictOf(here, serverOf({ rows: '[[2]]' }))).toMatchObject({
      verdict: 'NON_DETERMINISTIC',
      chance: { kind: 'repeated' },
    })
  })

  it('names a tie if rows tie at the border of a LIMIT, and is DIFFERENT if none tie', async () => {
    const sql = 'SELECT a FROM t ORDER BY b LIMIT 1'
    const tie = serverOf({ rows: '[[1]]' }, { rows: '[[1]]' }, { rows: '[[2]]' })
    expect(await verdictOf(tie, serverOf({ rows: '[[2]]' }), sql)).toMatchObject({ chance: { kind: 'tie' } })
    expect(tie.asked[2]).toContain('WITH TIES')
    const sharp = serverOf({ rows: '[[1]]' }, { rows: '[[1]]' }, { rows: '[[1]]' })
    expect(await verdictOf(sharp, serverOf({ rows: '[[2]]' }), sql)).toMatchObject({ verdict: 'DIFFERENT' })
    const unasked = serverOf({ rows: '[[1]]' }, { rows: '[[1]]' }, { error: 'SYNTAX_ERROR' })
    expect(await verdictOf(unasked, serverOf({ rows: '[[2]]' }), sql)).toMatchObject({ verdict: 'DIFFERENT' })
  })

  it('says which server failed: here, there or both', async () => {
    const [well, failed] = [serverOf({ rows: '[[1]]' }), serverOf({ error: 'DIVISION_BY_ZERO' })]
    const error = { name: 'DIVISION_BY_ZERO', message: 'no' }
    expect(await verdictOf(well, failed)).toEqual({ verdict: 'FAILED_THERE', there: error })
    expect(await verdictOf(failed, well)).toEqual({ verdict: 'FAILED_HERE', here: error })
    expect(await verdictOf(failed, failed)).toEqual({ verdict: 'FAILED_BOTH', here: error, there: error })
  })

  it('is absent if a server cannot be reached, and the scratch database then holds no tables', async () => {
    const away: ReplayServer = {
      // eslint-disable-next-line require-yield
      async *run() {
        throw new Error('Cannot reach it')
      },
      snapshots: () => Promise.resolve(new Map()),
      digest: () => Promise.resolve(undefined),
    }
    await expect(verdictOf(serverOf({ rows: '[[1]]' }), away)).rejects.toThrow('Cannot reach it')
    await expect(verdictOf(away, away)).rejects.toThrow('Cannot reach it')
    expect(await verdictOf(serverOf({ rows: '[[1]]' }), serverOf({ rows: '[[1]]' }))).toEqual({ verdict: 'SAME' })
  })
})

describe('Digests of a replayed statement', () => {
  const replayed = async (
    recorded: string | undefined,
    there: ReplayServer,
    more: Partial<RecordedStatement> = {},
    comparison = new DigestComparison(() => Promise.resolve(reported(recorded))),
  ) => {
    const here = serverOf({ rows: '[[1]]' })
    const { verdict, byDigest } = await replayStatement(
      { ...statement('SELECT a FROM t'), ...more },
      {
        here,
        there,
        scratch,
        signal: new AbortController().signal,
        catalogs: new Map(),
        repeat: 0,
        digests: comparison,
      },
    )
    return { ...verdict, byDigest, here: here.asked.length }
  }

  it('replace the run on the baseline if they are equal to the recorded digests', async () => {
    const there = serverOf({ rows: '[[1]]', digest: '1-2' })
    expect(await replayed('1-2', there, { ordered: true })).toEqual({ verdict: 'SAME', byDigest: true, here: 0 })
    expect(await replayed('1', there)).toEqual({ verdict: 'SAME', byDigest: true, here: 0 })
    expect(there.asked).toHaveLength(2)
    expect(await replayed('1-3', there, { ordered: true })).toMatchObject({ verdict: 'SAME_OTHER_ORDER', here: 0 })
  })

  it.each<[string, string | undefined, Said, Partial<RecordedStatement>]>([
    ['the digests differ', '2', { rows: '[[1]]', digest: '1' }, {}],
    ['the columns differ', '1', { rows: '[[1]]', digest: '1' }, { columns: [{ name: 'b', type: 'bigint' }] }],
    ['the record has no chain for an ordered result', '1', { rows: '[[1]]', digest: '1-2' }, { ordered: true }],
    ['the server reports no digest', '1', { rows: '[[1]]' }, {}],
    ['the record has no digest', undefined, { rows: '[[1]]', digest: '1' }, {}],
  ])('leave the comparison to the rows if %s', async (_, recorded, said, more) => {
    const found = await replayed(recorded, serverOf(said), more)
    expect(found).toEqual({ verdict: 'SAME', byDigest: undefined, here: 1 })
  })

  it('are no longer requested after some that were made with another key', async () => {
    const there = serverOf({ rows: '[[1]]', digest: '1' })
    const comparison = new DigestComparison(() => Promise.resolve(reported('1', 'other')))
    for (let i = 0; i < 5; i++) expect(await replayed('1', there, {}, comparison)).toMatchObject({ here: 1 })
    expect(there.asked).toHaveLength(5 + 3)
  })

  it('are requested again after many statements, because a server may get the same key later', async () => {
    const there = serverOf({ rows: '[[1]]', digest: '1' })
    let key = 'other'
    const comparison = new DigestComparison(() => Promise.resolve(reported('1', key)))
    for (let i = 0; i < 3; i++) await replayed('1', there, {}, comparison)
    key = 'k'
    const found: unknown[] = []
    for (let i = 0; i < 60; i++) found.push((await replayed('1', there, {}, comparison)).byDigest)
    expect(found.lastIndexOf(undefined)).toBe(48)
  })

  it('do not hide that the statement fails on the other server', async () => {
    const there = serverOf({ error: 'DIVISION_BY_ZERO' })
    expect(await replayed('1', there)).toMatchObject({ verdict: 'FAILED_THERE', here: 1 })
  })
})

describe('A statement of a live baseline', () => {
  const mirrored = async (
    { sql = 'SELECT a FROM t', recorded = '1', snapshots = {}, mayRun = false, catalogs = new Map<string, string>() },
    there: ReturnType<typeof serverOf>,
    here = serverOf({ rows: '[[1]]', snapshot: 'v1' }),
  ) => {
    const { verdict, thereQueryId } = await replayStatement(
      { ...statement(sql), snapshots: new Map(Object.entries(snapshots)) },
      {
        here,
        there,
        scratch,
        signal: new AbortController().signal,
        catalogs,
        repeat: 0,
        digests: new DigestComparison(() => Promise.resolve(reported(recorded))),
        live: { mayRun: () => mayRun },
      },
    )
    return { ...verdict, thereQueryId, runs: [here.asked.length, there.asked.length] }
  }

  it('is UNCONFIRMED if digests differ and the baseline may not run', async () => {
    expect(await mirrored({}, serverOf({ rows: '[[2]]', digest: '2' }))).toEqual({
      verdict: 'UNCONFIRMED',
      difference: { kind: 'digest', here: 1, there: 1 },
      thereQueryId: 'q0',
      runs: [0, 1],
    })
    expect(await mirrored({}, serverOf({ error: 'DIVISION_BY_ZERO' }))).toMatchObject({
      verdict: 'UNCONFIRMED',
      there: { name: 'DIVISION_BY_ZERO' },
      runs: [0, 1],
    })
    expect(await mirrored({}, serverOf({ rows: '[[2]]' }))).toMatchObject({ verdict: 'UNCONFIRMED', runs: [0, 1] })
  })

  it('is NON_DETERMINISTIC without a run of the baseline if its text says so', async () => {
    const there = serverOf({ rows: '[[2]]', digest: '2' })
    expect(await mirrored({ sql: 'SELECT random()', mayRun: true }, there)).toMatchObject({
      verdict: 'NON_DETERMINISTIC',
      chance: { kind: 'functions', names: ['random'] },
      runs: [0, 1],
    })
  })

  it('is NON_DETERMINISTIC without a run of the baseline if a LIMIT has no order', async () => {
    const there = serverOf({ rows: '[[2]]', digest: '2' })
    for (const sql of ['SELECT a FROM t LIMIT 1', 'SELECT * FROM (SELECT a FROM t FETCH FIRST ROW ONLY) ORDER BY a'])
      expect(await mirrored({ sql, mayRun: true }, there)).toMatchObject({
        verdict: 'NON_DETERMINISTIC',
        chance: { kind: 'limit' },
      })
    for (const sql of ['SELECT a FROM t LIMIT ALL', 'SELECT a FROM t ORDER BY a LIMIT 1'])
      expect(await mirrored({ sql, mayRun: true }, there)).toMatchObject({ verdict: 'DIFFERENT' })
  })

  it('is DATA_MOVED if the results differ and the tables changed since the record', async () => {
    const there = serverOf({ rows: '[[2]]', digest: '2' })
    const moved = await mirrored({ snapshots: { 'c.s.t': 'v0' }, mayRun: true }, there)
    expect(moved).toMatchObject({ verdict: 'DATA_MOVED', tables: ['c.s.t'] })
    const unknown = await mirrored({ snapshots: { 'c.s.other': 'v0' }, mayRun: true }, there)
    expect(unknown).toMatchObject({ verdict: 'DIFFERENT' })
    const still = await mirrored({ snapshots: { 'c.s.t': 'v1' }, mayRun: true }, there)
    expect(still).toMatchObject({ verdict: 'DIFFERENT' })
  })

  it('is DIFFERENT if both servers read the same snapshot, although the tables changed since the record', async () => {
    const there = serverOf({ rows: '[[2]]', digest: '2', snapshot: 'v1' })
    expect(await mirrored({ snapshots: { 'c.s.t': 'v0' }, mayRun: true }, there)).toMatchObject({
      verdict: 'DIFFERENT',
    })
    const renamed = serverOf({ rows: '[[2]]', digest: '2', snapshot: 'v1', table: 'other.s.t' })
    const asOther = { snapshots: { 'c.s.t': 'v0' }, mayRun: true, catalogs: new Map([['c', 'other']]) }
    expect(await mirrored(asOther, renamed)).toMatchObject({ verdict: 'DIFFERENT' })
  })

  it('is DATA_MOVED if columns differ and the tables changed since the record', async () => {
    const there = serverOf({ rows: '[[2]]', digest: '2', columns: ['a', 'b'] })
    const moved = await mirrored({ snapshots: { 'c.s.t': 'v0' }, mayRun: true }, there)
    expect(moved).toMatchObject({ verdict: 'DATA_MOVED', difference: { kind: 'columns' } })
    const still = await mirrored({ snapshots: { 'c.s.t': 'v1' }, mayRun: true }, there)
    expect(still).toMatchObject({ verdict: 'DIFFERENT', difference: { kind: 'columns' } })
  })

  it('is SAME if both servers now give the same rows', async () => {
    const there = serverOf({ rows: '[[1]]', digest: '2' })
    expect(await mirrored({ mayRun: true }, there)).toMatchObject({ verdict: 'SAME', runs: [1, 2] })
  })
})

describe('The comparison of plans', () => {
  const outline = {
    name: 'Output',
    details: { columnNames: '[a]' },
    layout: ['a:bigint'],
    children: [{ name: 'TableScan', details: { table: 't' }, layout: ['a:bigint'], children: [] }],
  }
  const node = (name: string, descriptor: object, ...children: object[]): object => ({
    id: '0',
    name,
    descriptor,
    outputs: [{ symbol: 'a', type: 'bigint' }],
    estimates: [{ outputRowCount: 7 }],
    children,
  })
  const compared = async (
    plan: object,
    planned = { ...statement('SELECT a FROM t'), outline },
    catalogs: ReadonlyMap<string, string> = new Map(),
  ) => {
    const there = serverOf({ rows: JSON.stringify([[JSON.stringify(plan)]]) })
    const { verdict } = await comparePlans(planned, { there, catalogs, signal: new AbortController().signal })
    return { verdict, asked: there.asked }
  }

  it('asks with EXPLAIN, and ignores estimates', async () => {
    const { verdict, asked } = await compared(node('Output', { columnNames: '[a]' }, node('TableScan', { table: 't' })))
    expect(verdict).toEqual({ verdict: 'SAME' })
    expect(asked[0]).toMatch(/^EXPLAIN \(TYPE LOGICAL, FORMAT JSON\)\s+SELECT a\s+FROM\s+t/)
  })

  it('finds a difference in the nodes', async () => {
    const { verdict } = await compared(
      node('Output', { columnNames: '[a]' }, node('Filter', {}, node('TableScan', { table: 't' }))),
    )
    expect(verdict).toMatchObject({ verdict: 'DIFFERENT', difference: { kind: 'plan' } })
    expect(verdict).toHaveProperty('difference.there.1', '  Filter [a:bigint]')
  })

  it('maps the names of catalogs to those of the other server', async () => {
    const [input] = outline.children
    const of = { ...statement('SELECT a FROM one.s.t'), outline: { ...input!, details: { table: 'one:s:t' } } }
    const [one, two] = ['one', 'two'].map((catalog) => node('TableScan', { table: `${catalog}:s:t` }))
    const called = new Map([['one', 'two']])
    expect((await compared(two!, of as never, called)).verdict).toEqual({ verdict: 'SAME' })
    expect((await compared(one!, of as never, called)).verdict).toMatchObject({ verdict: 'DIFFERENT' })
  })

  it('skips plans of another format and statements without a recorded plan', async () => {
    expect((await compared({ plan: 'of a Trino' })).verdict).toEqual({ verdict: 'SKIPPED', reason: 'noPlan' })
    const unknown = await compared(node('Output', {}), statement('SELECT a FROM t') as never)
    expect(unknown).toEqual({ verdict: { verdict: 'SKIPPED', reason: 'noPlan' }, asked: [] })
  })
})
