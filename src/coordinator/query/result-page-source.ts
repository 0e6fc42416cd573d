import { createHash } from 'node:crypto'
import type { ResultPages } from '../../events/event-log.ts'
import type { BodyParts } from '../../shared/body-parts.ts'
import type { Clock } from '../../shared/clock.ts'
import type { WorkerClient } from '../scheduler/worker-client.ts'
import { WorkerLost, WorkerRefused } from '../scheduler/worker-error.ts'
import type { WorkerDirectory } from '../scheduler/workers.ts'
import { PagesAhead } from './pages-ahead.ts'
import type { KnownQuery } from './state.ts'

/** Where the bytes of a published page come from; they are checked against the hash the log has. */
export interface ResultPageSource {
  /**
   * The page's bytes: a JSON array of row arrays.
   * @returns 'lost' when nobody has them any more or they are not what was published
   * @throws when they cannot be had now: a worker or the log is away
   */
  read(query: KnownQuery, token: number, inMemory: Buffer | undefined): Promise<BodyParts | 'lost'>
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
  const ahead = new PagesAhead()

  /** @param asked the page that the client has asked for last */
  async function fetched(query: KnownQuery, token: number, asked: number): Promise<BodyParts | undefined> {
    const page = query.pages[token]!
    const nodeId = query.tasks.get(page.taskId)?.nodeId
    const url = (nodeId === undefined ? undefined : workers.byId(nodeId)?.url) ?? page.nodeUrl ?? ''
    const listed = { taskId: page.taskId, token: page.taskToken, bytes: page.bytes }
    return client.fetchPage(url, listed, firstUnpassed(query, token, asked))
  }

  async function fromWorker(query: KnownQuery, token: number): Promise<BodyParts | undefined> {
    const key = `${query.queryId}/${token}`
    try {
      const bytes = await fetched(query, token, token)
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

  /** Nothing is concluded of a page that does not come: it is asked for again when its client wants it. */
  function readAhead(query: KnownQuery, asked: number): void {
    const token = asked + 1
    const page = query.pages[token]
    if (page?.kept !== 'worker') return
    ahead.begin(query.queryId, token, page.bytes, async () => checked(page, await fetched(query, token, asked)))
  }

  return {
    async read(query, token, inMemory) {
      const page = query.pages[token]
      if (!page) throw new Error(`page ${token} of ${query.queryId} is not published`)
      if (inMemory) return [inMemory]
      if (page.kept === 'log') {
        return checked(page, atOffset(await log.readPage(query.queryId, token, page.place))) ?? 'lost'
      }
      const bytes = (await ahead.take(query.queryId, token)) ?? checked(page, await fromWorker(query, token))
      if (!bytes) return 'lost'
      readAhead(query, token)
      return bytes
    },
  }
}

/** The bytes, when they are what was published. */
function checked(page: KnownQuery['pages'][number], bytes: BodyParts | undefined): BodyParts | undefined {
  if (!bytes) return undefined
  const hash = createHash('sha256')
  for (const part of bytes) hash.update(part)
  return hash.digest('hex') === page.sha256 ? bytes : undefined
}

/** The client has asked for `asked`: of a page's task, every page below the first it may still ask for is acknowledged. */
function firstUnpassed(query: KnownQuery, token: number, asked: number): number {
  const { taskId, taskToken } = query.pages[token]!
  let first = taskToken
  for (let index = asked; index < query.pages.length; index++) {
    const page = query.pages[index]!
    if (page.taskId === taskId && page.taskToken < first) first = page.taskToken
  }
  return first
}

function atOffset(bytes: Uint8Array | undefined): BodyParts | undefined {
  return bytes && [Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)]
}
