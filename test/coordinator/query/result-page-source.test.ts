import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  createResultPageSource,
  type ResultPageSourceDeps,
} from '../../../src/coordinator/query/results/result-page-source.ts'
import type { KnownQuery } from '../../../src/coordinator/query/stream/state.ts'
import { WorkerLost, WorkerRefused } from '../../../src/coordinator/scheduler/worker-error.ts'
import { inOnePiece } from '../../../src/shared/body-parts.ts'
import { QUERY_ID, WORKER_TASK } from '../../support/query-events.ts'

const BYTES = Buffer.from('[[1]]')
const sha256 = createHash('sha256').update(BYTES).digest('hex')
const LOST_AFTER_MS = 15_000

type Listed = Parameters<ResultPageSourceDeps['client']['fetchPage']>[1]

/** A query with three pages of one task, on a worker or beside the log, and a clock that stands still. */
function source(
  answer: () => Promise<Buffer | undefined>,
  { kept = 'worker', known = true }: { kept?: 'worker' | 'log'; known?: boolean } = {},
) {
  const asked: { url: string; page: Listed; before: number | undefined }[] = []
  let now = 0
  const pages = [0, 1, 2].map((taskToken) => ({
    taskId: WORKER_TASK,
    taskToken,
    kept,
    bytes: BYTES.length,
    rows: 1,
    sha256,
    nodeUrl: 'http://before',
  }))
  const query = {
    queryId: QUERY_ID,
    pages,
    tasks: new Map([[WORKER_TASK, { nodeId: 'w' }]]),
  } as unknown as KnownQuery
  const pageSource = createResultPageSource({
    log: { readPage: answer } as unknown as ResultPageSourceDeps['log'],
    client: {
      fetchPage: async (url: string, page: Listed, before: number | undefined) => {
        asked.push({ url, page, before })
        const bytes = await answer()
        return bytes && [bytes.subarray(0, 2), bytes.subarray(2)]
      },
    } as unknown as ResultPageSourceDeps['client'],
    workers: { byId: () => (known ? { url: 'http://now' } : undefined) } as unknown as ResultPageSourceDeps['workers'],
    clock: { now: () => now, monotonicMs: () => now } as unknown as ResultPageSourceDeps['clock'],
    lostAfterMs: LOST_AFTER_MS,
  })
  return {
    asked,
    async read(token: number, inMemory?: Buffer): Promise<Buffer | 'lost'> {
      const parts = await pageSource.read(query, token, inMemory)
      return parts === 'lost' ? parts : inOnePiece(parts)
    },
    pass: (ms: number) => void (now += ms),
  }
}

const away = (): Promise<never> => Promise.reject(new WorkerLost('no answer'))

describe('the bytes of a published page', () => {
  it('come from memory where they are, and nobody is asked', async () => {
    const { read, asked } = source(away)
    expect(await read(0, BYTES)).toBe(BYTES)
    expect(asked).toEqual([])
  })

  it('come from its worker, by the address it has now; what is before is passed', async () => {
    const { read, asked } = source(async () => BYTES)
    expect(await read(2)).toEqual(BYTES)
    expect(asked).toEqual([
      { url: 'http://now', page: { taskId: WORKER_TASK, token: 2, bytes: BYTES.length }, before: 2 },
    ])
  })

  it('are read while the client takes the page before, which it may ask for again until it asked for the next', async () => {
    const { read, asked } = source(async () => BYTES)
    const requests = (): unknown => asked.splice(0).map(({ page, before }) => [page.token, before])
    await read(0)
    expect(requests()).toEqual([
      [0, 0],
      [1, 0],
    ])
    await read(0)
    expect(requests()).toEqual([[0, 0]])
    expect(await read(1)).toEqual(BYTES)
    expect(requests()).toEqual([[2, 1]])
    // Asked for again, perhaps since the answer never came.
    expect(await read(1)).toEqual(BYTES)
    expect(requests()).toEqual([[1, 1]])
    expect(await read(2)).toEqual(BYTES)
    expect(requests()).toEqual([])
  })

  it.each([
    ['has others', async () => Buffer.from('[[2]]')],
    ['has none', async () => undefined],
    ['says no', () => Promise.reject(new WorkerRefused('no', 404, ''))],
    ['is away', () => Promise.reject(new WorkerLost('no answer'))],
  ])('are asked for again when the worker %s as they are read ahead', async (_, early) => {
    const answers: (() => Promise<Buffer | undefined>)[] = [async () => BYTES, early]
    const { read, asked } = source(() => (answers.shift() ?? (async () => BYTES))())
    await read(0)
    expect(await read(1)).toEqual(BYTES)
    expect(asked.map(({ page }) => page.token)).toEqual([0, 1, 1, 2])
  })

  it('are asked for where the worker was when nobody knows it any more', async () => {
    const { read, asked } = source(async () => BYTES, { known: false })
    await read(0)
    expect(asked[0]!.url).toBe('http://before')
  })

  it('come from beside the log', async () => {
    const { read, asked } = source(async () => BYTES, { kept: 'log' })
    expect(await read(2)).toEqual(BYTES)
    expect(asked).toEqual([])
  })

  it.each(['worker', 'log'] as const)('are lost when %s has others, or none', async (kept) => {
    expect(await source(async () => Buffer.from('[[2]]'), { kept }).read(0)).toBe('lost')
    expect(await source(async () => undefined, { kept }).read(0)).toBe('lost')
  })

  it('are lost when the worker is there and does not give them', async () => {
    const { read } = source(() => Promise.reject(new WorkerRefused('no', 404, '')))
    expect(await read(0)).toBe('lost')
  })

  it('are lost once the worker has not been reached for long, counted for each page and from the first miss', async () => {
    const { read, pass } = source(away)
    await expect(read(0)).rejects.toThrow(WorkerLost)
    pass(LOST_AFTER_MS - 1)
    await expect(read(0)).rejects.toThrow(WorkerLost)
    await expect(read(1)).rejects.toThrow(WorkerLost)
    pass(1)
    expect(await read(0)).toBe('lost')
    await expect(read(1)).rejects.toThrow(WorkerLost)
  })

  it('counts anew when the worker was reached in between', async () => {
    let there = false
    const { read, pass } = source(() => (there ? Promise.resolve(BYTES) : away()))
    await expect(read(0)).rejects.toThrow(WorkerLost)
    there = true
    expect(await read(0)).toEqual(BYTES)
    there = false
    pass(LOST_AFTER_MS)
    await expect(read(0)).rejects.toThrow(WorkerLost)
  })

  it('of the log that is away may be had later', async () => {
    await expect(source(() => Promise.reject(new Error('away')), { kept: 'log' }).read(0)).rejects.toThrow('away')
  })
})
