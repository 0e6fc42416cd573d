import { decodeQueryEvent } from '../coordinator/query/stream/decode-event.ts'
import type { QueryEvent, QueryEventOf } from '../coordinator/query/stream/events.ts'
import type { Recorded, StreamReader } from '../events/event-log.ts'

type Data<T extends QueryEvent['type']> = QueryEventOf<T>['data']

/** The facts of a query that are published. */
export interface QueryFacts {
  readonly queryId: string
  /** ISO UTC; also known for forgotten queries. */
  readonly createdAt: string
  /** Absent if the query was forgotten, like all fields below. */
  readonly created?: Pick<Data<'QueryCreated'>, 'sql' | 'resourceGroup'> &
    Pick<Data<'QueryCreated'>['session'], 'user' | 'source' | 'catalog' | 'schema'>
  readonly planned?: Pick<Data<'QueryPlanned'>, 'queryType' | 'updateType' | 'tables' | 'lineage'>
  readonly prepared?: Pick<Data<'WritePrepared'>, 'catalog' | 'schema' | 'table' | 'operation' | 'rows' | 'bytes'> & {
    /** The columns of the written table, if the change names them. */
    readonly columns: readonly { readonly name: string; readonly type: string }[]
  }
  readonly committed?: Data<'WriteCommitted'>
}

/** The maximum number of characters kept for one query. Larger facts are read again when they are needed. */
const MOST_CHARACTERS = 16 * 1024
/** The maximum number of queries kept. Queries that were silent longest are read again. */
const MOST_QUERIES = 2_000

/** Keeps the facts of open queries in bounded memory, and reads the others again from the log. */
export class FactKeeper {
  readonly #log: StreamReader
  readonly #known = new Map<string, QueryFacts>()

  constructor(log: StreamReader) {
    this.#log = log
  }

  /**
   * Takes an event, in the order of the log. @returns a function for the facts up to that event; rejects as
   * `readStream`
   */
  take(event: Recorded): () => Promise<QueryFacts> {
    const { stream, type } = event
    const known = this.#known.get(stream)
    this.#known.delete(stream)
    const begun = type === 'QueryCreated' ? beginningOf(event) : known
    if (begun === undefined) return () => this.#read(event)
    const facts = withEvent(begun, event)
    if (!END_EVENTS.has(type) && sizeOf(facts) <= MOST_CHARACTERS) this.#known.set(stream, facts)
    const [oldest] = this.#known.size > MOST_QUERIES ? this.#known.keys() : []
    if (oldest !== undefined) this.#known.delete(oldest)
    return () => Promise.resolve(facts)
  }

  async #read(until: Recorded): Promise<QueryFacts> {
    let facts: QueryFacts | undefined
    for await (const event of this.#log.readStream(until.stream)) {
      facts = facts === undefined ? withEvent(beginningOf(event), event) : withEvent(facts, event)
      if (event.sequence >= until.sequence) break
    }
    return facts ?? beginningOf(until)
  }
}

const END_EVENTS: ReadonlySet<string> = new Set(['QueryFinished', 'QueryFailed'])
const KEPT: ReadonlySet<string> = new Set(['QueryCreated', 'QueryPlanned', 'WritePrepared', 'WriteCommitted'])

function beginningOf({ stream, time }: Recorded): QueryFacts {
  return { queryId: stream, createdAt: time }
}

/** @throws ZodError for an event of a known type that its schema refuses */
function withEvent(facts: QueryFacts, recorded: Recorded): QueryFacts {
  const event = KEPT.has(recorded.type) ? decodeQueryEvent(recorded) : undefined
  switch (event?.type) {
    case 'QueryCreated': {
      const { sql, resourceGroup, session } = event.data
      const { user, source, catalog, schema } = session
      return {
        ...facts,
        created: { sql, resourceGroup, user, ...defined({ source, catalog, schema }) },
      }
    }
    case 'QueryPlanned': {
      const { queryType, updateType, tables, lineage } = event.data
      return { ...facts, planned: { queryType, tables, ...defined({ updateType, lineage }) } }
    }
    case 'WritePrepared': {
      const { catalog, schema, table, operation, rows, bytes, prepared } = event.data
      const { change } = prepared
      const named = 'definition' in change ? change.definition.columns : 'columns' in change ? change.columns : []
      const columns = (named.length > 0 ? named : prepared.columns).map(({ name, type }) => ({ name, type }))
      return { ...facts, prepared: { catalog, schema, operation, rows, bytes, columns, ...defined({ table }) } }
    }
    case 'WriteCommitted':
      return { ...facts, committed: event.data }
    default:
      return facts
  }
}

function sizeOf({ created, planned, prepared }: QueryFacts): number {
  return (created?.sql.length ?? 0) + JSON.stringify([planned, prepared]).length
}

/** Drops undefined fields. */
function defined<T extends object>(of: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(of).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}
