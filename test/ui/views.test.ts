import { beforeAll, afterAll, describe, expect, it } from 'vitest'
import { queryInfo } from '../../src/protocol/query/query-info.ts'
import { toCloudEvent } from '../../src/events/envelope.ts'
import { foldQuery } from '../../src/coordinator/query/stream/evolve.ts'
import type { QueryEvent } from '../../src/coordinator/query/stream/events.ts'
import type { KnownQuery } from '../../src/coordinator/query/stream/state.ts'
import { queryLife, testQueryId } from '../support/query-life.ts'
import { elementsOf, smallDocument, textOf, type SmallElement } from '../support/small-document.ts'

interface Views {
  listPage(queries: unknown[], filter: object, on: object): unknown[]
  queryPage(query: unknown, events: unknown[], asOf: number | undefined, on: object): unknown[]
  nodesPage(nodes: unknown[]): unknown[]
  groupsPage(groups: unknown[], one?: unknown): unknown[]
  statement(sql: string, place?: { lineNumber: number; columnNumber: number }): SmallElement
}

let views: Views
beforeAll(async () => {
  Object.assign(globalThis, { document: smallDocument })
  views = (await import(new URL('../../etc/ui/views.js', import.meta.url).href)) as Views
})
afterAll(() => void Reflect.deleteProperty(globalThis, 'document'))

const HOSTILE = `</pre><img src=x onerror="alert(1)"><script>alert('2')</script>&lt;javascript:alert(3)`
const queryId = testQueryId(1)

/** A query in which every text is hostile, made with the functions of the server. */
function shown(end: 'finished' | 'failed' | 'killed' = 'finished', until = Infinity) {
  const life = queryLife(queryId, end === 'failed' ? { end } : {}).map((event) => hostile(event))
  const recorded = life.map((event, index) => ({
    ...event,
    v: 1,
    stream: queryId,
    sequence: index + 1,
    epoch: 1,
    prevhash: '',
    hash: '',
    digest: '',
    enc: 'none' as const,
    stored: '',
    position: { partition: 0, offset: BigInt(index) },
  }))
  const query = foldQuery(queryId, life.slice(0, until)) as KnownQuery
  const info = queryInfo({ query, liveStats: new Map() } as never, {
    baseUri: 'http://localhost:8080',
    now: 0,
    seesEnder: () => true,
  })
  return {
    query: JSON.parse(JSON.stringify(info)) as Record<string, unknown>,
    events: recorded.map((event) => toCloudEvent(event, '/quipu')),
  }
}

function hostile(event: QueryEvent): QueryEvent {
  const text = JSON.stringify(event).replaceAll('alice', JSON.stringify(HOSTILE).slice(1, -1))
  const changed = JSON.parse(text) as QueryEvent
  if (changed.type === 'QueryCreated') Object.assign(changed.data, { sql: `select ${HOSTILE}` })
  if (changed.type === 'QueryFailed') {
    Object.assign(changed.data.failure, { message: HOSTILE, errorName: HOSTILE })
    if (changed.data.endedBy) Object.assign(changed.data.endedBy, { user: HOSTILE, remoteAddress: HOSTILE })
  }
  return changed
}

const KNOWN_TAGS = new Set(
  'a b button code dd details div dl dt form h1 h2 input label mark option p pre select span summary table td th time tr'.split(
    ' ',
  ),
)

function expectHarmless(parts: readonly unknown[]): SmallElement[] {
  const elements = elementsOf(parts)
  for (const { tag, attributes } of elements) {
    expect(KNOWN_TAGS).toContain(tag)
    for (const [name, value] of attributes) {
      expect(name).not.toMatch(/^on|^style$|^srcdoc$/)
      if (name === 'href') expect(value).toMatch(/^\/(ui|v1)\/[\w/.?=&%-]*$/)
      if (name === 'class') expect(value).not.toContain('<')
    }
  }
  return elements
}

const on = { onTravel: () => {}, onCancel: () => {}, onKill: () => {}, onFilter: () => {} }

describe('Hostile text in the views', () => {
  it('stays text in a statement, a user or an error', () => {
    for (const end of ['finished', 'failed', 'killed'] as const) {
      const { query, events } = shown(end)
      const elements = expectHarmless(views.queryPage(query, events, undefined, on))
      const sql = elements.find(({ attributes }) => attributes.get('id') === 'sql')!
      expect(textOf(sql)).toBe(`select ${HOSTILE}`)
      expect(elements.filter(({ children }) => children.includes(HOSTILE)).length).toBeGreaterThan(0)
    }
  })

  it('stays text in lists and in nodes, and a malformed id becomes no link', () => {
    const { query } = shown()
    const listed = { ...query, queryId: `javascript:${HOSTILE}`, state: HOSTILE, errorCode: { name: HOSTILE } }
    const elements = expectHarmless(views.listPage([listed], { state: '', user: HOSTILE, q: HOSTILE }, on))
    expect(elements.filter(({ tag }) => tag === 'a')).toEqual([])
    const node = { nodeId: HOSTILE, uri: HOSTILE, state: HOSTILE, recentRequests: 1, recentFailures: 0 }
    expectHarmless(views.nodesPage([{ ...node, nodeVersion: { version: HOSTILE } }]))
  })

  it('stays text in the names of resource groups', () => {
    const one = {
      id: ['all', HOSTILE],
      state: 'CAN_RUN',
      schedulingPolicy: 'FAIR',
      runningQueries: [{ queryId, user: HOSTILE }],
    }
    const elements = expectHarmless(views.groupsPage([one, { ...one, id: ['all', 'a b'] }], one))
    expect(elements.filter(({ tag }) => tag === 'a').map(({ attributes }) => attributes.get('href'))).toEqual([
      '/ui/groups?group=all&group=a%20b',
      `/ui/query/${queryId}`,
    ])
  })
})

describe('The page of a query', () => {
  it('shows stages with their tasks, figures and every event', () => {
    const { query, events } = shown()
    const elements = elementsOf(views.queryPage(query, events, undefined, on))
    expect(elements.filter(({ attributes }) => attributes.get('class') === 'stage')).toHaveLength(2)
    const table = elements.find(({ attributes }) => attributes.get('id') === 'events')!
    expect(table.children).toHaveLength(1 + events.length)
    expect(elements.filter(({ tag }) => tag === 'a').map(({ attributes }) => attributes.get('href'))).toEqual([
      `/v1/query/${queryId}?format=json`,
      `/v1/query/${queryId}/trace`,
    ])
  })

  it.each([
    [{ plan: 'local' }, 'local', undefined],
    [{ plan: 'local', to: 'local', skipped: [{ rule: 'a', why: 'no' }] }, "local; rule 'a' was skipped: no", undefined],
    [
      { plan: 'delegated', to: 'group', name: 'big', rule: 'r', cluster: 'c', remoteQueryId: 'x', attempts: 2 },
      "group big, by rule 'r'",
      'c, query x, after 2 attempts',
    ],
  ])('shows the route: %j', (route, text, cluster) => {
    const { query, events } = shown()
    const elements = elementsOf(views.queryPage({ ...query, route }, events, undefined, on))
    const factOf = (name: string) => {
      const part = elements.find(({ tag, children }) => tag === 'div' && textOf(children[0] as SmallElement) === name)
      return part && textOf(part.children[1] as SmallElement)
    }
    expect(factOf('Route')).toBe(text)
    expect(factOf('Cluster')).toBe(cluster)
  })

  it('shows a query at any event by a slider, and greys out later events', () => {
    const { query } = shown('finished', 3)
    const { events } = shown()
    const asked: (number | undefined)[] = []
    const elements = elementsOf(views.queryPage(query, events, 3, { ...on, onTravel: (to: number) => asked.push(to) }))
    const slider = elements.find(({ attributes }) => attributes.get('type') === 'range')!
    expect([...slider.attributes]).toEqual(
      expect.arrayContaining([
        ['max', String(events.length)],
        ['value', '3'],
      ]),
    )
    slider.listeners.get('input')!({ currentTarget: { value: '2' } })
    expect(asked).toEqual([2])
    expect(elements.filter(({ attributes }) => attributes.get('class') === 'future')).toHaveLength(events.length - 3)
    expect(elements.map(textOf)).not.toContain('Cancel')
  })

  it('has buttons to cancel and kill a running query', () => {
    const { query, events } = shown('finished', 3)
    const asked: string[] = []
    const elements = elementsOf(
      views.queryPage(query, events.slice(0, 3), undefined, {
        ...on,
        onCancel: () => asked.push('cancel'),
        onKill: () => asked.push('kill'),
      }),
    )
    for (const name of ['Cancel', 'Kill'])
      elements.find((one) => one.tag === 'button' && textOf(one) === name)!.listeners.get('click')!({})
    expect(asked).toEqual(['cancel', 'kill'])
  })

  it.each([
    ['select nope from t', 1, 8, 'nope'],
    ['select 1,\n  from t', 2, 3, 'from'],
    ['select (1', 1, 10, ' '],
  ])('marks the position of the error in %j', (sql, lineNumber, columnNumber, marked) => {
    const shownSql = views.statement(sql, { lineNumber, columnNumber })
    expect(
      elementsOf([shownSql])
        .filter(({ tag }) => tag === 'mark')
        .map(textOf),
    ).toEqual([marked])
    expect(textOf(shownSql).trimEnd()).toBe(sql)
  })
})
