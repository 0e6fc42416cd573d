import { describe, expect, it } from 'vitest'
import type { ReplayLine } from '../../../src/replay/replay-line.ts'
import type { ReplayAnswer, ReplayServer } from '../../../src/replay/replay-server.ts'
import type { ScratchResults } from '../../../src/replay/scratch-results.ts'
import { MirrorQueue, SHADOW_BEGINNING } from '../../../src/replay/shadow/mirror-queue.ts'
import { RateLimit } from '../../../src/replay/shadow/rate-limit.ts'
import { shadow, type ShadowOptions } from '../../../src/replay/shadow/shadow.ts'
import { waitUntil } from '../../support/quipu-process.ts'
import { sampleData } from '../../support/query-events.ts'

const { session } = sampleData.QueryCreated

/** A server that breaks off the first statements, as many as `broken`. */
function serverOf(broken: number): ReplayServer & { readonly asked: string[] } {
  const asked: string[] = []
  return {
    asked,
    async *run(sql): AsyncGenerator<ReplayAnswer> {
      asked.push(sql)
      yield { queryId: `q${asked.length}`, text: '{}', columns: [], hasRows: false, error: undefined }
      if (asked.length <= broken) throw new Error('The connection broke')
    },
    snapshots: () => Promise.resolve(new Map()),
    digest: () => Promise.resolve(undefined),
  }
}

interface Given {
  readonly there: ReplayServer
  readonly sqlOf?: (queryId: string) => string
  readonly onBroken?: ShadowOptions['onBroken']
}

/** Mirrors the queries `a`, `b` … until they are settled. */
async function mirrored(queries: string, { there, sqlOf = () => 'SELECT 1', onBroken = async () => {} }: Given) {
  const queue = new MirrorQueue(SHADOW_BEGINNING, 100)
  for (const queryId of queries) queue.offer({ queryId, elapsedMs: 5 }, queryId)
  const closing = new AbortController()
  const lines: ReplayLine[] = []
  const shadowing = shadow({
    sides: {
      here: serverOf(0),
      there,
      // Not used, because the baseline never runs.
      scratch: undefined as unknown as ScratchResults,
      catalogs: new Map(),
      repeat: 0,
      live: { mayRun: () => false },
    },
    queue,
    limit: new RateLimit(1000),
    concurrency: 2,
    closing: closing.signal,
    stopping: new AbortController().signal,
    read: (queryId) =>
      Promise.resolve({
        kind: 'statement',
        statement: {
          queryId,
          createdAt: '2026-01-01T00:00:00.000Z',
          sql: sqlOf(queryId),
          session: { ...session, source: queryId === 'x' ? 'other' : 'test' },
          ordered: false,
          columns: [],
          outline: undefined,
          snapshots: new Map(),
          fingerprint: 'v1-a',
        },
      }),
    isMeant: ({ source }) => source === 'test',
    appOf: () => 'dbt',
    onBegin: () => {},
    onLine: (line) => {
      lines.push(line)
    },
    onBroken,
    rows: false,
  })
  await Promise.race([shadowing, waitUntil('all queries are settled', () => queue.open === 0)])
  closing.abort()
  await shadowing
  return { lines, queue }
}

describe('A shadow', () => {
  it('gives each statement a verdict, and ignores those that the filter leaves out', async () => {
    const there = serverOf(0)
    const { lines, queue } = await mirrored('abx', { there })
    expect(lines.map(({ queryId, verdict }) => [queryId, verdict]).toSorted()).toEqual([
      ['a', 'UNCONFIRMED'],
      ['b', 'UNCONFIRMED'],
    ])
    expect(lines[0]).toMatchObject({
      recordedMs: 5,
      fingerprint: 'v1-a',
      app: 'dbt',
      thereMs: expect.any(Number) as number,
    })
    expect(queue.position).toMatchObject({ counts: { finished: 3, ignored: 1 }, open: [] })
    expect(there.asked).toHaveLength(2)
  })

  it('never sends a write, whatever the record says', async () => {
    const there = serverOf(0)
    const { lines } = await mirrored('a', { there, sqlOf: () => 'DELETE FROM t' })
    expect(lines).toMatchObject([{ verdict: 'SKIPPED', reason: 'write' }])
    expect(there.asked).toEqual([])
  })

  it('begins a statement again that the server breaks off, and gives it up after three attempts', async () => {
    expect((await mirrored('a', { there: serverOf(2) })).lines).toMatchObject([
      { queryId: 'a', thereMs: expect.any(Number) as number },
    ])
    const crashing = serverOf(100)
    const { lines } = await mirrored('a', { there: crashing })
    expect(lines).toMatchObject([{ verdict: 'UNCONFIRMED', there: { name: 'BROKEN_OFF' } }])
    expect(crashing.asked).toHaveLength(3)
  })

  it('ends with the error that no statement can run, and leaves its queries open', async () => {
    const ended = mirrored('abc', { there: serverOf(100), onBroken: (error) => Promise.reject(error) })
    await expect(ended).rejects.toThrow('The connection broke')
  })
})
