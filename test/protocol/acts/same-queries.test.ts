import { afterAll, beforeAll, expect, it } from 'vitest'
import { evolveAct, type KnownAct } from '../../../src/coordinator/acts/act-state.ts'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import type { KnownQuery } from '../../../src/coordinator/query/stream/state.ts'
import { createActRoutes } from '../../../src/protocol/acts/act-routes.ts'
import type { ActInfo, ActPreview } from '../../../src/protocol/acts/act-schemas.ts'
import type { LiveQueryView } from '../../../src/protocol/query/live-queries.ts'
import { createQueryRoutes } from '../../../src/protocol/query/query-routes.ts'
import { allowAll } from '../../../src/security/authorization.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { serve, type HttpApp } from '../../support/http-app.ts'
import { appendLives, queryLife, testQueryId } from '../../support/query-life.ts'
import { openReadModelBed, storedIn, type ReadModelBed } from '../../support/read-models.ts'

/* Lists, totals, previews of acts and acts over more queries than a search for a short text reads. */

const MANY = 20_000
/** Ended long ago; the search for a short text does not reach it. */
const BEYOND = testQueryId(1)
/** Ended long ago, and the last that the search reaches. */
const LAST = testQueryId(2)
/** Ended a minute ago. */
const RECENT = testQueryId(3)
/** In memory: created before the search begins, and now. */
const [OPEN_BEYOND, OPEN] = [testQueryId(4), testQueryId(5)]
const SINCE = '2020-01-01T00:00:01.000Z'

let bed: ReadModelBed
let app: HttpApp
const live = new Map<string, LiveQueryView>()

beforeAll(async () => {
  bed = await openReadModelBed()
  const stored: readonly (readonly [string, number])[] = [
    [BEYOND, Date.parse('2019-01-01T00:00:00Z')],
    [LAST, Date.parse(SINCE)],
    [RECENT, Date.now() - 60_000],
  ]
  await appendLives(
    bed.log,
    stored.map(([queryId, startMillis]) => ({ queryId, events: lifeOf(queryId, startMillis, 'finished') })),
  )
  const runner = await bed.startRunner()
  await runner.barrier(60_000)
  // The log of a bed accepts no times before 2026.
  for (const [queryId, startMillis] of stored) {
    const at = new Date(startMillis).toISOString()
    await bed.query('update queries set created_at = $2, ended_at = $2 where query_id = $1', [queryId, at])
  }
  await addQueries(2, MANY - 1)
  for (const [queryId, startMillis] of [
    [OPEN_BEYOND, Date.parse('2018-01-01T00:00:00Z')],
    [OPEN, Date.now()],
  ] as const) {
    const events = lifeOf(queryId, startMillis, 'open')
    const query = foldQuery(queryId, events) as KnownQuery
    live.set(queryId, { query, sequence: events.length, liveStats: new Map() })
  }
  const read = (text: string, values: readonly unknown[]) => bed.query(text, [...values])
  const deps = {
    live: { get: (id: string) => live.get(id), list: () => [...live.values()] },
    read,
    stored: storedIn(read),
    projection: runner,
    isWriter: () => true,
    identify: () => ({ user: 'root', groups: [] }),
    authorize: allowAll,
    clock: systemClock,
    ownWritesWaitMs: 2000,
  }
  app = await serve(
    createQueryRoutes({ ...deps, end: async () => 'unknown', baseUri: () => '', logId: () => 'log' }),
    createActRoutes({
      ...deps,
      acts: {
        running: 0,
        get: () => undefined,
        list: () => [],
        stopAct: async () => undefined,
        start: async (data) =>
          evolveAct({ kind: 'NONE' }, { type: 'ActStarted', time: new Date().toISOString(), data }) as KnownAct,
      },
      isInternal: () => true,
      key: Buffer.alloc(32),
      mostQueries: 10_000,
      logWaitMs: 10_000,
      stopWaitMs: 1000,
    }),
  )
}, 240_000)
afterAll(async () => {
  await app?.close()
  await bed?.close()
})

function lifeOf(queryId: string, startMillis: number, end: 'open' | 'finished') {
  return queryLife(queryId, { startMillis, end, sql: `SELECT 'zq' -- needle` })
}

/** Adds ended queries without the text, one for each second from a second of 2020 on. */
async function addQueries(second: number, count: number): Promise<void> {
  const columns = (
    await bed.query<{ name: string }>(
      `select column_name as name from information_schema.columns where table_schema = 'm' and table_name = 'queries'
       and column_name not in ('query_id', 'sql_text', 'created_at', 'ended_at')`,
    )
  ).map(({ name }) => name)
  await bed.query(
    `insert into queries (query_id, sql_text, created_at, ended_at, ${columns.join(', ')})
     select to_char(at at time zone 'UTC', 'YYYYMMDD_HH24MISS_') || lpad((n % 100000)::text, 5, '0') || '_aaaaa',
       'SELECT 1', at, at, ${columns.join(', ')}
     from queries, (select n, '2020-01-01T00:00:00Z'::timestamptz + n * interval '1 s' as at
       from generate_series(${second}::int, ${second + count - 1}) n) times where query_id = '${RECENT}'`,
  )
  await bed.query('analyze queries')
}

interface Listed {
  readonly ids: readonly string[]
  readonly since: string | null
  /** Path of the next page. */
  readonly next: string | undefined
}

async function list(path: string): Promise<Listed> {
  const answer = await fetch(app.base + path)
  expect(answer.status).toBe(200)
  const queries = (await answer.json()) as readonly { readonly queryId: string }[]
  return {
    ids: queries.map(({ queryId }) => queryId),
    since: answer.headers.get('x-engine-searched-since'),
    next: /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1],
  }
}

async function totals(filter: Readonly<Record<string, string>>): Promise<readonly [number, string | null]> {
  const answer = await fetch(`${app.base}/v1/query/totals?${new URLSearchParams(filter)}`)
  const { queries } = (await answer.json()) as { readonly queries: number }
  return [queries, answer.headers.get('x-engine-searched-since')]
}

async function post<T>(path: string, body: object): Promise<T> {
  const answer = await fetch(app.base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const text = await answer.text()
  expect(answer.status, text).toBe(200)
  return JSON.parse(text) as T
}

const preview = (act: ActInfo['act'], filter: object) => post<ActPreview>('/v1/act/preview', { act, filter })
const idsOf = ({ queries }: ActPreview) => queries.map(({ queryId }) => queryId)

it.each<
  readonly [name: string, filter: Readonly<Record<string, string>>, ids: readonly string[], since: string | null]
>([
  ['a short text', { q: 'zq' }, [OPEN, RECENT, LAST], SINCE],
  ['a text without letters', { q: '--' }, [OPEN, RECENT, LAST], SINCE],
  ['a text with an index', { q: 'needle' }, [OPEN, RECENT, LAST, BEYOND, OPEN_BEYOND], null],
  ['a short text since a later time', { q: 'zq', since: '2021-01-01T00:00:00Z' }, [OPEN, RECENT], null],
  ['a short text and few other queries', { q: 'zq', until: '2019-06-01T00:00:00Z' }, [BEYOND, OPEN_BEYOND], null],
  ['no filter', {}, [OPEN, RECENT, OPEN_BEYOND], null],
])('Lists, totals, previews and acts have the same queries with %s', async (_name, filter, ids, since) => {
  expect(await list(`/v1/query?${new URLSearchParams(filter)}`)).toMatchObject({ ids, since })
  expect(await totals(filter)).toEqual([ids.length, since])
  const isOpen = (queryId: string): boolean => live.has(queryId)
  const kill = await preview('kill', filter)
  expect(idsOf(kill)).toEqual(ids.filter(isOpen))
  const rerun = await preview('rerun', filter)
  expect(idsOf(rerun)).toEqual(ids.filter((queryId) => !isOpen(queryId)))
  expect([kill.searchedSince ?? null, rerun.searchedSince ?? null]).toEqual([since, since])
  const act = await post<ActInfo>('/v1/act', { act: 'rerun', filter, reason: 'why', token: rerun.token })
  expect([act.matched, act.searchedSince ?? null]).toEqual([rerun.matched, since])
})

it('Next pages and the act of a preview keep the bounds, although newer queries move those of a new list', async () => {
  const first = await list('/v1/query?q=zq&limit=2')
  expect(first).toMatchObject({ ids: [OPEN, RECENT], since: SINCE })
  const seen = await preview('rerun', { q: 'zq' })
  expect(idsOf(seen)).toEqual([RECENT, LAST])
  await addQueries(MANY + 1, 10)
  expect(await list('/v1/query?q=zq')).toMatchObject({ ids: [OPEN, RECENT], since: '2020-01-01T00:00:11.000Z' })
  expect(await list(first.next!)).toEqual({ ids: [LAST], since: SINCE, next: undefined })
  const act = await post<ActInfo>('/v1/act', { act: 'rerun', filter: { q: 'zq' }, reason: 'why', token: seen.token })
  expect(act).toMatchObject({ matched: 2, searchedSince: SINCE })
})

it('The pages of a list without a filter end where the list ends', async () => {
  const { ids, next } = await list('/v1/query?limit=2')
  expect(ids).toEqual([OPEN, RECENT])
  expect(await list(next!)).toMatchObject({ ids: [OPEN_BEYOND], next: undefined })
})
