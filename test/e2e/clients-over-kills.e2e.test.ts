import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { startAnswerRelay, type CutPosition } from '../support/answer-relay.ts'
import { processesOf } from '../support/quipu-process.ts'
import { rowReaders, type RowReader } from '../support/row-readers.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { run } from '../support/statement-client.ts'

/*
 * Published clients read a large result while the coordinator is killed or stopped. A relay holds each client at the
 * same moment, so that the fault hits all of them. The bytes that a client has got decide whether it may end with an
 * error.
 */

const STREAM = 'SELECT orderkey, linenumber, comment FROM lineitem'
const ROWS = 60_175
/** Large answers that a client gets before the fault. */
const BEFORE = 3
const timeout = 400_000

const server = serverOfFile('error', () => ({
  QUIPU_PAGE_BYTES: '128kB',
  QUIPU_RESTART_BACKOFF_MAX_MS: '200ms',
  // The supervisor counts a stopped coordinator as dead after this time.
  QUIPU_COORDINATOR_DEAD_MS: '10s',
}))
let url: string
let right: string
let clients: ReadonlyMap<string, RowReader>

beforeAll(async () => {
  clients = await rowReaders()
  url = server.url
  const { rows } = await run(url, STREAM)
  right = digest(rows.map((row) => row.join(',')))
  expect(rows).toHaveLength(ROWS)
}, 600_000)

/** A digest of the rows in any order. */
function digest(lines: readonly string[]): string {
  return `${lines.length} rows ${createHash('sha256').update(lines.toSorted().join('\n')).digest('hex')}`
}

/** A client, and the moment at which the fault hits it. */
interface Part {
  readonly name: string
  readonly cut: CutPosition
}

interface Run extends Part {
  /** Digest of all rows, or `error`. */
  readonly end: string
  readonly stderr: string
  /** For each answer that broke off: the bytes that the client got. */
  readonly broken: readonly number[]
  /** The number of whole answers that asked the client to try again later. */
  readonly putOff: number
}

async function throughFault(signal: 'SIGKILL' | 'SIGSTOP', parts: readonly Part[]): Promise<readonly Run[]> {
  const relays = await Promise.all(parts.map(() => startAnswerRelay(url, BEFORE)))
  try {
    const runs = parts.map(async ({ name, cut }, i): Promise<Run> => {
      const { url: base, broken, putOff } = relays[i]!
      const { code, stdout, stderr } = await clients.get(name)!.read(base, STREAM)
      return {
        name,
        cut,
        end: code === 0 ? digest(stdout.trimEnd().split('\n')) : 'error',
        stderr,
        broken,
        putOff: putOff(),
      }
    })
    const all = Promise.all(runs)
    // If a client ends before the relay holds it, the test fails with its output.
    const early = all.then((ended) => Promise.reject(new Error(`ended early: ${JSON.stringify(ended)}`)))
    early.catch(() => {})
    await Promise.race([Promise.all(relays.map((relay) => relay.dripping)), early])
    const inside = relays.filter((_, i) => parts[i]!.cut === 'inside an answer')
    const before = relays.filter((relay) => !inside.includes(relay))
    await Promise.race([Promise.all(before.map((relay) => relay.keepNextRequest())), early])
    process.kill(processesOf(server.data).children[0]!, signal)
    for (const relay of inside) relay.breakAnswer()
    for (const relay of relays) relay.release()
    return await all
  } finally {
    await Promise.all(relays.map((relay) => relay.close()))
  }
}

/** Expects every row once, or an error that the client's own rules give for the answers that it got. */
function expectRight({ name, cut, end, stderr, broken, putOff }: Run): void {
  const client = clients.get(name)!
  const partial = broken.some((bytes) => bytes > 0)
  expect(partial, `${name}, ${cut}: ${JSON.stringify(broken)}`).toBe(cut === 'inside an answer')
  if ((partial && !client.repeatsBrokenAnswers) || broken.length + putOff >= client.attempts)
    expect([right, 'error'], `${name}: ${stderr}`).toContain(end)
  else expect({ name, end }, `${JSON.stringify(broken)}, put off ${putOff}: ${stderr}`).toEqual({ name, end: right })
}

describe('Published clients (Trino CLI, JDBC, Python, Go)', () => {
  const before = (name: string): Part => ({ name, cut: 'before an answer' })
  const inside = (name: string): Part => ({ name, cut: 'inside an answer' })

  it(
    'read every row, or fail by their own retry rules, if the coordinator is killed before it answers',
    { timeout },
    async () => {
      const runs = await throughFault('SIGKILL', [...clients.keys()].map(before))
      // The answers to some requests were lost.
      expect(runs.flatMap(({ broken }) => broken)).toContain(0)
      runs.forEach(expectRight)
    },
  )

  it(
    'read every row, or fail by their own retry rules, if the coordinator is stopped before or in an answer',
    { timeout },
    async () => {
      const [repeating, others] = [true, false].map((repeats) =>
        [...clients].filter(([, client]) => client.repeatsBrokenAnswers === repeats).map(([name]) => name),
      ) as [string[], string[]]
      const parts = [...repeating.map(inside), ...others.map(before), ...others.map(inside)]
      const runs = await throughFault('SIGSTOP', parts)
      runs.forEach(expectRight)
    },
  )
})
