import { createHash } from 'node:crypto'
import type { EventLog } from '../../events/event-log.ts'
import type { WorkerClient } from '../scheduler/worker-client.ts'
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

export function createResultPageSource(
  log: Pick<EventLog, 'readPage'>,
  client: Pick<WorkerClient, 'fetchPage'>,
): ResultPageSource {
  return {
    async read(query, token, inMemory) {
      const page = query.pages[token]
      if (!page) throw new Error(`page ${token} of ${query.queryId} is not published`)
      if (inMemory) return inMemory
      const bytes =
        page.kept === 'log'
          ? asBuffer(await log.readPage(query.queryId, token))
          : await client.fetchPage(page.nodeUrl ?? '', page.taskId, page.taskToken, firstUnpassed(query, token))
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
