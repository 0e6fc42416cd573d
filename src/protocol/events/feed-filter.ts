import { z } from 'zod'
import { clusterEventSchemas, clusterStreamPrefix } from '../../coordinator/clusters/events.ts'
import { nodeEventSchemas, nodeStreamPrefix } from '../../coordinator/nodes/events.ts'
import { queryEventSchemas } from '../../coordinator/query/stream/events.ts'
import type { QueryStateKind } from '../../coordinator/query/stream/state.ts'
import { systemEventSchemas } from '../../coordinator/system/events.ts'
import { cloudEventType } from '../../events/envelope.ts'
import type { Recorded, StreamReader } from '../../events/event-log.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import { isQueryId, type QueryId } from '../../shared/ids.ts'
import { queryStates } from '../query/query-states.ts'
import { createQueryTracker } from './query-tracker.ts'

/**
 * Event types by the names that a filter accepts: the type itself, and the type of its CloudEvent without the version.
 */
const typeNames = new Map(
  [queryEventSchemas, nodeEventSchemas, clusterEventSchemas, systemEventSchemas]
    .flatMap((schemas) => Object.keys(schemas))
    .flatMap((type) => [
      [type.toLowerCase(), type],
      [withoutVersion(cloudEventType(type, 1)), type],
    ]),
)

const list = z
  .union([z.string(), z.array(z.string())])
  .transform((given) => [given].flat().flatMap((text) => text.split(',')))
  .transform((items) => items.map((item) => item.trim()).filter((item) => item !== ''))

/** The first event of each query is looked up in the log. */
const MOST_QUERIES = 100

/** The parameters of `/v1/events`. Lists are separated by commas; an event passes that fits one item of every list. */
export const feedParameters = z.object({
  query: list
    .refine((ids): ids is QueryId[] => ids.every(isQueryId), 'not a query id')
    .refine((ids) => ids.length <= MOST_QUERIES, `more than ${MOST_QUERIES} queries`)
    .optional(),
  user: list.optional(),
  type: list
    .transform((names) => names.map((name) => typeNames.get(withoutVersion(name.toLowerCase())) ?? ''))
    .refine((types) => !types.includes(''), 'is not a type of events')
    .optional(),
  state: list
    .transform((states) => states.map((state) => state.toUpperCase()))
    .pipe(z.array(z.enum(queryStates)))
    .optional(),
  after: z.string().optional(),
})

export type FeedFilter = Omit<z.output<typeof feedParameters>, 'after'>

/**
 * Whether the reader may see the event, and its filter lets it pass. Called for every event, in the order of the log.
 */
export type AcceptEvent = (event: Recorded) => Promise<boolean>

/** Makes one check of filter and rights, since both need the query's owner. */
export function createFeedFilter(
  log: StreamReader,
  { query, user, type, state }: FeedFilter,
  identity: Identity,
  authorize: Authorize,
): AcceptEvent {
  const queries = query && new Set(query)
  const users = user && new Set(user)
  const types = type && new Set(type)
  const states = state && new Set<QueryStateKind>(state)
  const seesAll = authorize(identity, { action: 'viewAll' })
  const seesNodes = seesAll || authorize(identity, { action: 'listSystem' })
  const ofQueriesOnly = queries !== undefined || users !== undefined || states !== undefined
  const tracker = createQueryTracker(log, { states: states !== undefined })

  return async (event) => {
    const wantedType = types === undefined || types.has(event.type)
    if (!isQueryId(event.stream)) {
      const isOfServers = event.stream.startsWith(nodeStreamPrefix) || event.stream.startsWith(clusterStreamPrefix)
      const maySee = isOfServers ? seesNodes : seesAll
      return wantedType && maySee && !ofQueriesOnly
    }
    if (queries && !queries.has(event.stream)) return false
    // A query's state is followed through events of every type.
    if (!wantedType && !states) return false
    if (!users && !states && seesAll) return true
    const { owner, state: now } = await tracker.after(event)
    if (!wantedType || (states && !(now && states.has(now)))) return false
    if (users && !(owner !== undefined && users.has(owner.user))) return false
    return seesAll || (owner !== undefined && authorize(identity, { action: 'list', query: owner }))
  }
}

function withoutVersion(type: string): string {
  return type.replace(/\.v\d+$/, '')
}
