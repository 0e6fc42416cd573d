import { request, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import type { CloudEvent } from '../../src/events/envelope.ts'
import { openFeed, type FeedClient } from '../support/feed-client.ts'
import { processesOf, spawnQuipu, waitUntil } from '../support/quipu-process.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { run, trinoHeaders } from '../support/statement-client.ts'

const server = serverOfFile('error', () => ({ QUIPU_RESTART_BACKOFF_MAX_MS: '200ms' }))
let url: string
beforeAll(() => {
  url = server.url
})

/** Returns the last id of the log at this moment. */
async function here(): Promise<string> {
  const feed = await openFeed(`${url}/v1/events`)
  await waitUntil('an id came', () => feed.lastId !== undefined)
  feed.drop()
  return feed.lastId!
}

/** Returns the ids of the events after one id up to another, read over one connection. */
async function between(after: string, until: string): Promise<string[]> {
  const feed = await openFeed(`${url}/v1/events?after=${after}`)
  await waitUntil(`the feed is at ${until}`, () => offsetOf(feed.lastId) >= offsetOf(until))
  feed.drop()
  return feed
    .cloudEvents()
    .flatMap((event, index) => (offsetOf(feed.blocks[index]!.id) <= offsetOf(until) ? [event.id] : []))
}

function offsetOf(id: string | undefined): number {
  return Number(id?.split('-')[1] ?? -1)
}

function killCoordinator(): void {
  process.kill(processesOf(server.data).children[0]!, 'SIGKILL')
}

/** Runs statements one after the other until `stop`, whatever their results are. */
function startLoad() {
  let stopping = false
  let ran = 0
  const running = (async () => {
    for (let number = 0; !stopping; number++) {
      await run(url, `SELECT ${number}, count(*) FROM nation`).catch(() => sleep(50))
      ran++
    }
  })()
  return {
    ran: () => ran,
    stop: async () => {
      stopping = true
      await running
    },
  }
}

/** Reads the feed, and connects again after the last id whenever the connection is gone; `drop` cuts it. */
function startReader(from: string) {
  const ids: string[] = []
  let last = from
  let current: FeedClient | undefined
  let stopping = false
  let connections = 0
  const reading = (async () => {
    while (!stopping) {
      const feed = await openFeed(`${url}/v1/events`, { 'last-event-id': last }).catch(() => undefined)
      if (feed?.status === 200) {
        current = feed
        connections++
        await feed.end
        ids.push(...feed.ids())
        last = feed.lastId ?? last
        current = undefined
      } else await sleep(50)
    }
  })()
  return {
    connections: () => connections,
    seen: () => ids.length + (current?.blocks.length ?? 0),
    last: () => current?.lastId ?? last,
    drop: () => current?.drop(),
    stop: async (): Promise<string[]> => {
      stopping = true
      current?.drop()
      await reading
      return ids
    },
  }
}

describe('The live event feed', () => {
  it('loses and repeats no event over dropped connections and killed coordinators', { timeout: 240_000 }, async () => {
    const from = await here()
    const reader = startReader(from)
    const load = startLoad()
    await waitUntil('the reader is there', () => reader.connections() === 1)
    for (let drop = 0; drop < 5; drop++) {
      const connections = reader.connections()
      const seen = reader.seen()
      await waitUntil('more events came', () => reader.seen() > seen + 5)
      reader.drop()
      await waitUntil('the reader is there again', () => reader.connections() > connections)
    }
    for (let kill = 0; kill < 2; kill++) {
      const connections = reader.connections()
      killCoordinator()
      await waitUntil('the reader is at the next coordinator', () => reader.connections() > connections)
      const ran = load.ran()
      await waitUntil('statements run again', () => load.ran() > ran + 1)
    }
    await load.stop()
    const until = await here()
    await waitUntil('the reader has all', () => offsetOf(reader.last()) >= offsetOf(until))
    const got = await reader.stop()
    expect(reader.connections()).toBeGreaterThanOrEqual(8)
    const expected = await between(from, until)
    expect(expected.length).toBeGreaterThan(50)
    expect(got.slice(0, expected.length)).toEqual(expected)
    expect(new Set(got).size).toBe(got.length)
  })

  it('returns the same events of a query, a user or a type as the query resource', { timeout: 240_000 }, async () => {
    const from = await here()
    const mine = await run(url, 'SELECT name FROM nation', { ...trinoHeaders, 'x-trino-user': 'ada' })
    const other = await run(url, 'SELECT 1/0', { ...trinoHeaders, 'x-trino-user': 'bob' })
    const until = await here()
    const events = async (id: string): Promise<CloudEvent[]> =>
      (await (await fetch(`${url}/v1/query/${id}/events`)).json()) as CloudEvent[]
    // Queries that a coordinator killed above left open may end meanwhile.
    const ours = (all: CloudEvent[]): CloudEvent[] =>
      all.filter(({ subject, type }) => [mine.id, other.id].includes(subject) && !type.includes('delivered'))
    async function feedOf(filter: string, count: number): Promise<CloudEvent[]> {
      const feed = await openFeed(`${url}/v1/events?after=${from}&${filter}`)
      await waitUntil(`${count} events came`, () => ours(feed.cloudEvents()).length >= count)
      feed.drop()
      return ours(feed.cloudEvents())
    }
    const [ofMine, ofOther] = [ours(await events(mine.id)), ours(await events(other.id))]
    expect(ofMine.length).toBeGreaterThan(3)
    expect(await feedOf(`query=${mine.id}`, ofMine.length)).toEqual(ofMine)
    expect(await feedOf('user=bob', ofOther.length)).toEqual(ofOther)
    const endEvents = await feedOf('state=FINISHED,FAILED&type=QueryFinished,QueryFailed', 2)
    expect(endEvents.map(({ subject, type }) => [subject, type])).toEqual([
      [mine.id, 'quipu.query.finished.v2'],
      [other.id, 'quipu.query.failed.v6'],
    ])
    expect(offsetOf(until)).toBeGreaterThan(offsetOf(from))
  })

  it('waits for a reader that does not read, while statements continue', { timeout: 240_000 }, async () => {
    const from = await here()
    const slow = await new Promise<IncomingMessage>((resolve, reject) => {
      request(`${url}/v1/events?after=${from}`, { agent: false }, resolve).on('error', reject).end()
    })
    // Several megabytes of text: more than the buffers of the sockets hold.
    const filler = 'x'.repeat(700_000)
    for (let number = 0; number < 20; number++)
      expect((await run(url, `SELECT ${number} /* ${filler} */`)).rows).toEqual([[number]])
    const until = await here()
    const expected = await between(from, until)
    let text = ''
    slow.setEncoding('utf8').on('data', (part: string) => (text += part))
    const got = (): string[] => [...text.matchAll(/^data: \{"specversion":"1.0","id":"([^"]+)/gm)].map((one) => one[1]!)
    await waitUntil('the slow reader has all', () => text.includes(`id: ${until}\n`) && text.endsWith('\n\n'))
    expect(got().slice(0, expected.length)).toEqual(expected)
    slow.destroy()
  })
})

describe('quipu tail', () => {
  it('prints events as they happen and continues after a kill of the coordinator', { timeout: 240_000 }, async () => {
    const from = await here()
    const tail = spawnQuipu(['tail', '--server', url, '--after', from, '--of-user', 'tess'])
    const json = spawnQuipu([
      'tail',
      '--server',
      url,
      '--after',
      from,
      '--json',
      '--type',
      'QueryFinished',
      '--of-user',
      'tess',
    ])
    const headers = { ...trinoHeaders, 'x-trino-user': 'tess' }
    const first = await run(url, 'SELECT count(*) FROM nation', headers)
    const ended = (id: string) => () => new RegExp(`  ${id}  QueryFinished  `).test(tail.stdout())
    await waitUntil('the first statement is shown', ended(first.id))
    killCoordinator()
    await waitUntil('tail has noticed', () => tail.stderr().includes('trying again'))
    await run(url, 'SELECT 7', { ...headers, 'x-trino-user': 'somebody else' })
    const second = await run(url, "SELECT 'two\nlines'", headers)
    await waitUntil('the second statement is shown', ended(second.id))
    await waitUntil('both ends are shown as JSON', () => json.stdout().trim().split('\n').length >= 2)
    tail.signal('SIGINT')
    json.signal('SIGTERM')
    expect((await tail.exit).code).toBe(0)
    expect((await json.exit).code).toBe(0)

    const lines = tail.stdout().trim().split('\n')
    for (const line of lines)
      expect(line).toMatch(
        /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z {2}\d{8}_\d{6}_\d{5}_\w{5} {2}[A-Z]\w+( {2,}\S.*)?$/,
      )
    expect(lines[0]).toContain(`  ${first.id}  QueryCreated          tess: SELECT count(*) FROM nation`)
    expect(lines.filter((line) => line.includes('QueryCreated')).at(-1)).toMatch(/tess: SELECT 'two lines'$/)
    expect(new Set(lines.map((line) => line.split('  ')[1]))).toEqual(new Set([first.id, second.id]))
    const endEvents = json
      .stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as CloudEvent)
    expect(endEvents.map(({ subject, type }) => [subject, type])).toEqual([
      [first.id, 'quipu.query.finished.v2'],
      [second.id, 'quipu.query.finished.v2'],
    ])
  })

  it('prints one line for an error of the server and for an unknown option', { timeout: 240_000 }, async () => {
    const unknown = await spawnQuipu(['tail', '--server', url, '--type', 'QueryFinnished']).exit
    expect(unknown).toMatchObject({ code: 1, stdout: '' })
    expect(unknown.stderr).toMatch(/^quipu: The server answered 400: .*is not a type of events.*\n$/)
    const wrong = await spawnQuipu(['tail', '--sever', url]).exit
    expect(wrong).toMatchObject({ code: 64, stderr: "quipu: Unknown option '--sever'; see quipu tail --help\n" })
    const help = await spawnQuipu(['tail', '--help']).exit
    expect(help.code).toBe(0)
    expect(help.stdout).toContain('--after <id>')
  })
})

it(
  'the server ends event feeds in order when it drains, also if a reader does not read',
  { timeout: 240_000 },
  async () => {
    const feed = await openFeed(`${url}/v1/events`)
    const stuck = await new Promise<IncomingMessage>((resolve, reject) => {
      request(`${url}/v1/events?after=beginning`, { agent: false }, resolve).on('error', reject).end()
    })
    server.process.signal('SIGTERM')
    expect(await feed.end).toBe('ended')
    expect((await server.process.exit).code).toBe(0)
    stuck.destroy()
  },
)
