import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Checkpoint, LogFeed, StreamReader } from '../../src/events/event-log.ts'
import { openLineage } from '../../src/publishing/open-lineage.ts'
import { openLineageServer } from '../../src/publishing/open-lineage-server.ts'
import type { Destination, Publication } from '../../src/publishing/publication.ts'
import { publishedCheckpoints, type PublishedCheckpoints } from '../../src/publishing/published-checkpoints.ts'
import { startPublisher, type Publisher } from '../../src/publishing/publisher.ts'
import { appendLives, queryLife, testQueryId } from '../support/query-life.ts'
import { openReadModelBed, type ReadModelBed } from '../support/read-models.ts'
import { waitUntil } from '../support/quipu-process.ts'

/** A server that receives run events. `answer` decides how it responds. */
interface LineageServer {
  readonly url: string
  /** `START 5`, `COMPLETE 5` and so on: the type and the number of the query, in the order of receipt. */
  readonly taken: string[]
  readonly keys: (string | undefined)[]
  answer: (event: string, response: ServerResponse) => void
  close(): Promise<void>
}

const take = (_: string, response: ServerResponse): void => void response.writeHead(201).end()

async function startLineageServer(): Promise<LineageServer> {
  const taken: string[] = []
  const keys: (string | undefined)[] = []
  const server: Server = createServer((request: IncomingMessage, response) => {
    void (async () => {
      const parts: Buffer[] = []
      for await (const part of request) parts.push(part as Buffer)
      const run = JSON.parse(Buffer.concat(parts).toString()) as {
        eventType: string
        run: { facets: { externalQuery: { externalQueryId: string } } }
      }
      const event = `${run.eventType} ${numberOf(run.run.facets.externalQuery.externalQueryId)}`
      keys.push(request.headers.authorization)
      response.on('finish', () => {
        if (response.statusCode < 300 && request.url === '/under/api/v1/lineage') taken.push(event)
      })
      own.answer(event, response)
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const own: LineageServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/under/`,
    taken,
    keys,
    answer: take,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return own
}

const numbers = new Map<string, number>()
const numberOf = (queryId: string): number => numbers.get(queryId) ?? -1
/** Offset of this test's query ids: all tests share one log. */
let base = 0

function lives(from: number, count: number) {
  return Array.from({ length: count }, (_, index) => {
    const queryId = testQueryId(base + from + index)
    numbers.set(queryId, from + index)
    return { queryId, events: queryLife(queryId, { end: index % 3 === 1 ? 'failed' : 'finished', worker: false }) }
  })
}

const endOf = (index: number): string => (index % 3 === 1 ? 'FAIL' : 'COMPLETE')

/** All run events for queries that were appended one after the other. */
const wanted = (from: number, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => [`START ${from + index}`, `${endOf(index)} ${from + index}`]).flat()

let bed: ReadModelBed
beforeAll(async () => {
  bed = await openReadModelBed()
})
afterAll(() => bed.close())

let server: LineageServer
let begin: Checkpoint
let publishers: Publisher[]
const reported = { sent: 0, refused: 0, retried: 0 }
let ended: unknown

beforeEach(async () => {
  base += 100
  server = await startLineageServer()
  begin = await bed.log.tip()
  publishers = []
  ended = undefined
  Object.assign(reported, { sent: 0, refused: 0, retried: 0 })
})
afterEach(async () => {
  await Promise.all(publishers.map((one) => one.stop()))
  await server.close()
})

interface Changed {
  readonly destination?: Destination
  readonly checkpoints?: PublishedCheckpoints
  readonly publication?: Publication
  readonly log?: LogFeed & StreamReader
}

function publish(changed: Changed = {}): Publisher {
  const publisher = startPublisher({
    name: `test-${base}`,
    log: bed.log,
    begin,
    checkpoints: publishedCheckpoints((text, values) => bed.query(text, [...values])),
    publication: openLineage({ namespace: 'n', statements: false, key: Buffer.alloc(32) }),
    destination: openLineageServer({ url: server.url }),
    onOutcome: (outcome, count) => (reported[outcome] += count),
    onTrouble: () => {},
    onEnd: (error) => (ended = error),
    ...changed,
  })
  publishers.push(publisher)
  return publisher
}

const saved = async (): Promise<number> =>
  Number(
    (await bed.query('select events from quipu_log.published where name = $1', [`test-${base}`]))[0]?.['events'] ?? -1,
  )

it('the publisher sends each event once, in the order of the log, and continues where the previous publisher stopped', async () => {
  const first = publish()
  await appendLives(bed.log, lives(0, 8), 1)
  await waitUntil('the publisher knows that all are sent', () => reported.sent === 16)
  await first.stop()
  expect(server.taken).toEqual(wanted(0, 8))
  expect(reported).toEqual({ sent: 16, refused: 0, retried: 0 })
  expect(await saved()).toBe((await bed.log.tip()).at[0]!.state.count)

  // Some queries are open when the next publisher starts. Their first events are before its checkpoint.
  const open = lives(8, 2).map(({ queryId, events }) => ({ queryId, events: events.slice(0, -1) }))
  await appendLives(bed.log, open, 1)
  const second = publish()
  // A publisher that stops before it has the answers sends its events again.
  await waitUntil('the publisher knows that the beginnings are sent', () => reported.sent === 18)
  await second.stop()
  await bed.log.append(open[0]!.queryId, open[0]!.events.length, [
    { ...lives(8, 1)[0]!.events.at(-1)!, v: 1, time: '2026-03-01T10:00:01.000Z' },
  ])
  publish()
  await waitUntil('its end is sent', () => server.taken.length === 19)
  expect(server.taken.slice(16)).toEqual(['START 8', 'START 9', 'COMPLETE 8'])
})

it('the publisher begins at its given begin if it has no checkpoint, and sends no earlier events', async () => {
  await appendLives(bed.log, lives(0, 3), 1)
  begin = await bed.log.tip()
  publish()
  await waitUntil('its place is stored', async () => (await saved()) === begin.at[0]!.state.count)
  await appendLives(bed.log, lives(3, 1), 1)
  await waitUntil('the new event is sent', () => server.taken.length === 2)
  expect(server.taken).toEqual(wanted(3, 1))
})

it('the publisher retries while the server is away, and loses no event', async () => {
  server.answer = (event, response) => {
    if (event === 'START 2' && reported.retried < 2) return void response.writeHead(503).end()
    if (event === 'START 4' && reported.retried < 3) return void response.destroy()
    take(event, response)
  }
  const publisher = publish()
  await appendLives(bed.log, lives(0, 6), 1)
  await waitUntil('it is behind', () => publisher.lagMillis() > 0)
  await waitUntil('all are sent', () => server.taken.length === 12)
  expect(server.taken).toEqual(wanted(0, 6))
  expect(reported.retried).toBeGreaterThanOrEqual(3)
  await waitUntil('it is behind no more', () => publisher.lagMillis() === 0)
})

it('the publisher delivers large messages in batches of less than 4 MB of text', async () => {
  const handed: number[] = []
  const destination: Destination = {
    deliver(messages) {
      handed.push(messages.reduce((sum, { text }) => sum + text.length, 0))
      return Promise.resolve({ taken: messages.length, refused: [] })
    },
    close: () => Promise.resolve(),
  }
  const long = lives(0, 6).map(({ queryId, events }) => ({
    queryId,
    events: events.map((one) =>
      one.type === 'QueryCreated' ? { ...one, data: { ...one.data, sql: `SELECT '${'x'.repeat(900_000)}'` } } : one,
    ),
  }))
  await appendLives(bed.log, long, 1)
  const publication = openLineage({ namespace: 'n', statements: true, key: Buffer.alloc(32) })
  publish({ destination, publication })
  await waitUntil('all are sent', () => reported.sent === 12)
  expect(Math.max(...handed)).toBeLessThan(4_000_000)
})

it('the publisher does not wait for the checkpoint to be saved, nor for an answer when it stops', async () => {
  const stored = publishedCheckpoints((text, values) => bed.query(text, [...values]))
  const publisher = publish({ checkpoints: { load: (...of) => stored.load(...of), save: () => new Promise(() => {}) } })
  for (let index = 0; index < 2; index++) {
    await appendLives(bed.log, lives(index, 1), 1)
    await waitUntil('it is sent', () => server.taken.length === 2 * index + 2)
  }
  let held = 0
  server.answer = () => void held++
  await appendLives(bed.log, lives(2, 1), 1)
  await waitUntil('it is asked', () => held > 0)
  await publisher.stop()
  expect(reported.sent).toBe(4)
})

it('the publisher sends again if no answer comes in time, even after a garbage collection', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  let held = 0
  server.answer = (event, response) => (event === 'START 0' && held++ === 0 ? undefined : take(event, response))
  publish({ destination: openLineageServer({ url: server.url, answerMs: 1_000 }) })
  await appendLives(bed.log, lives(0, 1), 1)
  await waitUntil('it is asked', () => held > 0)
  collect()
  await waitUntil('all are sent', () => server.taken.length >= 2)
  expect(reported.retried).toBeGreaterThan(0)
})

it('the publisher reads only the status of an answer, even if the body is long or never ends', async () => {
  const asked: string[] = []
  server.answer = (event, response) => {
    asked.push(event)
    response.writeHead(201)
    if (event.startsWith('START')) response.end('x'.repeat(1 << 20))
    else response.write('x')
  }
  publish({ destination: openLineageServer({ url: server.url }) })
  await appendLives(bed.log, lives(0, 2), 1)
  await waitUntil('all are sent', () => reported.sent === 4)
  expect(asked).toEqual(wanted(0, 2))
  expect(reported.retried).toBe(0)
})

it('the publisher skips an event that the server refuses with 422, and counts it as refused', async () => {
  server.answer = (event, response) =>
    event === 'START 1' ? void response.writeHead(422).end() : take(event, response)
  publish()
  await appendLives(bed.log, lives(0, 3), 1)
  await waitUntil('the others are sent', () => reported.sent === 5)
  expect(server.taken).toEqual(wanted(0, 3).filter((event) => event !== 'START 1'))
  expect(reported).toMatchObject({ sent: 5, refused: 1 })
})

it('the publisher sends again the events after the last saved checkpoint', async () => {
  const checkpoints = publishedCheckpoints((text, values) => bed.query(text, [...values]))
  // This publisher is as if killed: it saves no checkpoint.
  const killed = publish({ checkpoints: { load: (...of) => checkpoints.load(...of), save: async () => {} } })
  await appendLives(bed.log, lives(0, 2), 1)
  await waitUntil('all are sent', () => server.taken.length === 4)
  await killed.stop()
  publish()
  await waitUntil('they are sent again', () => server.taken.length === 8)
  expect(server.taken).toEqual([...wanted(0, 2), ...wanted(0, 2)])
})

it('the publisher continues after its checkpoint could not be read or saved for a while', async () => {
  let faults = 3
  publish({
    checkpoints: publishedCheckpoints((text, values) =>
      faults-- > 0 ? Promise.reject(new Error('the database is away')) : bed.query(text, [...values]),
    ),
  })
  await appendLives(bed.log, lives(0, 2), 1)
  await waitUntil('all are sent', () => server.taken.length === 4)
  await waitUntil('its place is stored', async () => (await saved()) === (await bed.log.tip()).at[0]!.state.count)
})

it('the publisher never moves a checkpoint back, and ignores a checkpoint of another log', async () => {
  const checkpoints = publishedCheckpoints((text, values) => bed.query(text, [...values]))
  await appendLives(bed.log, lives(0, 1), 1)
  const tip = await bed.log.tip()
  await checkpoints.save('somebody', tip)
  await checkpoints.save('somebody', begin)
  expect(await checkpoints.load('somebody', begin)).toEqual(tip)
  const other = { ...begin, logId: 'another' }
  expect(await checkpoints.load('somebody', other)).toEqual(other)
})

it('the publisher ends, and reports a growing lag, if the log contradicts its checkpoint', async () => {
  const forged: Checkpoint = {
    ...begin,
    at: begin.at.map(({ offset, state }) => ({ offset: offset + 5n, state: { ...state, count: state.count + 5 } })),
  }
  await publishedCheckpoints((text, values) => bed.query(text, [...values])).save(`test-${base}`, forged)
  const publisher = publish()
  await waitUntil('it ended', () => ended !== undefined)
  await waitUntil('it grows older', () => publisher.lagMillis() > 0)
  expect(server.taken).toEqual([])
})
