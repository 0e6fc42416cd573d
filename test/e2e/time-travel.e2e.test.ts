import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { liveQueryFields, liveTaskFields, type LiveFields } from '../../src/protocol/query/live-fields.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { follow, post, raw, run } from '../support/statement-client.ts'

type Body = Readonly<Record<string, unknown>>

/** An answer as the server gave it. */
interface Served {
  readonly path: string
  readonly sequence: number
  readonly body: Body
  /** The time when the answer was complete, in milliseconds since 1970. */
  readonly at: number
}

const END_STATES = new Set(['FINISHED', 'FAILED', 'CANCELED', 'ABORTED'])

/** The answer without the fields that no event carries. */
function withoutLive(body: Body, fields: LiveFields, state: unknown): Body {
  const copy = structuredClone(body)
  const paths = [
    ...fields.always,
    ...(END_STATES.has(String(state)) ? [] : fields.whileOpen),
    ...(state === 'FINISHED' ? [] : fields.unlessFinished),
  ]
  for (const path of paths) remove(copy, path.split('.'))
  return copy
}

function remove(value: unknown, [step, ...rest]: readonly string[]): void {
  if (typeof value !== 'object' || value === null || step === undefined) return
  const parts = value as Record<string, unknown>
  if (step === '**') {
    remove(value, rest)
    for (const part of Object.values(parts)) remove(part, [step, ...rest])
  } else if (step === '*') for (const part of Object.values(parts)) remove(part, rest)
  else if (rest.length === 0) delete parts[step]
  else remove(parts[step], rest)
}

const fieldsOf = (path: string): LiveFields => (path.startsWith('/v1/task') ? liveTaskFields : liveQueryFields)

describe('Time travel (?asOf=)', () => {
  const server = serverOfFile()
  const served: Served[] = []

  /** @returns undefined while the resource does not exist */
  async function ask(path: string): Promise<Served | undefined> {
    const answer = await raw(`${server.url}${path}`, { headers: { accept: 'application/json' } })
    if (answer.status === 404) return undefined
    expect(answer.status, `${path}: ${answer.text}`).toBe(200)
    const sequence = Number(answer.headers['x-engine-sequence'])
    return { path, sequence, body: JSON.parse(answer.text) as Body, at: Date.now() }
  }

  /** Runs a statement and keeps every answer about it and its tasks meanwhile. */
  async function watched(sql: string, finish: (first: Awaited<ReturnType<typeof post>>) => Promise<unknown>) {
    const first = await post(server.url, sql)
    const { id } = first.json
    let over = false
    const watching = (async () => {
      for (let last = false; !last; await sleep(15)) {
        last = over
        for (const path of [`/v1/query/${id}`, `/v1/task/${id}.1.0`, `/v1/task/${id}.0.0`]) {
          const answer = await ask(path)
          if (answer) served.push(answer)
        }
      }
    })()
    await finish(first)
    over = true
    await watching
    return id
  }

  beforeAll(async () => {
    await run(server.url, 'SELECT count(*) FROM tpch.tiny.nation')
    const cancel = async (first: Awaited<ReturnType<typeof post>>): Promise<void> => {
      await raw(first.json.nextUri!)
      await raw(first.json.nextUri!, { method: 'DELETE' })
    }
    await Promise.all([
      watched('SELECT orderkey, comment FROM lineitem', follow),
      watched('SELECT orderpriority, count(*) FROM orders GROUP BY orderpriority', follow),
      watched('SELECT orderkey / (custkey - custkey) FROM orders', follow),
      watched('SELECT nothing FROM orders', follow),
      watched('SELECT 1', follow),
      watched('SELECT count(*) FROM lineitem a JOIN lineitem b ON a.suppkey = b.suppkey', cancel),
    ])
  }, 240_000)

  it('returns the same answer for the same sequence, except for the live fields', { timeout: 240_000 }, async () => {
    const asked = new Map<string, Served | undefined>()
    for (const { path, sequence, body } of served) {
      const key = `${path}?asOf=${sequence}`
      if (!asked.has(key)) asked.set(key, await ask(key))
      const then = asked.get(key)
      // A worker reports a task before the log has its event.
      if (!then && path.startsWith('/v1/task')) continue
      expect(then?.sequence).toBe(sequence)
      const { state } = then!.body
      expect(withoutLive(then!.body, fieldsOf(path), state), key).toEqual(withoutLive(body, fieldsOf(path), state))
    }
    const states = new Set(served.filter(({ path }) => path.startsWith('/v1/query')).map(({ body }) => body['state']))
    expect([...states]).toEqual(expect.arrayContaining(['FINISHED', 'FAILED']))
    expect(states.size).toBeGreaterThan(2)
  })

  it('returns for a time the state after the events up to it', { timeout: 240_000 }, async () => {
    const queries = new Set(served.map(({ path }) => path).filter((path) => path.startsWith('/v1/query')))
    for (const path of queries) {
      const events = JSON.parse((await raw(`${server.url}${path}/events?limit=1000`)).text) as { time: string }[]
      for (const { at } of served.filter((one) => one.path === path)) {
        const time = new Date(at).toISOString()
        const then = await ask(`${path}?asOf=${time}`)
        expect(then?.sequence).toBe(events.filter((event) => event.time <= time).length)
        const { state } = then!.body
        const bySequence = await ask(`${path}?asOf=${then!.sequence}`)
        expect(withoutLive(then!.body, liveQueryFields, state)).toEqual(
          withoutLive(bySequence!.body, liveQueryFields, state),
        )
      }
    }
    expect(queries.size).toBe(6)
  })
})
