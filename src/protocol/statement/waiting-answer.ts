import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { isTerminal, type KnownQuery } from '../../coordinator/query/state.ts'
import type { QueryRows } from '../../events/projection.ts'
import { foldQueryStream } from '../../readmodels/queries/projection.ts'
import { readStreams } from '../../readmodels/query-events/queries.ts'
import type { QueryId } from '../../shared/ids.ts'
import type { CheckResults } from '../access/results-guard.ts'
import { answerText, emptyStats } from './query-results.ts'
import type { ResultPageAddress, StatementUris } from './next-uri.ts'
import { sendAnswer } from './send-answer.ts'

/** A query as it was when it was last seen here, perhaps a while ago; undefined when that is not known. */
export type LastKnown = (queryId: QueryId) => Promise<KnownQuery | undefined>

/** A client that has waited its time is not kept for this. */
const LOOK_UP_MS = 300

/** What the read models say, when they say it soon: all of it is valid, and may be old. */
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

export interface WaitingParts {
  readonly uris: StatementUris
  readonly lastKnown: LastKnown
  readonly now: () => number
  readonly checkResults: CheckResults
}

/** What a client asked for. */
export interface AskedPage extends ResultPageAddress {
  /** Address of this server as the client knows it. */
  readonly base: string
}

/**
 * Says of a query of which nobody can say more now that it waits: its nextUri stays, its state and figures are those last
 * known, zeros when there are none. Of one that failed nothing more is to come: its failure is told.
 */
export async function sendWaiting(
  request: IncomingMessage,
  response: ServerResponse,
  { uris, lastKnown, now, checkResults }: WaitingParts,
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
    failure,
    now: isTerminal(query.kind) ? Date.parse(query.updatedAt) : now(),
    initial: false,
  }
  sendAnswer(request, response, [answerText(view, uris, false).head], {})
}

function nothingKnown(uris: StatementUris, { base, queryId, token }: AskedPage): Record<string, unknown> {
  return {
    id: queryId,
    infoUri: uris.infoUri(base, queryId),
    nextUri: uris.nextUri(base, queryId, token),
    stats: emptyStats(),
    warnings: [],
  }
}
