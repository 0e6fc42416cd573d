import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { isTerminal, type KnownQuery } from '../../coordinator/query/stream/state.ts'
import type { QueryRows } from '../../events/projection.ts'
import { foldQueryStream } from '../../readmodels/queries/projection.ts'
import { readStreams } from '../../readmodels/query-events/queries.ts'
import type { QueryId } from '../../shared/ids.ts'
import type { CheckResults } from '../access/results-guard.ts'
import type { QueryResults } from '../info/schemas/statement.ts'
import { answerText, emptyStats } from './query-results.ts'
import type { ResultPageAddress, StatementUris } from './next-uri.ts'
import { sendAnswer } from './send-answer.ts'

/** Returns a query's last state that is known here, which may be old; undefined when none is known. */
export type LastKnown = (queryId: QueryId) => Promise<KnownQuery | undefined>

/** The client has already waited its time, so the lookup must be short. */
const LOOK_UP_MS = 300

/** Reads the state from the read models, if they answer soon. It is valid, but may be old. */
export function lastKnownOf(read: QueryRows): LastKnown {
  return async (queryId) => {
    const found = readStreams(read, [queryId]).then(foldQueryStream)
    found.catch(() => {})
    const late = new AbortController()
    try {
      const fold = await Promise.race([found, sleep(LOOK_UP_MS, undefined, { signal: late.signal })])
      return fold && !fold.incomplete && fold.state.kind !== 'NONE' ? fold.state : undefined
    } catch {
      return undefined
    } finally {
      late.abort()
    }
  }
}

export interface WaitingDeps {
  readonly uris: StatementUris
  readonly lastKnown: LastKnown
  readonly now: () => number
  readonly checkResults: CheckResults
}

/** The page that a client asked for. */
export interface AskedPage extends ResultPageAddress {
  /** The address of this server that the client uses. */
  readonly base: string
}

/**
 * Answers that a query waits, when its state is unknown now. Its nextUri stays; state and figures are the last known
 * ones, zeros when there are none. A query that is known to have failed gets its error, since nothing else can follow.
 */
export async function sendWaiting(
  request: IncomingMessage,
  response: ServerResponse,
  { uris, lastKnown, now, checkResults }: WaitingDeps,
  asked: AskedPage,
): Promise<void> {
  const query = await lastKnown(asked.queryId)
  if (query) checkResults(request, { queryId: asked.queryId, action: 'results' }, query.created.session)
  if (response.destroyed) return
  if (!query) return sendAnswer(request, response, [JSON.stringify(nothingKnown(uris, asked))], {})
  const failure = query.kind === 'FAILED' ? query.failure : undefined
  const view = {
    query: { ...query, created: { ...query.created, baseUri: asked.base } },
    liveStats: new Map(),
    queuedReason: undefined,
    nextToken: failure ? undefined : asked.token,
    relayed: asked.relayed,
    failure,
    now: isTerminal(query.kind) ? Date.parse(query.updatedAt) : now(),
    initial: false,
  }
  sendAnswer(request, response, [answerText(view, uris, false).head], {})
}

function nothingKnown(uris: StatementUris, { base, queryId, token, relayed }: AskedPage): QueryResults {
  return {
    id: queryId,
    infoUri: uris.infoUri(base, queryId),
    nextUri: uris.nextUri(base, queryId, token, relayed),
    stats: emptyStats(),
    warnings: [],
  }
}
