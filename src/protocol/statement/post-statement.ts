import type { IncomingMessage, ServerResponse } from 'node:http'
import type { StatementMemory } from '../../coordinator/dispatch/statement-memory.ts'
import type { AcceptanceQueue } from '../../coordinator/dispatch/acceptance-queue.ts'
import type { QuerySession } from '../../coordinator/query/stream/events.ts'
import { personOf } from '../../coordinator/query/session/session-identity.ts'
import type { QueryExecution } from '../../coordinator/query/registry/query-handle.ts'
import type { PostedTexts } from '../../coordinator/query/secrets/posted-texts.ts'
import { preparedStatement, type PrepareStatementDeps } from '../../coordinator/query/results/prepare-statement.ts'
import type { StatementService } from '../../coordinator/query/results/statement-service.ts'
import { Fenced, LogUnavailable } from '../../events/event-log.ts'
import type { Clock } from '../../shared/clock.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { LimitOwnerOf } from '../../shared/limit-owner.ts'
import type { ActsAs } from '../access/acts-as.ts'
import { acceptsJson } from '../edge/accepts-json.ts'
import { baseUri } from '../edge/base-uri.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readHeldBody } from '../edge/held-body.ts'
import { decodeUtf8 } from '../edge/request-body.ts'
import type { StatementUris } from './next-uri.ts'
import { answerText } from './query-results.ts'
import { sendAnswer } from './send-answer.ts'
import { headerFamily, sessionFromHeaders, type HeaderFamily } from './session-headers.ts'
import type { StatementSpans } from './statement-spans.ts'

export interface PostStatementDeps extends PrepareStatementDeps {
  readonly service: Pick<StatementService, 'submit'>
  /** Queues statements by owner: an owner who posts many at once waits for their own. */
  readonly acceptance: AcceptanceQueue
  readonly ownerOf: LimitOwnerOf
  /** Counts the memory of bodies while they arrive. */
  readonly memory: Pick<StatementMemory, 'hold'>
  readonly texts: Pick<PostedTexts, 'checkPrepared' | 'seal'>
  readonly uris: StatementUris
  readonly clock: Pick<Clock, 'now'>
  readonly spans: Pick<StatementSpans, 'post'>
  readonly actsAs: ActsAs
  readonly defaultTimeZone: string
  readonly limits: { readonly statementBytes: number }
  /** Called when a statement was not accepted. */
  readonly onRejected?: (group: string, reason: 'shed' | 'log_down') => void
}

/** The parts of a POST before its body. */
interface PostHeaders {
  readonly family: HeaderFamily
  readonly session: QuerySession
  readonly trace: ReturnType<StatementSpans['post']>
}

/**
 * Makes the handler of `POST /v1/statement`: accepts a statement. The answer shows its beginning, even if it has
 * progressed since.
 */
export function createPostStatement(
  deps: PostStatementDeps,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  async function submit(request: IncomingMessage, posted: PostHeaders): Promise<QueryExecution> {
    const { session, family, trace } = posted
    const owner = deps.ownerOf(personOf({ session }))
    const body = await readHeldBody(request, { maxBytes: deps.limits.statementBytes, memory: deps.memory, owner })
    let releaseSlot = (): void => {}
    try {
      const bytes = body.take()
      releaseSlot = await deps.acceptance.take(owner, bytes.length)
      const sql = decodeUtf8(bytes)
      if (sql.trim() === '') throw new HttpProblem(400, 'SQL statement is empty')
      const uris = { headerFamily: family, baseUri: baseUri(request) }
      const prepared = await preparedStatement(deps, sql, session, { ...uris, ...trace })
      // From now on the query's own memory is counted.
      body.release()
      return await deps.service.submit(prepared)
    } finally {
      releaseSlot()
      body.release()
    }
  }

  /** Checks all prepared statements, whether or not the statement uses them. */
  async function checkPrepared(session: QuerySession, family: HeaderFamily): Promise<void> {
    try {
      await deps.texts.checkPrepared(session)
    } catch (error) {
      if (!(error instanceof EngineError)) throw error
      throw new HttpProblem(400, `Invalid X-${family}-Prepared-Statement header: ${error.message}`)
    }
  }

  /** The error for the client of a statement that was not accepted. Reports it for its resource group. */
  function refused(error: unknown, session: QuerySession): unknown {
    const group = (): string => deps.groupOf({ session, queryType: () => undefined })
    if (error instanceof LogUnavailable) deps.onRejected?.(group(), 'log_down')
    if (error instanceof EngineError && error.errorName === 'TOO_MANY_REQUESTS_FAILED')
      deps.onRejected?.(group(), 'shed')
    return error instanceof LogUnavailable || error instanceof Fenced
      ? new HttpProblem(503, error.message, { 'retry-after': '1' })
      : error
  }

  return async (request, response) => {
    const trace = deps.spans.post(request, response)
    acceptsJson(request)
    const family = headerFamily(request.headers)
    const session = sessionFromHeaders(request, family, deps.actsAs(request), deps.defaultTimeZone)
    await checkPrepared(session, family)
    const execution = await submit(request, { family, session, trace }).catch((error: unknown) => {
      throw refused(error, session)
    })
    const { intended, state } = execution.aggregate
    const query = intended.kind === 'NONE' ? state : intended
    if (query.kind === 'NONE') throw new Error('a submitted query has a state')
    const { liveStats, queuedReason } = execution
    const now = deps.clock.now()
    const view = { query, liveStats, queuedReason, nextToken: 0, failure: undefined, now, initial: true }
    sendAnswer(request, response, [answerText(view, deps.uris, false).head], {})
  }
}
