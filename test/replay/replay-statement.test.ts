import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RecordedStatement } from '../../src/replay/recorded-statement.ts'
import { replayStatement, type ReplayAnswer, type ReplayServer } from '../../src/replay/replay-statement.ts'
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
})

interface Said {
  readonly rows?: string
  readonly error?: string
  /** Of table `c.s.t`. */
  readonly snapshot?: string
}

/** A server that answers each statement in turn; the last answer is that of all that follow. */
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
      const { rows = '[]', error } = answer
      yield {
        queryId,
        text: `{"data":${rows}}`,
        columns: error === undefined ? [{ name: 'a', type: 'bigint' }] : undefined,
        hasRows: rows !== '[]',
        error: error === undefined ? undefined : { name: error, message: 'no' },
      }
    },
    snapshots: (queryId) => {
      const { snapshot } = said.get(queryId)!
      return Promise.resolve(new Map(snapshot === undefined ? [] : [['c.s.t', snapshot]]))
    },
  }
}

async function verdictOf(here: ReplayServer, there: ReplayServer, sql = 'SELECT a FROM t') {
  const { verdict } = await replayStatement(statement(sql), {
    here,
    there,
    scratch,
    signal: new AbortController().signal,
  })
  const left = await scratch.connection.runAndReadAll('SELECT count(*) FROM duckdb_tables()')
  expect(Number(left.getRowsJS()[0]![0])).toBe(0)
  return verdict
}

describe('what becomes of a statement', () => {
  it('is the same, and asked for once a side', async () => {
    const [here, there] = [serverOf({ rows: '[[1]]' }), serverOf({ rows: '[[1]]' })]
    expect(await verdictOf(here, there)).toEqual({ verdict: 'SAME' })
    expect([here.asked.length, there.asked.length]).toEqual([1, 1])
  })

  it('is different where the baseline stays with its answer', async () => {
    expect(await verdictOf(serverOf({ rows: '[[1]]', snapshot: 'v1' }), serverOf({ rows: '[[2]]' }))).toMatchObject({
      verdict: 'DIFFERENT',
    })
  })

  it('says that data moved where the baseline answers otherwise, of other rows', async () => {
    const here = serverOf({ rows: '[[1]]', snapshot: 'v1' }, { rows: '[[2]]', snapshot: 'v2' })
    expect(await verdictOf(here, serverOf({ rows: '[[2]]' }))).toMatchObject({
      verdict: 'DATA_MOVED',
      tables: ['c.s.t'],
    })
  })

  it.each([
    ['of the same rows', 'v1'],
    ['of rows that nobody knows of', undefined],
  ])('is non-deterministic where the baseline answers otherwise, %s', async (_, snapshot) => {
    const of = snapshot === undefined ? {} : { snapshot }
    const here = serverOf({ rows: '[[1]]', ...of }, { rows: '[[2]]', ...of })
    expect(await verdictOf(here, serverOf({ rows: '[[2]]' }))).toMatchObject({
      verdict: 'NON_DETERMINISTIC',
      chance: { kind: 'repeated' },
    })
  })

  it('is as sharp as the border of its LIMIT', async () => {
    const sql = 'SELECT a FROM t ORDER BY b LIMIT 1'
    const tie = serverOf({ rows: '[[1]]' }, { rows: '[[1]]' }, { rows: '[[2]]' })
    expect(await verdictOf(tie, serverOf({ rows: '[[2]]' }), sql)).toMatchObject({ chance: { kind: 'tie' } })
    expect(tie.asked[2]).toContain('WITH TIES')
    const sharp = serverOf({ rows: '[[1]]' }, { rows: '[[1]]' }, { rows: '[[1]]' })
    expect(await verdictOf(sharp, serverOf({ rows: '[[2]]' }), sql)).toMatchObject({ verdict: 'DIFFERENT' })
    const unasked = serverOf({ rows: '[[1]]' }, { rows: '[[1]]' }, { error: 'SYNTAX_ERROR' })
    expect(await verdictOf(unasked, serverOf({ rows: '[[2]]' }), sql)).toMatchObject({ verdict: 'DIFFERENT' })
  })

  it('tells who failed', async () => {
    const [well, failed] = [serverOf({ rows: '[[1]]' }), serverOf({ error: 'DIVISION_BY_ZERO' })]
    const error = { name: 'DIVISION_BY_ZERO', message: 'no' }
    expect(await verdictOf(well, failed)).toEqual({ verdict: 'FAILED_THERE', there: error })
    expect(await verdictOf(failed, well)).toEqual({ verdict: 'FAILED_HERE', here: error })
    expect(await verdictOf(failed, failed)).toEqual({ verdict: 'FAILED_BOTH', here: error, there: error })
  })

  it('is nothing where a server cannot be reached, and leaves nothing behind', async () => {
    const away: ReplayServer = {
      // eslint-disable-next-line require-yield
      async *run() {
        throw new Error('Cannot reach it')
      },
      snapshots: () => Promise.resolve(new Map()),
    }
    await expect(verdictOf(serverOf({ rows: '[[1]]' }), away)).rejects.toThrow('Cannot reach it')
    await expect(verdictOf(away, away)).rejects.toThrow('Cannot reach it')
    expect(await verdictOf(serverOf({ rows: '[[1]]' }), serverOf({ rows: '[[1]]' }))).toEqual({ verdict: 'SAME' })
  })
})
