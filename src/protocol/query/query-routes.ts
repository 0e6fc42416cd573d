import type { Request, Response, Router } from 'express'
import { z } from 'zod'
import type { RecordedDigest } from '../../coordinator/query/stream/events.ts'
import { enderSeenBy } from '../../coordinator/query/stream/ending.ts'
import { shownCloudEvent } from '../../coordinator/query/stream/shown-event.ts'
import { querySpans } from '../../coordinator/query/telemetry/query-spans.ts'
import { isTerminal } from '../../coordinator/query/stream/state.ts'
import { toOtlpJson } from '../../telemetry/otlp-json.ts'
import { passesFilter } from '../../readmodels/queries/queries.ts'
import { sortNames, type QueryOrder } from '../../readmodels/queries/query-order.ts'
import type { Prices } from '../../readmodels/history/prices.ts'
import type { Clock } from '../../shared/clock.ts'
import { parseQueryId, type QueryId } from '../../shared/ids.ts'
import { HttpProblem } from '../edge/problem.ts'
import { requestTarget } from '../edge/request-target.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import { momentOf, parseAsOf, SEQUENCE_HEADER } from './as-of.ts'
import { createEndings, type EndQueryDeps } from './end-query.ts'
import { createQueryFinder, type FindQueryDeps, type QueryFinder } from './find-query.ts'
import { queryInfo } from './query-info.ts'
import { chooseQueries, type ChosenQueries, type WantedListing } from './chosen-queries.ts'
import { filterParameters } from './query-filter.ts'
import type { ListingBounds } from './listing-bounds.ts'
import { decodeCursor, encodeCursor, LIST_CHARACTERS, overlay, queryListItem } from './query-list.ts'
import { totalsInfo } from './totals-info.ts'

export interface QueryRoutesDeps extends FindQueryDeps, EndQueryDeps {
  /** Scheme, host and port that the client used. */
  readonly baseUri: (request: Request) => string
  readonly clock: Clock
  readonly logId: () => string
  /** The prices in force. @default none */
  readonly prices?: (() => Prices) | undefined
}

/**
 * Header of a list and its totals: only queries that were created at or after this time, ISO UTC, were searched for the
 * text.
 */
const SEARCHED_SINCE_HEADER = 'x-engine-searched-since'

const MAX_LIST = 1000
const MAX_EVENTS = 1000

const limit = (most: number) => z.coerce.number().int().min(1).max(most)

const listParameters = z
  .object({
    ...filterParameters,
    limit: limit(MAX_LIST).default(MAX_LIST),
    sort: z.enum(sortNames).default('created'),
    order: z.enum(['asc', 'desc']).default('desc'),
    cursor: z.string().optional(),
  })
  .transform(({ sort, order: direction, cursor: text, ...rest }, context) => {
    const order: QueryOrder = { by: sort, descending: direction === 'desc' }
    const page = text === undefined ? undefined : decodeCursor(text, order)
    if (text !== undefined && !page)
      context.addIssue({ code: 'custom', message: 'is not a cursor of this server and order', path: ['cursor'] })
    return { ...rest, order, page }
  })

const totalsParameters = z.object(filterParameters)

const infoParameters = z.object({
  asOf: z.string().transform(parseAsOf).optional(),
  /** Gives JSON to a browser too, which asks for HTML first. */
  format: z.literal('json').optional(),
})

const eventsParameters = z.object({
  after: z.coerce.number().int().min(0).default(0),
  limit: limit(MAX_EVENTS).default(100),
})

/**
 * Makes the routes of the query resource: `/v1/query`, `/v1/query/{queryId}`, `/v1/query/{queryId}/events`,
 * `/v1/query/{queryId}/trace`.
 */
export function createQueryRoutes(deps: QueryRoutesDeps): Router {
  const reads = new QueryReads(deps)
  const endings = createEndings(deps)
  const router = resourceRouter()
  resource(router, '/v1/query', { GET: (request, response) => reads.list(request, response) })
  resource(router, '/v1/query/totals', { GET: (request, response) => reads.totals(request, response) })
  resource(router, '/v1/query/{queryId}', {
    GET: (request, response) => reads.info(request, response),
    DELETE: endings.cancel,
  })
  resource(router, '/v1/query/{queryId}/killed', { PUT: endings.kill('killed') })
  resource(router, '/v1/query/{queryId}/preempted', { PUT: endings.kill('preempted') })
  resource(router, '/v1/query/{queryId}/events', { GET: (request, response) => reads.events(request, response) })
  resource(router, '/v1/query/{queryId}/digest', { GET: (request, response) => reads.digest(request, response) })
  resource(router, '/v1/query/{queryId}/trace', { GET: (request, response) => reads.trace(request, response) })
  router.use(problemHandler(deps.onError))
  return router
}

/** Answers the GET requests of the query resource. */
class QueryReads {
  readonly #deps: QueryRoutesDeps
  readonly #finder: QueryFinder

  constructor(deps: QueryRoutesDeps) {
    this.#deps = deps
    this.#finder = createQueryFinder(deps)
  }

  async list(request: Request, response: Response): Promise<void> {
    const { live, stored } = this.#deps
    const { limit: most, page: { cursor, bounds: known } = {}, order, ...wanted } = parse(listParameters, request)
    const stale = await this.#finder.staleness()
    const { inMemory, bounds, without, ...chosen } = await this.#choose(request, { wanted, bounds: known })
    const filter = { ...chosen.filter, order, ...(cursor && { cursor }) }
    const listed = await this.#finder.ask(() => stored.list({ ...filter, without }, most + 1, LIST_CHARACTERS + 1))
    const rows = overlay(listed, inMemory, filter, most + 1)
    const shown = rows.slice(0, most)
    const base = this.#deps.baseUri(request)
    const prices = this.#deps.prices?.()
    const more = rows.length > most ? nextPage(request, base, encodeCursor(shown.at(-1)!, order, bounds)) : {}
    sendJson(
      response,
      shown.map((row) => queryListItem(row, { baseUri: base, prices, live: live.get(parseQueryId(row.query_id)) })),
      undefined,
      { ...stale, ...searchedSince(bounds), ...more },
    )
  }

  async totals(request: Request, response: Response): Promise<void> {
    const wanted = parse(totalsParameters, request)
    const stale = await this.#finder.staleness()
    const { inMemory, filter, bounds, without } = await this.#choose(request, { wanted })
    const prices = this.#deps.prices?.()
    const totals = await this.#finder.ask(() => this.#deps.stored.totals({ ...filter, without }, prices))
    const live = inMemory.filter((row) => passesFilter(row, filter))
    sendJson(response, totalsInfo(totals, live, prices), undefined, { ...stale, ...searchedSince(bounds) })
  }

  async info(request: Request, response: Response): Promise<void> {
    const { clock, identify, authorize } = this.#deps
    const { asOf, format } = parse(infoParameters, request)
    if (format === undefined && prefersHtml(request)) {
      response.writeHead(303, { location: `/ui/query/${encodeURIComponent(idOf(request))}`, vary: 'Accept' }).end()
      return
    }
    const view = await this.#finder.find(request, idOf(request), asOf)
    const now = asOf ? momentOf(asOf, view, clock.now()) : clock.now()
    const context = {
      baseUri: this.#deps.baseUri(request),
      now,
      incomplete: view.incomplete ?? false,
      seesEnder: enderSeenBy(identify(request), authorize),
      prices: this.#deps.prices?.(),
    }
    const headers = { vary: 'Accept', [SEQUENCE_HEADER]: String(view.sequence) }
    sendJson(response, queryInfo(view, context), undefined, headers)
  }

  async events(request: Request, response: Response): Promise<void> {
    const { projection, stored, ownWritesWaitMs, identify, authorize } = this.#deps
    const { after, limit: most } = parse(eventsParameters, request)
    const passed = await projection.barrier(ownWritesWaitMs)
    const queryId = idOf(request)
    await this.#finder.requireVisible(request, queryId)
    const events = await this.#finder.ask(() => stored.page(queryId, after, most + 1))
    const page = events.slice(0, most)
    const source = `/quipu/${this.#deps.logId()}`
    const seesEnder = enderSeenBy(identify(request), authorize)
    const base = this.#deps.baseUri(request)
    const last = events.length > most ? page.at(-1) : undefined
    const next = `<${base}/v1/query/${queryId}/events?after=${last?.sequence}&limit=${most}>; rel="next"`
    sendJson(
      response,
      page.map((event) => shownCloudEvent(event, source, seesEnder)),
      'application/cloudevents-batch+json',
      { ...(!passed && { 'x-engine-stale': String(ownWritesWaitMs) }), ...(last && { link: next }) },
    )
  }

  /**
   * For callers who may have the rows only. A digest shows whether two results are equal, so it reveals a result to
   * anybody who can produce an equal one.
   */
  async digest(request: Request, response: Response): Promise<void> {
    const { projection, ownWritesWaitMs, identify, authorize } = this.#deps
    const known = await this.#finder.find(request, idOf(request)).catch(unlessUnknown)
    // A query that has ended in this process needs no wait.
    const isOver = known !== undefined && isTerminal(known.query.kind)
    if (!isOver) await projection.barrier(ownWritesWaitMs)
    const { query } = isOver ? known : await this.#finder.find(request, idOf(request))
    const identity = identify(request)
    const { queryId, created } = query
    if (!authorize(identity, { action: 'results', query: created.session, queryId }))
      throw new HttpProblem(403, `Access Denied: User ${identity.user} cannot have the results of query ${queryId}`)
    if (!isTerminal(query.kind))
      throw new HttpProblem(409, 'The query has not ended: its digest is made at the end', { 'retry-after': '1' })
    const digest = query.kind === 'FINISHED' ? query.finished.digest : undefined
    if (query.kind !== 'FINISHED' || !digest) throw new HttpProblem(404, 'The query has no digest of its result')
    sendJson(response, { ...digest, rows: query.finished.rows } satisfies RecordedDigest)
  }

  /** The trace is made of events, so a query has one even if it was not sampled. An open query has none yet. */
  async trace(request: Request, response: Response): Promise<void> {
    const { query } = await this.#finder.find(request, idOf(request))
    if (!isTerminal(query.kind))
      throw new HttpProblem(409, 'The query has not ended: its trace is made at the end', { 'retry-after': '1' })
    sendJson(
      response,
      toOtlpJson(querySpans(query, { withRequest: true }), { resource: { 'service.name': 'quipu-coordinator' } }),
    )
  }

  #choose(request: Request, listing: WantedListing): Promise<ChosenQueries> {
    const ask: QueryFinder['ask'] = (question) => this.#finder.ask(question)
    return chooseQueries(request, listing, { ...this.#deps, ask })
  }
}

function searchedSince({ searchedSince: start }: ListingBounds): Record<string, string> {
  return start === undefined ? {} : { [SEARCHED_SINCE_HEADER]: start }
}

function parse<T extends z.ZodType>(schema: T, request: Request): z.output<T> {
  const parsed = schema.safeParse(request.query)
  if (!parsed.success) throw new HttpProblem(400, z.prettifyError(parsed.error).replaceAll('\n', ' '))
  return parsed.data
}

/** A follower may not have the query's events yet. */
function unlessUnknown(error: unknown): undefined {
  if (!(error instanceof HttpProblem) || error.status !== 404) throw error
}

function idOf(request: Request): QueryId {
  return parseQueryId(String(request.params['queryId']))
}

function nextPage(request: Request, base: string, cursor: string): Record<string, string> {
  const query = new URLSearchParams(requestTarget(request).query)
  query.set('cursor', cursor)
  return { link: `<${base}/v1/query?${query}>; rel="next"` }
}

/** Whether a browser's address bar sent the request, not a program. */
function prefersHtml(request: Request): boolean {
  return request.accepts(['application/json', 'text/html']) === 'text/html'
}
