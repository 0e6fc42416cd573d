import { createHash } from 'node:crypto'
import type { PageOffset, ResultPages } from '../../../events/event-log.ts'
import type { BodyParts } from '../../../shared/body-parts.ts'
import type { Clock } from '../../../shared/clock.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import type { WorkerClient } from '../../scheduler/worker-client.ts'
import { WorkerLost, WorkerRefused } from '../../scheduler/worker-error.ts'
import type { WorkerDirectory } from '../../scheduler/workers.ts'
import { PagesAhead } from './pages-ahead.ts'
import type { KnownQuery, ResultPageRecord } from '../stream/state.ts'

/**
 * The place that has the bytes of a published page.
 *
 * - `log`: beside the log, under the query's stream and the page's token, or at the given offset.
 * - `worker`: in the output of a task. `url` is the worker's address now, or the last known one.
 */
export type PageSource =
  | { readonly kind: 'log'; readonly offset: PageOffset | undefined }
  | { readonly kind: 'worker'; readonly url: string; readonly page: ListedPage }

/** A page as its worker lists it. */
type ListedPage = Pick<Parameters<WorkerClient['fetchPage']>[1], 'taskId' | 'token' | 'bytes'>

/** Whether a published page is read beside the log, where it comes at once unless the log is unreachable. */
export function isBesideLog(query: KnownQuery, token: number): boolean {
  return query.pages[token]?.kept === 'log'
}

function sourceOf(query: KnownQuery, page: ResultPageRecord, workers: Pick<WorkerDirectory, 'byId'>): PageSource {
  switch (page.kept) {
    case 'log':
      return { kind: 'log', offset: page.place }
    case 'worker': {
      const nodeId = query.tasks.get(page.taskId)?.nodeId
      const url = (nodeId === undefined ? undefined : workers.byId(nodeId)?.url) ?? page.nodeUrl ?? ''
      return { kind: 'worker', url, page: { taskId: page.taskId, token: page.taskToken, bytes: page.bytes } }
    }
    default:
      return unreachable(page.kept)
  }
}

/** Reads the bytes of a published page and checks them against the hash in the log. */
export interface ResultPageSource {
  /**
   * The page's bytes: a JSON array of row arrays.
   * @returns 'lost' when no process has them any more, or they differ from the published bytes
   * @throws when they cannot be read now: a worker or the log is unreachable
   */
  read(query: KnownQuery, token: number, inMemory: Buffer | undefined): Promise<BodyParts | 'lost'>
}

export interface ResultPageSourceDeps {
  readonly log: Pick<ResultPages, 'readPage'>
  readonly client: Pick<WorkerClient, 'fetchPage'>
  readonly workers: Pick<WorkerDirectory, 'byId'>
  readonly clock: Clock
  /** A page is lost once its worker has been unreachable for this long, milliseconds. */
  readonly lostAfterMs: number
}

type WorkerSource = Extract<PageSource, { kind: 'worker' }>

export function createResultPageSource(deps: ResultPageSourceDeps): ResultPageSource {
  const { log, client, workers, clock } = deps
  /** Since when the worker of a query's page has been unreachable. */
  const away = new Map<string, number>()
  const ahead = new PagesAhead()

  async function fromWorker(query: KnownQuery, token: number, source: WorkerSource): Promise<BodyParts | undefined> {
    const key = `${query.queryId}/${token}`
    try {
      const bytes = await client.fetchPage(source.url, source.page, firstUnpassed(query, token, token))
      away.delete(key)
      return bytes
    } catch (error) {
      // The worker answers, and refuses the page: it will not give it later either.
      if (error instanceof WorkerRefused) return undefined
      if (!(error instanceof WorkerLost)) throw error
      const since = away.get(key) ?? clock.monotonicMs()
      away.set(key, since)
      if (clock.monotonicMs() - since < deps.lostAfterMs) throw error
      away.delete(key)
      return undefined
    }
  }

  /**
   * Reads the next page ahead. If that fails, nothing is concluded: the page is read again when the client wants it.
   */
  function readAhead(query: KnownQuery, asked: number): void {
    const token = asked + 1
    const page = query.pages[token]
    if (!page) return
    const source = sourceOf(query, page, workers)
    if (source.kind !== 'worker') return
    const fetch = () => client.fetchPage(source.url, source.page, firstUnpassed(query, token, asked))
    ahead.begin(query.queryId, token, page.bytes, async () => checked(page, await fetch()))
  }

  return {
    async read(query, token, inMemory) {
      const page = query.pages[token]
      if (!page) throw new Error(`page ${token} of ${query.queryId} is not published`)
      if (inMemory) return [inMemory]
      const source = sourceOf(query, page, workers)
      switch (source.kind) {
        case 'log':
          return checked(page, atOffset(await log.readPage(query.queryId, token, source.offset))) ?? 'lost'
        case 'worker': {
          const known = await ahead.take(query.queryId, token)
          const bytes = known ?? checked(page, await fromWorker(query, token, source))
          if (!bytes) return 'lost'
          readAhead(query, token)
          return bytes
        }
        default:
          return unreachable(source)
      }
    },
  }
}

/** Returns the bytes if they match the hash of the published page. */
function checked(page: ResultPageRecord, bytes: BodyParts | undefined): BodyParts | undefined {
  if (!bytes) return undefined
  const hash = createHash('sha256')
  for (const part of bytes) hash.update(part)
  return hash.digest('hex') === page.sha256 ? bytes : undefined
}

/**
 * The first page of the token's task that the client may still ask for, when it has asked for `asked`: the task's pages
 * below it are acknowledged.
 */
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
