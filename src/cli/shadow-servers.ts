import { setTimeout as sleep } from 'node:timers/promises'
import { READS, type ReadStatement } from '../replay/recorded-statement.ts'
import { readStatement, REPLAY_SOURCE, type Get } from '../replay/replay-source.ts'
import type { ReplayServer } from '../replay/replay-server.ts'
import { endingAfter } from '../shared/deadline.ts'
import { askCalled, type CalledServer } from './called-server.ts'
import { RefusedError } from './statement-client.ts'

/** The most queries that are remembered. If the feed reports an older one late, its source still shows a replay. */
const MOST_OWN = 10_000
const LONGEST_PAUSE_MS = 5000
const INFO_WAIT_MS = 10_000

/** Remembers the queries that a server runs for the shadow, because the feed reports their end too. */
export function withOwnRuns(server: ReplayServer): { readonly own: ReadonlySet<string>; readonly here: ReplayServer } {
  const own = new Set<string>()
  const remember = (queryId: string): void => {
    own.add(queryId)
    const [oldest] = own
    if (own.size > MOST_OWN && oldest !== undefined) own.delete(oldest)
  }
  return {
    own,
    here: {
      ...server,
      async *run(sql, statement, signal) {
        for await (const answer of server.run(sql, statement, signal)) {
          remember(answer.queryId)
          yield answer
        }
      },
    },
  }
}

/**
 * Reads a statement that has just finished.
 * @throws Error when no statement can be read, such as for wrong credentials
 */
export async function readLive(get: Get, queryId: string): Promise<ReadStatement> {
  try {
    return await readStatement(get, queryId, READS)
  } catch (error) {
    const status = error instanceof RefusedError ? error.status : undefined
    const reason = status === 404 ? 'forgotten' : status === 403 ? 'hidden' : undefined
    if (reason === undefined) throw error
    return { kind: 'skipped', queryId, createdAt: '', reason }
  }
}

/** Repeats a request while the server is away. */
export function patientGet(get: Get, signal: AbortSignal): Get {
  return async (target) => {
    for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS))
      try {
        return await get(target)
      } catch (error) {
        if (signal.aborted || (error instanceof RefusedError && !isPassing(error.status))) throw error
        await pause(pauseMs, signal)
      }
  }
}

function isPassing(status: number | undefined): boolean {
  return status !== undefined && (status === 429 || status >= 500)
}

/** Waits until all servers answer. @throws the error if it says that no statement can run */
export async function answeringAgain(
  error: Error,
  servers: readonly CalledServer[],
  signal: AbortSignal,
): Promise<void> {
  if (error instanceof RefusedError && error.status === 401) throw error
  for (const server of servers)
    for (let pauseMs = 100; !signal.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      if (await isAnswering(server, signal)) break
      await pause(pauseMs, signal)
    }
}

async function isAnswering(server: CalledServer, signal: AbortSignal): Promise<boolean> {
  const limit = endingAfter(INFO_WAIT_MS, signal)
  try {
    const { status } = await askCalled(server, REPLAY_SOURCE, '/v1/info', {
      method: 'GET',
      headers: {},
      signal: limit.signal,
    })
    return status < 500
  } catch {
    return false
  } finally {
    limit.clear()
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}
