import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAnswerRelay, type Place } from '../support/answer-relay.ts'
import { processesOf, spawnQuipu, temporaryFolder, type QuipuProcess } from '../support/quipu-process.ts'
import { rowReaders, type RowReader } from '../support/row-readers.ts'
import { run } from '../support/statement-client.ts'

/*
 * Published clients read a large result while the coordinator is killed or stopped. Each of them is kept waiting where it
 * happens, so that it happens to all of them, and the bytes it was given tell whether it may end with an error of its own.
 */

const STREAM = 'SELECT orderkey, linenumber, comment FROM lineitem'
const ROWS = 60_175
/** Large answers that a client has before the fault. */
const BEFORE = 3
const timeout = 400_000

let folder: ReturnType<typeof temporaryFolder>
let quipu: QuipuProcess
let url: string
let right: string
let clients: ReadonlyMap<string, RowReader>

beforeAll(async () => {
  clients = await rowReaders()
  folder = temporaryFolder()
  quipu = spawnQuipu(['start', '--port', '0', '--data-dir', `${folder.path}/data`], {
    env: {
      QUIPU_LOG_LEVEL: 'error',
      QUIPU_PAGE_BYTES: '128kB',
      QUIPU_RESTART_BACKOFF_MAX_MS: '200ms',
      // A stopped one is missed after that.
      QUIPU_COORDINATOR_DEAD_MS: '10s',
    },
  })
  url = await quipu.url
  const { rows } = await run(url, STREAM)
  right = digest(rows.map((row) => row.join(',')))
  expect(rows).toHaveLength(ROWS)
}, 600_000)
afterAll(async () => {
  quipu.signal('SIGTERM')
  await quipu.exit
  await folder.remove()
}, 240_000)

/** Order does not matter, every row does. */
function digest(lines: readonly string[]): string {
  return `${lines.length} rows ${createHash('sha256').update(lines.toSorted().join('\n')).digest('hex')}`
}

/** A client, and where the fault meets it. */
interface Part {
  readonly name: string
  readonly place: Place
}

interface Run extends Part {
  /** Digest of all rows, or `error`. */
  readonly end: string
  readonly stderr: string
  /** Of each answer that broke off, the bytes that the client was given. */
  readonly broken: readonly number[]
  /** Whole answers that said: not now. */
  readonly putOff: number
}

async function throughFault(signal: 'SIGKILL' | 'SIGSTOP', parts: readonly Part[]): Promise<readonly Run[]> {
  const relays = await Promise.all(parts.map(() => startAnswerRelay(url, BEFORE)))
  try {
    const runs = parts.map(async ({ name, place }, i): Promise<Run> => {
      const { url: base, broken, putOff } = relays[i]!
      const { code, stdout, stderr } = await clients.get(name)!.read(base, STREAM)
      return {
        name,
        place,
        end: code === 0 ? digest(stdout.trimEnd().split('\n')) : 'error',
        stderr,
        broken,
        putOff: putOff(),
      }
    })
    const all = Promise.all(runs)
    // Clients that end before they are kept waiting end the test with what they said.
    const early = all.then((ends) => Promise.reject(new Error(`ended early: ${JSON.stringify(ends)}`)))
    early.catch(() => {})
    await Promise.race([Promise.all(relays.map((relay) => relay.dripping)), early])
    const inside = relays.filter((_, i) => parts[i]!.place === 'inside an answer')
    const before = relays.filter((relay) => !inside.includes(relay))
    await Promise.race([Promise.all(before.map((relay) => relay.keepNextRequest())), early])
    process.kill(processesOf(`${folder.path}/data`).children[0]!, signal)
    for (const relay of inside) relay.breakAnswer()
    for (const relay of relays) relay.release()
    return await all
  } finally {
    await Promise.all(relays.map((relay) => relay.close()))
  }
}

/** Every row once; or an error that a client's own rules give it for what it was sent. */
function expectRight({ name, place, end, stderr, broken, putOff }: Run): void {
  const client = clients.get(name)!
  const partial = broken.some((bytes) => bytes > 0)
  expect(partial, `${name}, ${place}: ${JSON.stringify(broken)}`).toBe(place === 'inside an answer')
  if ((partial && !client.repeatsBrokenAnswers) || broken.length + putOff >= client.attempts)
    expect([right, 'error'], `${name}: ${stderr}`).toContain(end)
  else expect({ name, end }, `${JSON.stringify(broken)}, put off ${putOff}: ${stderr}`).toEqual({ name, end: right })
}

describe('the Trino CLI, JDBC, Python and Go, as published, read on', () => {
  const before = (name: string): Part => ({ name, place: 'before an answer' })
  const inside = (name: string): Part => ({ name, place: 'inside an answer' })

  it('when the coordinator is killed before it answers', { timeout }, async () => {
    const runs = await throughFault('SIGKILL', [...clients.keys()].map(before))
    // What they had asked for was lost.
    expect(runs.flatMap(({ broken }) => broken)).toContain(0)
    runs.forEach(expectRight)
  })

  it('when the coordinator is stopped, before and in the middle of an answer', { timeout }, async () => {
    const [repeating, others] = [true, false].map((repeats) =>
      [...clients].filter(([, client]) => client.repeatsBrokenAnswers === repeats).map(([name]) => name),
    ) as [string[], string[]]
    const parts = [...repeating.map(inside), ...others.map(before), ...others.map(inside)]
    const runs = await throughFault('SIGSTOP', parts)
    runs.forEach(expectRight)
  })
})
