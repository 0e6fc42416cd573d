import { decodeQueryEvent } from '../../coordinator/query/stream/decode-event.ts'
import type { QueryEvent } from '../../coordinator/query/stream/events.ts'
import { evolve } from '../../coordinator/query/stream/evolve.ts'
import { queryOfStream } from '../../shared/ids.ts'
import {
  initialQueryState,
  isTerminal,
  type QueryState,
  type QueryStateKind,
} from '../../coordinator/query/stream/state.ts'
import type { Recorded, StreamReader } from '../../events/event-log.ts'
import type { QueryOwner } from '../../security/authorization.ts'

/** The facts about a query that filters and rights need; absent where the log does not have them (forgotten data). */
interface QueryFacts {
  readonly owner: QueryOwner | undefined
  /** The state after the event; undefined also where states are not followed. */
  readonly state: QueryStateKind | undefined
}

/** Follows the queries whose events pass by. Events from before the reader came are read from the query's stream. */
export interface QueryTracker {
  /**
   * Returns the facts after an event.
   * @param event of a query; where states are followed, events of a stream without gaps are fastest
   * @throws LogUnavailable
   */
  after(event: Recorded): Promise<QueryFacts>
}

interface Entry {
  sequence: number
  owner: QueryOwner | undefined
  kind: QueryStateKind
  /** Dropped when the query has ended, since nothing changes it any more. */
  state: QueryState | undefined
}

/**
 * The most queries in memory. The ones whose events came longest ago are dropped, and read again when their next event
 * comes.
 */
const MAX_QUERIES = 1000

export function createQueryTracker(
  log: StreamReader,
  follow: { readonly states: boolean },
  maxQueries = MAX_QUERIES,
): QueryTracker {
  const entries = new Map<string, Entry>()

  function advance(entry: Entry, recorded: Recorded): void {
    entry.sequence = recorded.sequence
    const event = entry.state && (follow.states || recorded.sequence === 1) ? decoded(recorded) : undefined
    if (!entry.state || !event) return
    if (event.type === 'QueryCreated') entry.owner = ownerOf(event.data.session)
    if (!follow.states) return
    const state = evolve(queryOfStream(recorded.stream), entry.state, slim(event))
    entry.kind = state.kind
    entry.state = isTerminal(state.kind) ? undefined : state
  }

  async function entryAfter(event: Recorded): Promise<Entry> {
    const known = entries.get(event.stream)
    if (known && !follow.states) return known
    if (known && known.sequence >= event.sequence - 1) {
      if (known.sequence < event.sequence) advance(known, event)
      return known
    }
    const entry: Entry = { sequence: 0, owner: undefined, kind: 'NONE', state: initialQueryState }
    if (event.sequence === 1) advance(entry, event)
    else {
      for await (const earlier of log.readStream(event.stream)) {
        if (earlier.sequence > event.sequence) break
        advance(entry, earlier)
        if (!follow.states) break
      }
    }
    return entry
  }

  return {
    async after(event) {
      const entry = await entryAfter(event)
      entries.delete(event.stream)
      entries.set(event.stream, entry)
      if (entries.size > maxQueries) entries.delete(entries.keys().next().value!)
      return { owner: entry.owner, state: follow.states && entry.kind !== 'NONE' ? entry.kind : undefined }
    },
  }
}

/** Copies the owner alone, since a session may be long. */
function ownerOf({ user, originalUser }: QueryOwner): QueryOwner {
  return { user, originalUser }
}

/** An event whose data does not fit its schema changes no state here; the projection makes a dead letter of it. */
function decoded(recorded: Recorded): QueryEvent | undefined {
  try {
    return decodeQueryEvent(recorded)
  } catch {
    return undefined
  }
}

/** Drops large parts that do not affect the state: texts, plans, figures of operators. */
function slim(event: QueryEvent): QueryEvent {
  switch (event.type) {
    case 'QueryCreated':
      return { ...event, data: { ...event.data, sql: '' } }
    case 'QueryPlanned': {
      const { outline: _outline, ...data } = event.data
      return { ...event, data: { ...data, stages: [], columns: [], tables: [] } }
    }
    case 'TaskFinished':
      return { ...event, data: { ...event.data, stats: { ...event.data.stats, pipelines: [] } } }
    case 'QueryProgressed':
      return {
        ...event,
        data: { tasks: event.data.tasks.map((task) => ({ ...task, stats: { ...task.stats, pipelines: [] } })) },
      }
    case 'TaskFailed':
    case 'TaskCanceled': {
      const { stats: _stats, ...data } = event.data
      return { ...event, data } as QueryEvent
    }
    default:
      return event
  }
}
