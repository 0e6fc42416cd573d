import { createHash } from 'node:crypto'
import type { ResultPages } from '../../events/event-log.ts'
import type { Clock } from '../../shared/clock.ts'
import type { WorkerClient } from '../scheduler/worker-client.ts'
import { WorkerLost, WorkerRefused } from '../scheduler/worker-error.ts'
import type { WorkerDirectory } from '../scheduler/workers.ts'
import type { KnownQuery } from './state.ts'

/** Where the bytes of a published page come from; they are checked against the hash the log has. */
export interface ResultPageSource {
  /**
   * The page's bytes: a JSON array of row arrays.
   * @returns 'lost' when nobody has them any more or they are not what was published
   * @throws when they cannot be had now: a worker or the log is away
   */
  read(query: KnownQuery, token: number, inMemory: Buffer | undefined): Promise<Buffer | 'lost'>
}

export interface ResultPageSourceDeps {
  readonly log: Pick<ResultPages, 'readPage'>
  readonly client: Pick<WorkerClient, 'fetchPage'>
  readonly workers: Pick<WorkerDirectory, 'byId'>
  readonly clock: Clock
  /** A page whose worker has not been reached for so long is lost, milliseconds. */
  readonly lostAfterMs: number
}

export function createResultPageSource(deps: ResultPageSourceDeps): ResultPageSource {
  const { log, client, workers, clock } = deps
  /** Since when the worker of a query's page has not been reached. */
  const away = new Map<string, number>()

  async function fromWorker(query: KnownQuery, token: number): Promise<Buffer | undefined> {
    const page = query.pages[token]!
    const nodeId = query.tasks.get(page.taskId)?.nodeId
    const url = (nodeId === undefined ? undefined : workers.byId(nodeId)?.url) ?? page.nodeUrl ?? ''
    const key = `${query.queryId}/${token}`
    try {
      const listed = { taskId: page.taskId, token: page.taskToken, bytes: page.bytes }
      const bytes = await client.fetchPage(url, listed, firstUnpassed(query, token))
      away.delete(key)
      return bytes
    } catch (error) {
      // It is there, and does not give the page: nor will it.
      if (error instanceof WorkerRefused) return undefined
      if (!(error instanceof WorkerLost)) throw error
      const since = away.get(key) ?? clock.monotonicMs()
      away.set(key, since)
      if (clock.monotonicMs() - since < deps.lostAfterMs) throw error
      away.delete(key)
      return undefined
    }
  }

  return {
    async read(query, token, inMemory) {
      const page = query.pages[token]
      if (!page) throw new Error(`page ${token} of ${query.queryId} is not published`)
      if (inMemory) return inMemory
      const bytes =
        page.kept === 'log'
          ? asBuffer(await log.readPage(query.queryId, token, page.place))
          : await fromWorker(query, token)
      if (!bytes) return 'lost'
      return createHash('sha256').update(bytes).digest('hex') === page.sha256 ? bytes : 'lost'
    },
  }
}

/** The client asks for `token`: of its task, every page below the first it may still ask for is acknowledged. */
function firstUnpassed(query: KnownQuery, token: number): number {
  const taskId = query.pages[token]?.taskId
  let first = query.pages[token]?.taskToken ?? 0
  for (let index = token; index < query.pages.length; index++) {
    const page = query.pages[index]!
    if (page.taskId === taskId && page.taskToken < first) first = page.taskToken
  }
  return first
}

function asBuffer(bytes: Uint8Array | undefined): Buffer | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
