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

/** A query with three pages of one task, on a worker or beside the log, and a clock that only `pass` moves. */
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

describe('The bytes of a published page', () => {
  it('come from memory without a request when they are there', async () => {
    const { read, asked } = source(away)
    expect(await read(0, BYTES)).toBe(BYTES)
    expect(asked).toEqual([])
  })

  it('come from the worker at its current address, and the request acknowledges the pages before', async () => {
    const { read, asked } = source(async () => BYTES)
    expect(await read(2)).toEqual(BYTES)
    expect(asked).toEqual([
      { url: 'http://now', page: { taskId: WORKER_TASK, token: 2, bytes: BYTES.length }, before: 2 },
    ])
  })

  it('are read ahead while the client takes the page before, and can be read again', async () => {
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
    // The client asks again, for example because the answer did not arrive.
    expect(await read(1)).toEqual(BYTES)
    expect(requests()).toEqual([[1, 1]])
    expect(await read(2)).toEqual(BYTES)
    expect(requests()).toEqual([])
  })

  it.each([
    ['returns other bytes', async () => Buffer.from('[[2]]')],
    ['returns no bytes', async () => undefined],
    ['refuses the request', () => Promise.reject(new WorkerRefused('no', 404, ''))],
    ['does not answer', () => Promise.reject(new WorkerLost('no answer'))],
  ])('are requested again when the worker %s during the read ahead', async (_, early) => {
    const answers: (() => Promise<Buffer | undefined>)[] = [async () => BYTES, early]
    const { read, asked } = source(() => (answers.shift() ?? (async () => BYTES))())
    await read(0)
    expect(await read(1)).toEqual(BYTES)
    expect(asked.map(({ page }) => page.token)).toEqual([0, 1, 1, 2])
  })

  it('are requested at the recorded address of the worker when the worker is unknown now', async () => {
    const { read, asked } = source(async () => BYTES, { known: false })
    await read(0)
    expect(asked[0]!.url).toBe('http://before')
  })

  it('come from the log without a request to a worker when the page is kept there', async () => {
    const { read, asked } = source(async () => BYTES, { kept: 'log' })
    expect(await read(2)).toEqual(BYTES)
    expect(asked).toEqual([])
  })

  it.each(['worker', 'log'] as const)('are lost when the %s has other bytes or none', async (kept) => {
    expect(await source(async () => Buffer.from('[[2]]'), { kept }).read(0)).toBe('lost')
    expect(await source(async () => undefined, { kept }).read(0)).toBe('lost')
  })

  it('are lost when the worker answers and refuses the request', async () => {
    const { read } = source(() => Promise.reject(new WorkerRefused('no', 404, '')))
    expect(await read(0)).toBe('lost')
  })

  it('are lost once the worker was unreachable for 15 s, counted per page from its first failed read', async () => {
    const { read, pass } = source(away)
    await expect(read(0)).rejects.toThrow(WorkerLost)
    pass(LOST_AFTER_MS - 1)
    await expect(read(0)).rejects.toThrow(WorkerLost)
    await expect(read(1)).rejects.toThrow(WorkerLost)
    pass(1)
    expect(await read(0)).toBe('lost')
    await expect(read(1)).rejects.toThrow(WorkerLost)
  })

  it('are not lost when a read of the page succeeded in between: the 15 s start again', async () => {
    let there = false
    const { read, pass } = source(() => (there ? Promise.resolve(BYTES) : away()))
    await expect(read(0)).rejects.toThrow(WorkerLost)
    there = true
    expect(await read(0)).toEqual(BYTES)
    there = false
    pass(LOST_AFTER_MS)
    await expect(read(0)).rejects.toThrow(WorkerLost)
  })

  it('are not lost when the log does not answer: the read fails with the error', async () => {
    await expect(source(() => Promise.reject(new Error('away')), { kept: 'log' }).read(0)).rejects.toThrow('away')
  })
})
