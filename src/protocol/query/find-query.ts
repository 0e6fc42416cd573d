import type { Request } from 'express'
import type { QueryRows } from '../../events/projection.ts'
import { ParquetTooLong } from '../../readmodels/archive/parquet-engine.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import type { StoredQueries } from '../../readmodels/queries/stored-queries.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import type { QueryId } from '../../shared/ids.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readAsOf, refuseForgotten, storedView, type AsOf, type StoredView } from './as-of.ts'
import type { LiveQueries, LiveQueryView } from './live-queries.ts'
import { hasSqlState } from '../../events/postgres/database-error.ts'

export interface FindQueryDeps {
  readonly live: LiveQueries
  /**
   * Reads the tables of the read models, which are first in the search path. Rejects when the database is unreachable.
   */
  readonly read: QueryRows
  /** The same queries, and those that have left the read models. */
  readonly stored: StoredQueries
  readonly projection: Pick<ProjectionRunner, 'barrier' | 'lag'>
  /** Whether this process writes the log. Then its memory is the newest state. */
  readonly isWriter: () => boolean
  /** @throws HttpProblem 401 */
  readonly identify: (request: Request) => Identity
  readonly authorize: Authorize
  /**
   * How long a read waits until the read models have the writes of this process, milliseconds. After that time the
   * answer is marked as stale.
   */
  readonly ownWritesWaitMs: number
  readonly onError?: (error: unknown) => void
}

/** Finds queries: open ones in memory, others in the read models, once these are as new as the log. */
export interface QueryFinder {
  /** Runs a query of the read models. @throws HttpProblem 503 when they do not answer, or not in time */
  ask<T>(question: () => Promise<T>): Promise<T>
  /** A header that says by how many milliseconds the answer may lag behind the log; empty when it does not lag. */
  staleness(): Promise<Readonly<Record<string, string>>>
  /**
   * Searches twice: the read models may not have the newest events at the first time.
   * @returns undefined when the whole log, up to now, knows nothing like it
   * @throws HttpProblem 503 when that cannot be known; its text names the kind
   */
  look<T>(kind: string, search: () => Promise<T | undefined>): Promise<T | undefined>
  /**
   * Finds a query that the caller may see.
   * @throws HttpProblem 404 when the whole log, up to now, knows no such query; 403; 503 when that cannot be known
   */
  find(request: Request, queryId: QueryId, asOf?: AsOf): Promise<LiveQueryView & { readonly incomplete?: boolean }>
  /** Checks that the caller may see a query. Reads only the first event of a query that has ended. @throws HttpProblem as `find` */
  requireVisible(request: Request, queryId: QueryId): Promise<void>
}

export function createQueryFinder(deps: FindQueryDeps): QueryFinder {
  const { live, projection } = deps

  async function ask<T>(question: () => Promise<T>): Promise<T> {
    try {
      return await question()
    } catch (error) {
      if (error instanceof HttpProblem) throw error
      if (hasSqlState(error, 'queryCanceled') || error instanceof ParquetTooLong)
        throw new HttpProblem(503, 'The history took too long to read: restrict the request by user, state or since', {
          'retry-after': '1',
        })
      deps.onError?.(error)
      throw new HttpProblem(503, 'The history of queries cannot be read now', { 'retry-after': '1' })
    }
  }

  async function staleness(): Promise<Record<string, string>> {
    if (deps.isWriter() || (await projection.barrier(deps.ownWritesWaitMs))) return {}
    const lag = await projection.lag().catch(() => undefined)
    return { 'x-engine-stale': String(Math.max(1, Math.round(lag?.oldestMillis ?? deps.ownWritesWaitMs))) }
  }

  async function ended(queryId: QueryId): Promise<StoredView | undefined> {
    return ask(async () => {
      const events = await toArray(deps.stored.stream(queryId))
      refuseForgotten(events)
      return storedView(events)
    })
  }

  /** The query after its first event: that event names its user. */
  async function begun(queryId: QueryId): Promise<StoredView | undefined> {
    return ask(async () => {
      const events = await deps.stored.page(queryId, 0, 1)
      refuseForgotten(events)
      return storedView(events)
    })
  }

  /** @throws HttpProblem 503: without the newest events, the past may look different from what it was */
  async function foundAsOf(queryId: QueryId, asOf: AsOf): Promise<StoredView | undefined> {
    if (await projection.barrier(deps.ownWritesWaitMs)) return ask(() => readAsOf(deps.stored, queryId, asOf))
    throw new HttpProblem(503, 'The history cannot be read now: try again later', { 'retry-after': '1' })
  }

  async function look<T>(kind: string, search: () => Promise<T | undefined>): Promise<T | undefined> {
    const found = await search()
    if (found) return found
    // A negative answer is about the whole log, and this process may have been fenced while it slept.
    const passed = await projection.barrier(deps.ownWritesWaitMs)
    const foundLater = await search()
    if (foundLater || passed) return foundLater
    throw new HttpProblem(503, `It is not certain now whether this ${kind} exists: try again later`, {
      'retry-after': '1',
    })
  }

  async function find(
    request: Request,
    queryId: QueryId,
    asOf?: AsOf,
  ): Promise<LiveQueryView & { readonly incomplete?: boolean }> {
    const identity = deps.identify(request)
    const found = asOf
      ? await foundAsOf(queryId, asOf)
      : await look('query', async () => live.get(queryId) ?? (await ended(queryId)))
    return permitted(identity, queryId, found)
  }

  async function requireVisible(request: Request, queryId: QueryId): Promise<void> {
    const identity = deps.identify(request)
    permitted(identity, queryId, await look('query', async () => live.get(queryId) ?? (await begun(queryId))))
  }

  /** @throws HttpProblem 404, 403 */
  function permitted<T extends LiveQueryView>(identity: Identity, queryId: QueryId, found: T | undefined): T {
    if (!found) throw new HttpProblem(404, 'Query not found')
    if (!deps.authorize(identity, { action: 'view', query: found.query.created.session, queryId }))
      throw new HttpProblem(403, `Access denied: user ${identity.user} cannot view query ${queryId}`)
    return found
  }

  return { ask, staleness, look, find, requireVisible }
}

async function toArray<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
