import type { Request, Router } from 'express'
import { z } from 'zod'
import { enderSeenBy } from '../../coordinator/query/stream/ending.ts'
import {
  LogUnavailable,
  type Checkpoint,
  type Position,
  type Recorded,
  type LogFeed,
  type LogEnd,
  type StreamReader,
} from '../../events/event-log.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import type { LimitOwnerOf } from '../../shared/limit-owner.ts'
import { HeldSlots } from '../../shared/held-slots.ts'
import type { QueryId } from '../../shared/ids.ts'
import { HttpProblem } from '../edge/problem.ts'
import { problemHandler, resource, resourceRouter } from '../edge/resource.ts'
import { startEventFeed, type EventFeed } from './event-feed.ts'
import { createFeedFilter, feedParameters } from './feed-filter.ts'
import { BEGINNING, parseFeedId } from './feed-position.ts'

export interface EventRoutesDeps {
  readonly log: LogEnd & LogFeed & StreamReader
  /** @throws HttpProblem 401 */
  readonly identify: (request: Request) => Identity
  /**
   * The user of the request as of now, with the credential verified again, since a feed stays open for long.
   * @default the user stays the same
   * @throws HttpProblem 401, 403 when the user lost access; 429, 503 when it cannot be verified now
   */
  readonly identifyAgain?: (request: Request) => Promise<Identity>
  readonly authorize: Authorize
  /** Also the interval at which the reader's rights are checked, milliseconds. @default 15_000 */
  readonly keepAliveMs?: number
  /** The most readers at once; a further one gets 429. Each may hold a batch of the log in memory. @default 100 */
  readonly maxReaders?: number
  /** The same for one owner. @default maxReaders */
  readonly maxReadersOfOne?: number
  readonly ownerOf: LimitOwnerOf
  /** The most readers at once that are far behind the end of the log, since each reads all of it. @default 8 */
  readonly maxReplays?: number
  /** A reader is far behind when it begins more than this many events before the end. @default 10_000 */
  readonly farBehind?: number
  readonly onError?: (error: unknown) => void
}

export interface EventRoutes {
  readonly router: Router
  /** Ends all feeds, so that their readers go to the next coordinator, and accepts no more. */
  close(): Promise<void>
}

/** Routes of the live feed: `/v1/events`, all valid events as server-sent events. */
export function createEventRoutes(deps: EventRoutesDeps): EventRoutes {
  const { log, keepAliveMs = 15_000, maxReaders = 100, maxReplays = 8, farBehind = 10_000 } = deps
  const router = resourceRouter()
  const feeds = new Set<EventFeed>()
  const readers = new HeldSlots(maxReaders, deps.maxReadersOfOne ?? maxReaders)
  const replays = new HeldSlots(maxReplays, maxReplays)
  let closing = false

  resource(router, '/v1/events', {
    async GET(request, response) {
      if (closing) throw new HttpProblem(503, 'This coordinator is about to stop: try again', { 'retry-after': '1' })
      const parsed = feedParameters.safeParse(request.query)
      if (!parsed.success) throw new HttpProblem(400, z.prettifyError(parsed.error).replaceAll('\n', ' '))
      const { after, ...filter } = parsed.data
      const identity = deps.identify(request)
      for (const user of filter.user ?? [])
        if (!deps.authorize(identity, { action: 'view', query: { user } }))
          throw new HttpProblem(403, `Access denied: user ${identity.user} cannot view queries of ${user}`)
      const tip = await answered(() => log.tip())
      // A browser that connects again repeats the address, and gives its current position in the header.
      const asked = offsetsOf(request.get('last-event-id') || after, tip)
      const from = filter.query ? skipTo(asked, tip, await firstPositions(filter.query, identity)) : asked
      const endOffsets = tip.at.map(({ offset }) => offset)
      const behind =
        from.reduce((sum, offset, partition) => sum + endOffsets[partition]! - offset, 0n) > BigInt(farBehind)
      const owner = deps.ownerOf(identity)
      if (!readers.may(owner))
        throw new HttpProblem(429, 'Too many readers of the feed: try again later', { 'retry-after': '5' })
      if (behind && !replays.may(owner))
        throw new HttpProblem(429, 'Too many readers of old events: try again later', { 'retry-after': '5' })
      if (closing || response.destroyed) return void response.destroy()
      response.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        // nginx would hold events back until a buffer is full.
        'x-accel-buffering': 'no',
      })
      if (request.method === 'HEAD') return void response.end()
      const feed = startEventFeed({
        log,
        logId: tip.logId,
        from,
        endOffsets,
        accept: createFeedFilter(log, filter, identity, deps.authorize),
        seesEnder: enderSeenBy(identity, deps.authorize),
        response,
        keepAliveMs,
        onError: deps.onError,
      })
      feeds.add(feed)
      // The reader reconnects at its position, and is admitted when there is a free slot.
      const leave = readers.take(owner, () => feed.end())
      void feed.closed.then(() => {
        feeds.delete(feed)
        leave?.()
      })
      endWithRights(feed, request, identity)
      if (!behind) return
      const leaveReplays = replays.take(owner, () => feed.end())
      void feed.caughtUp.then(() => leaveReplays?.())
    },
  })
  router.use(problemHandler(deps.onError))

  /**
   * Ends the feed of a user who logged out, lost access, or has other rights now. The reader reconnects and gets the
   * answer that is right then.
   */
  function endWithRights(feed: EventFeed, request: Request, identity: Identity): void {
    const { identifyAgain, authorize } = deps
    if (!identifyAgain) return
    const shown = (caller: Identity): string => JSON.stringify([caller, authorize(caller, { action: 'viewAll' })])
    const before = shown(identity)
    let looking = false
    const look = async (): Promise<void> => {
      looking = true
      const now = await identifyAgain(request).then(shown, (error: unknown) => (isOver(error) ? undefined : before))
      looking = false
      if (now !== before) feed.end()
    }
    const timer = setInterval(() => looking || void look(), keepAliveMs)
    void feed.closed.then(() => clearInterval(timer))
  }

  /** The positions where the queries begin. An unknown query, or one that the reader may not see, is refused now. */
  async function firstPositions(queries: readonly QueryId[], identity: Identity): Promise<Position[]> {
    const seesAll = deps.authorize(identity, { action: 'viewAll' })
    const positions: Position[] = []
    for (const queryId of queries) {
      const first = await answered(() => firstEvent(log, queryId))
      if (!first) throw new HttpProblem(404, `Query ${queryId} not found`)
      const owner = createdData.safeParse(first.data).data?.session
      const mayView = owner !== undefined && deps.authorize(identity, { action: 'view', query: owner, queryId })
      if (!seesAll && !mayView)
        throw new HttpProblem(403, `Access denied: user ${identity.user} cannot view query ${queryId}`)
      positions.push(first.position)
    }
    return positions
  }

  return {
    router,
    async close() {
      closing = true
      for (const feed of feeds) feed.end()
      await Promise.all([...feeds].map((feed) => feed.closed))
    },
  }
}

function isOver(error: unknown): boolean {
  return error instanceof HttpProblem && (error.status === 401 || error.status === 403)
}

const createdData = z.object({ session: z.object({ user: z.string(), originalUser: z.string().optional() }) })

async function firstEvent(log: StreamReader, queryId: QueryId): Promise<Recorded | undefined> {
  for await (const first of log.readStream(queryId)) return first
  return undefined
}

/**
 * Skips the part of the log before the first of these positions: a long log need not be read for one query of today.
 */
function skipTo(from: readonly bigint[], tip: Checkpoint, positions: readonly Position[]): readonly bigint[] {
  return from.map((offset, partition) => {
    const first = positions
      .filter((position) => position.partition === partition)
      .reduce((least, position) => (position.offset < least ? position.offset : least), tip.at[partition]!.offset)
    return first > offset ? first : offset
  })
}

/** By log partition, the first offset to read; the end of the log where no id is given. */
function offsetsOf(id: string | undefined, tip: Checkpoint): readonly bigint[] {
  const endOffsets = tip.at.map(({ offset }) => offset)
  if (id === undefined) return endOffsets
  const from = parseFeedId(id, endOffsets.length)
  if (!from) throw new HttpProblem(400, `'${id}' is neither '${BEGINNING}' nor an id of this feed`)
  if (from.some((offset, partition) => offset > endOffsets[partition]!))
    throw new HttpProblem(410, `The log ends before ${id}: it is a different log, or a part of it is lost`)
  return from
}

async function answered<T>(question: () => Promise<T>): Promise<T> {
  try {
    return await question()
  } catch (error) {
    if (!(error instanceof LogUnavailable)) throw error
    throw new HttpProblem(503, 'The event log does not answer', { 'retry-after': '1' })
  }
}
