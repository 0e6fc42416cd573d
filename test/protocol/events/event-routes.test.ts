import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import type { QueryEvent } from '../../../src/coordinator/query/stream/events.ts'
import { shownCloudEvent } from '../../../src/coordinator/query/stream/shown-event.ts'
import { toCloudEvent } from '../../../src/events/envelope.ts'
import type { EventLog, Recorded, Subscription } from '../../../src/events/event-log.ts'
import { createPostgresEventLog } from '../../../src/events/postgres/postgres-event-log.ts'
import { createEventRoutes, type EventRoutes, type EventRoutesDeps } from '../../../src/protocol/events/event-routes.ts'
import { HttpProblem } from '../../../src/protocol/edge/problem.ts'
import { cloudEvent } from '../../../src/protocol/info/schemas/query.ts'
import { allowAll } from '../../../src/security/authorization.ts'
import { administratorsToo } from '../../support/access.ts'
import { openFeed, type FeedClient } from '../../support/feed-client.ts'
import { limitOwners } from '../../../src/shared/limit-owner.ts'
import { serve, type HttpApp } from '../../support/http-app.ts'
import { startPostgres } from '../../support/postgres.ts'
import { waitUntil } from '../../support/quipu-process.ts'
import { appendLives, queryLife, testQueryId, toLogEvents } from '../../support/query-life.ts'
import { openReadModelBed, type ReadModelBed } from '../../support/read-models.ts'

let bed: ReadModelBed
let routes: EventRoutes
let apps: HttpApp[]
let feeds: FeedClient[]

beforeEach(async () => {
  bed = await openReadModelBed()
  apps = []
  feeds = []
})
afterEach(async () => {
  for (const feed of feeds) feed.drop()
  await routes.close()
  for (const app of apps) await app.close()
  await bed.close()
})

async function start(over: Partial<EventRoutesDeps> = {}): Promise<string> {
  routes = createEventRoutes({
    log: bed.log,
    identify: (asker) => ({ user: asker.get('x-trino-user') ?? 'anonymous', groups: [] }),
    authorize: allowAll,
    ownerOf: limitOwners(false),
    ...over,
  })
  const app = await serve(routes.router)
  apps.push(app)
  return `${app.base}/v1/events`
}

async function open(url: string, headers: Record<string, string> = {}): Promise<FeedClient> {
  const feed = await openFeed(url, headers)
  expect(feed.status).toBe(200)
  feeds.push(feed)
  return feed
}

/** Every valid event, read from the log itself. */
async function all(log: EventLog = bed.log): Promise<Recorded[]> {
  const { partitions } = await log.open()
  const { events } = await log.read({ logId: '', at: Array.from({ length: partitions }, () => ({ offset: 0n })) }, 1e6)
  return events
}

const idOf = (event: Pick<Recorded, 'stream' | 'sequence'>): string => `${event.stream}/${event.sequence}`

const lives = [
  { queryId: testQueryId(1), user: 'alice', events: queryLife(testQueryId(1), { user: 'alice' }) },
  { queryId: testQueryId(2), user: 'bob', events: queryLife(testQueryId(2), { user: 'bob', end: 'failed' }) },
  { queryId: testQueryId(3), user: 'alice', events: queryLife(testQueryId(3), { user: 'alice', end: 'open' }) },
]
const nodeJoined = {
  type: 'NodeJoined',
  v: 1,
  time: '2026-03-01T10:00:00.000Z',
  data: { nodeId: 'w', url: 'http://127.0.0.1:1', version: '1', role: 'worker', cores: 2, memoryBytes: 1 },
}

async function writeLives(): Promise<void> {
  await appendLives(bed.log, lives)
  await bed.log.append('node/w', 0, [nodeJoined])
}

describe('The event feed', () => {
  it('sends every valid event in the order of the log, as the CloudEvent of the query resource', async () => {
    await writeLives()
    const url = await start()
    const stored = await all()
    const { logId } = await bed.log.tip()
    const feed = await open(`${url}?after=beginning`)
    await feed.received(stored.length)
    expect(feed.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(feed.headers.get('cache-control')).toBe('no-store')
    expect(feed.cloudEvents()).toEqual(stored.map((event) => shownCloudEvent(event, `/quipu/${logId}`, () => true)))
    expect(feed.cloudEvents().map(({ id }) => id)).toEqual(stored.map((event) => toCloudEvent(event, '').id))
    expect(JSON.stringify(feed.cloudEvents())).not.toContain('sha256')
    for (const event of feed.cloudEvents()) expect(cloudEvent.parse(event)).toEqual(event)
    expect(feed.blocks.map(({ id, event }) => [id, event])).toEqual(
      stored.map(({ position, type }) => [`0-${position.offset}`, type]),
    )
  })

  it('begins at the present by default, and sends events as they become valid', async () => {
    await writeLives()
    const feed = await open(await start())
    const late = queryLife(testQueryId(9))
    await bed.log.append(testQueryId(9), 0, toLogEvents(late.slice(0, 2)))
    await bed.log.append(testQueryId(9), 2, toLogEvents(late.slice(2)))
    await feed.received(late.length)
    expect(feed.ids()).toEqual(late.map((_, index) => `${testQueryId(9)}/${index + 1}`))
  })

  it('ends when its reader loses rights or session, and continues while these cannot be checked', async () => {
    let looked = 0
    const be = (then: () => void): Promise<string> =>
      start({
        keepAliveMs: 10,
        authorize: (_identity, { action }) => action !== 'viewAll' || mayAll,
        async identifyAgain() {
          if (++looked > 3) then()
          return identity
        },
      })
    let identity = { user: 'anonymous', groups: [] as string[] }
    let mayAll = true
    const changes: (() => void)[] = [
      () => {
        throw new HttpProblem(401, 'The session has ended')
      },
      () => {
        throw new HttpProblem(403, 'He may not be another any more')
      },
      () => (identity = { user: 'anonymous', groups: ['staff'] }),
      () => (mayAll = false),
    ]
    for (const change of changes) {
      looked = 0
      const feed = await open(await be(change))
      expect(await feed.end).toBe('ended')
      expect(looked).toBeGreaterThan(3)
      identity = { user: 'anonymous', groups: [] }
      mayAll = true
    }
    looked = 0
    const feed = await open(
      await be(() => {
        throw new HttpProblem(503, 'Nobody knows')
      }),
    )
    await waitUntil('it was looked often', () => looked > 6)
    await writeLives()
    await feed.received(1)
  })

  it('sends its start position at once, so that a reader cut off before the first event misses none', async () => {
    const url = await start()
    const feed = await open(url)
    await waitUntil('an id came', () => feed.lastId !== undefined)
    feed.drop()
    await writeLives()
    const again = await open(url, { 'last-event-id': feed.lastId! })
    await again.received(1)
    expect(again.ids()[0]).toBe(`${testQueryId(1)}/1`)
  })

  it('resumes after each of its ids without losing or repeating an event, also on another coordinator', async () => {
    await writeLives()
    const url = await start()
    const before = await open(`${url}?after=beginning`)
    const first = await all()
    await before.received(first.length)
    const ids = before.blocks.map((block) => block.id)

    const successor = createPostgresEventLog(bed.config, { now: () => Date.parse('2026-01-01T00:00:00Z') })
    await successor.open()
    await successor.claim({ address: 'http://127.0.0.1:8081', version: 'test' })
    await successor.append(testQueryId(4), 0, toLogEvents(queryLife(testQueryId(4))))
    try {
      const stored = (await all(successor)).map(idOf)
      expect(stored.length).toBeGreaterThan(first.length)
      await routes.close()
      const other = await start({ log: successor })
      for (const [index, id] of ids.entries()) {
        // The header has the reader's present position, the address its start. The header counts.
        const feed = await open(`${other}?after=beginning`, { 'last-event-id': id })
        await feed.received(stored.length - index - 1)
        expect(feed.ids()).toEqual(stored.slice(index + 1))
        feed.drop()
      }
      await routes.close()
    } finally {
      await successor.close()
    }
  })

  it('sends keep-alives with its position, also when the filter passes no event', async () => {
    const url = await start({ keepAliveMs: 30 })
    const feed = await open(`${url}?type=QueryKilled`)
    await writeLives()
    const end = (await bed.log.tip()).at[0]!.offset
    await waitUntil('the id has moved', () => feed.lastId === `0-${end - 1n}`)
    expect(feed.blocks).toEqual([])
  })

  it('ends cleanly when the coordinator drains, and answers 503 to new readers', async () => {
    const url = await start()
    const feed = await open(url)
    await routes.close()
    expect(await feed.end).toBe('ended')
    const refused = await fetch(url)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  })
})

describe('The filters of the event feed', () => {
  const event = (life: (typeof lives)[number], index: number): string => `${life.queryId}/${index + 1}`
  /** The ids of the matching events of these lives, in no order. */
  function fitting(
    fits: (event: QueryEvent, life: (typeof lives)[number], stateAfter: string) => boolean,
  ): readonly string[] {
    return lives.flatMap((life) =>
      life.events.flatMap((one, index) =>
        fits(one, life, foldQuery(life.queryId, life.events.slice(0, index + 1)).kind) ? [event(life, index)] : [],
      ),
    )
  }
  const cases: [string, readonly string[]][] = [
    [`query=${testQueryId(2)}`, fitting((_, life) => life.queryId === testQueryId(2))],
    [`query=${testQueryId(1)},${testQueryId(3)}`, fitting((_, life) => life.user === 'alice')],
    ['user=bob', fitting((_, life) => life.user === 'bob')],
    ['user=bob,alice', fitting(() => true)],
    ['type=QueryFinished,QueryFailed', fitting(({ type }) => type === 'QueryFinished' || type === 'QueryFailed')],
    ['type=quipu.query.planned', fitting(({ type }) => type === 'QueryPlanned')],
    ['type=quipu.query.planned.v2&type=querycreated', fitting(({ type }) => /^Query(Planned|Created)$/.test(type))],
    ['type=NodeJoined', ['node/w/1']],
    ['state=RUNNING', fitting((_, __, state) => state === 'RUNNING')],
    ['state=finished,failed', fitting((_, __, state) => state === 'FINISHED' || state === 'FAILED')],
    ['state=QUEUED&type=QueryPlanned', []],
    [
      'user=alice&state=STARTING&type=TaskCreated',
      fitting(({ type }, life, state) => life.user === 'alice' && type === 'TaskCreated' && state === 'STARTING'),
    ],
  ]

  it.each(cases)(
    '%s passes the matching events only, from the beginning and from the middle',
    async (filter, expected) => {
      await writeLives()
      const url = await start({ keepAliveMs: 30 })
      const stored = await all()
      const end = `0-${stored.at(-1)!.position.offset}`
      const order = new Map(stored.map((one, index) => [idOf(one), index]))
      const sorted = [...expected].sort((a, b) => order.get(a)! - order.get(b)!)
      const feed = await open(`${url}?after=beginning&${filter}`)
      await waitUntil('all was looked at', () => feed.lastId === end)
      expect(feed.ids()).toEqual(sorted)
      // A start in the middle of a query's life gives the same answer: earlier events are read from the stream.
      if (filter.startsWith('query='))
        expect(feed.firstId).toBe(sorted[0] && `0-${stored[order.get(sorted[0])!]!.position.offset - 1n}`)
      const half = Math.floor(stored.length / 2)
      const middle = await open(`${url}?after=0-${stored[half]!.position.offset}&${filter}`)
      await waitUntil('all was looked at', () => middle.lastId === end)
      expect(middle.ids()).toEqual(sorted.filter((id) => order.get(id)! > half))
    },
  )

  it.each(['query=nonsense', 'type=QueryFinnished', 'state=DONE', 'after=tomorrow', 'after=7-1'])(
    '%s is answered 400',
    async (filter) => {
      const response = await fetch(`${await start()}?${filter}`)
      expect([response.status, response.headers.get('content-type')]).toEqual([400, 'application/problem+json'])
    },
  )

  it('refuse an id beyond the end of the log and an unknown query; the feed refuses POST and too many readers', async () => {
    const url = await start({ maxReaders: 1 })
    expect((await fetch(`${url}?after=0-12345`)).status).toBe(410)
    expect((await fetch(`${url}?query=${testQueryId(77)}`)).status).toBe(404)
    expect((await fetch(url, { method: 'POST' })).status).toBe(405)
    const head = await fetch(url, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    const only = await open(url)
    expect((await fetch(url)).status).toBe(429)
    only.drop()
    await waitUntil('the place is free', async () => {
      const feed = await openFeed(url)
      feeds.push(feed)
      return feed.status === 200
    })
  })
})

describe('Readers of the event feed', () => {
  it('are limited for each address and in all', async () => {
    const url = await start({
      maxReaders: 3,
      maxReadersOfOne: 2,
      identify: (asker) => ({ user: 'anonymous', groups: [], remoteAddress: asker.get('x-address') ?? '' }),
    })
    const from = (address: string) => ({ 'x-address': address })
    const status = async (address: string) => (await fetch(url, { headers: from(address) })).status
    // The addresses of an IPv6 network count as a single address.
    await open(url, from('2001:db8::a'))
    const second = await open(url, from('2001:db8::b'))
    expect(await status('2001:db8::c')).toBe(429)
    await open(url, from('b'))
    expect(await status('b')).toBe(429)
    second.drop()
    await waitUntil('the place is free', async () => {
      const feed = await openFeed(url, from('b'))
      feeds.push(feed)
      return feed.status === 200
    })
    expect(await status('b')).toBe(429)
  })

  it('get a place when they are new: the owner with the most readers loses one', async () => {
    const url = await start({
      maxReaders: 4,
      identify: (asker) => ({ user: 'anonymous', groups: [], remoteAddress: asker.get('x-address') ?? '' }),
    })
    const from = (address: string) => ({ 'x-address': address })
    for (let index = 0; index < 3; index++) await open(url, from('a'))
    await open(url, from('b'))
    expect((await fetch(url, { headers: from('a') })).status).toBe(429)
    await open(url, from('c'))
    await open(url, from('d'))
    // Each address has one reader now.
    expect((await fetch(url, { headers: from('e') })).status).toBe(429)
  })

  it('are counted by user, not by address, when users are authenticated', async () => {
    const url = await start({ maxReadersOfOne: 1, ownerOf: limitOwners(true), maxReaders: 100 })
    for (let index = 0; index < 40; index++) await open(url, { 'x-trino-user': `user ${index}` })
    expect((await fetch(url, { headers: { 'x-trino-user': 'user 0' } })).status).toBe(429)
  })

  it('are limited while they read far behind the end of the log', async () => {
    await writeLives()
    let release = (): void => {}
    const released = new Promise<void>((resolve) => (release = resolve))
    const { log } = bed
    const url = await start({
      maxReplays: 1,
      farBehind: 3,
      log: {
        tip: () => log.tip(),
        readStream: (stream, after) => log.readStream(stream, after),
        subscribe: (from, handle) =>
          log.subscribe(from, async (batch, next) => {
            await released
            await handle(batch, next)
          }),
      },
    })
    await open(`${url}?after=beginning`)
    const refused = await fetch(`${url}?after=beginning`)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5'])
    // A reader that begins at the present does not wait for them.
    await open(url)
    release()
    await waitUntil('the first has come to the end', async () => {
      const feed = await openFeed(`${url}?after=beginning`)
      feeds.push(feed)
      return feed.status === 200
    })
  })
})

describe('Rights to the event feed', () => {
  const administrators = administratorsToo(new Set(['root']))

  it('are those of queries: users see events of their own queries, administrators see all', async () => {
    await writeLives()
    const url = await start({ authorize: administrators, keepAliveMs: 30 })
    const stored = await all()
    const end = `0-${stored.at(-1)!.position.offset}`
    async function seenBy(user: string): Promise<string[]> {
      const feed = await open(`${url}?after=beginning`, { 'x-trino-user': user })
      await waitUntil('all was looked at', () => feed.lastId === end)
      return feed.ids()
    }
    expect(await seenBy('root')).toEqual(stored.map(idOf))
    expect(await seenBy('bob')).toEqual(
      stored.filter(({ stream }) => stream === testQueryId(2) || stream === 'node/w').map(idOf),
    )
    expect(await seenBy('eve')).toEqual(['node/w/1'])
  })

  it('are checked before the answer begins when the filter names a query or a user', async () => {
    await writeLives()
    const url = await start({ authorize: administrators })
    const status = async (filter: string, user: string): Promise<number> => {
      const response = await fetch(`${url}?${filter}`, { headers: { 'x-trino-user': user } })
      await response.body?.cancel()
      return response.status
    }
    expect(await status(`query=${testQueryId(1)}`, 'bob')).toBe(403)
    expect(await status(`query=${testQueryId(1)}`, 'alice')).toBe(200)
    expect(await status(`query=${testQueryId(1)}`, 'root')).toBe(200)
    expect(await status('user=alice', 'bob')).toBe(403)
    expect(await status('user=bob', 'bob')).toBe(200)
  })
})

it('the event feed waits for a slow reader without delaying the log or other readers, and loses no event', async () => {
  const subscriptions: Subscription[] = []
  const url = await start({
    log: {
      tip: () => bed.log.tip(),
      readStream: (stream, after) => bed.log.readStream(stream, after),
      subscribe(from, on) {
        const subscription = bed.log.subscribe(from, on)
        subscriptions.push(subscription)
        return subscription
      },
    },
  })
  // Much more than the sockets between can hold.
  const count = 80
  const slow = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    request(url, { agent: false }, resolve).on('error', reject).end()
  })
  const quick = await open(url)
  for (let number = 1; number <= count; number++) {
    const [created] = queryLife(testQueryId(number), { sql: randomBytes(100_000).toString('hex') })
    await bed.log.append(testQueryId(number), 0, toLogEvents([created!]))
  }
  await quick.received(count)
  const tip = (await bed.log.tip()).at[0]!.offset
  expect(quick.ids()).toHaveLength(count)
  expect(subscriptions[0]!.checkpoint.at[0]!.offset).toBeLessThan(tip)

  let text = ''
  slow.setEncoding('utf8').on('data', (part: string) => (text += part))
  const sequenceOf = (): string[] =>
    [...text.matchAll(/^data: \{"specversion":"1.0","id":"([^"]+)/gm)].map((m) => m[1]!)
  await waitUntil('the slow reader has all', () => text.endsWith('}\n\n') && sequenceOf().length >= count)
  expect(sequenceOf()).toEqual(quick.ids())
  slow.destroy()
})

it(
  'the event feed continues when the log is back, and answers 503 to new readers meanwhile',
  { timeout: 240_000 },
  async () => {
    const server = await startPostgres()
    const away = await openReadModelBed(server)
    try {
      const url = await start({ log: away.log })
      const feed = await open(`${url}?state=QUEUED,STARTING,RUNNING,FINISHING,FINISHED`)
      const events = toLogEvents(queryLife(testQueryId(1)))
      await away.log.append(testQueryId(1), 0, events.slice(0, 2))
      await feed.received(2)
      await server.kill('SIGKILL')
      const appending = away.log.append(testQueryId(1), 2, events.slice(2))
      await waitUntil('a new reader gets the event', async () => {
        const response = await fetch(url)
        await response.body?.cancel()
        return response.status === 503 && response.headers.get('retry-after') === '1'
      })
      await server.start()
      await appending
      await feed.received(events.length)
      expect(feed.ids()).toEqual(events.map((_, index) => `${testQueryId(1)}/${index + 1}`))
      await routes.close()
    } finally {
      await away.close()
      await server.stop()
    }
  },
)
