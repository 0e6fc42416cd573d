import type { QueryId } from '../../../shared/ids.ts'
import { failureOf } from '../../../shared/engine-error.ts'
import type { Clock } from '../../../shared/clock.ts'
import { WaitList } from '../../../shared/wait-list.ts'
import type { QueryExecution } from './query-handle.ts'
import { isTerminal } from '../stream/state.ts'

/** The queries of this coordinator: open ones, and ended ones while their last answer may be asked for again. */
export interface QueryRegistry {
  /** Adds a query until it is removed; a query that the log refuses never existed, and leaves by itself. */
  add(execution: QueryExecution): void
  /** Resolves when a query was added, when recovery has failed a query, or after `ms`. */
  added(ms: number): Promise<void>
  /** Notes that recovery has failed a query. The registry does not get this query: its end is in the log. */
  failedInRecovery(): void
  get(queryId: QueryId): QueryExecution | undefined
  list(): readonly QueryExecution[]
  /** Queries that have not ended. */
  readonly open: number
  /** Notes a request of the query's client; any request counts. */
  touch(queryId: QueryId): void
  onRemoved(listener: (execution: QueryExecution) => void): void
  /** Removes an ended query: later requests are answered from the log. */
  remove(queryId: QueryId): void
  stop(): void
}

export interface RetentionLimits {
  readonly firstFollowMs: number
  readonly clientAbsentMs: number
  /** An ended query leaves memory this long after the last request for it, milliseconds. */
  readonly inMemoryMs: number
  /**
   * If ended queries hold more bytes than this together, the first ended leave memory, however recently they were asked
   * for.
   */
  readonly endedBytes: number
  /**
   * If there are more ended queries than this, those that can be answered otherwise leave memory, although reads still
   * need them.
   */
  readonly endedInMemory: number
}

interface Entry {
  readonly execution: QueryExecution
  /** Bytes of an ended query. */
  bytes: number
  readonly addedAt: number
  touchedAt: number
  endedAt: number | undefined
}

/**
 * @param mayForget whether the projection has passed the query's last event, so that reads no longer need the aggregate
 * @param leave whether the statement of an ended query can be answered without it, though the projection does not know
 * it yet
 */
export function createQueryRegistry(
  clock: Clock,
  limits: RetentionLimits,
  mayForget: (execution: QueryExecution) => boolean,
  leave: (execution: QueryExecution) => boolean = () => false,
): QueryRegistry {
  const entries = new Map<QueryId, Entry>()
  const removed: ((execution: QueryExecution) => void)[] = []
  let open = 0
  /** Ended queries, in the order of their ends. */
  const ended = new Set<Entry>()
  let endedBytes = 0
  /** Callers that wait for the next query that recovery has decided about. */
  const arrivals = new WaitList()

  function sweep(): void {
    const now = clock.monotonicMs()
    let tooMany = entries.size - open - limits.endedInMemory
    for (const [queryId, entry] of entries) {
      const { execution } = entry
      if (entry.endedAt === undefined) {
        const absent = now - entry.touchedAt
        if (!execution.followed && now - entry.addedAt > limits.firstFollowMs) abandon(execution, limits.firstFollowMs)
        else if (absent > limits.clientAbsentMs) abandon(execution, limits.clientAbsentMs)
      } else if (
        now - Math.max(entry.endedAt, entry.touchedAt) > limits.inMemoryMs &&
        (mayForget(execution) || (tooMany > 0 && leave(execution)))
      ) {
        // Later requests are answered from the log, whose pages are kept longer than this object.
        remove(queryId)
        tooMany--
      }
    }
  }

  function remove(queryId: QueryId): void {
    const entry = entries.get(queryId)
    if (entry?.endedAt === undefined) return
    drop(entry)
    for (const listener of removed) listener(entry.execution)
  }

  function drop(entry: Entry): void {
    const { execution } = entry
    entries.delete(execution.queryId)
    if (ended.delete(entry)) endedBytes -= entry.bytes
    execution.dispose()
  }

  /** Counts a query as ended. @returns false when it was already */
  function close(entry: Entry): boolean {
    if (entry.endedAt !== undefined) return false
    entry.endedAt = clock.monotonicMs()
    entry.bytes = entry.execution.bytes
    endedBytes += entry.bytes
    ended.add(entry)
    open--
    return true
  }

  /** Frees memory at once instead of at the next sweep: thousands of large queries may end within a second. */
  function makeRoom(): void {
    for (const { execution } of ended) {
      if (endedBytes <= limits.endedBytes) return
      if (mayForget(execution) || leave(execution)) remove(execution.queryId)
    }
  }
  const timer = setInterval(sweep, 1000)
  timer.unref()

  return {
    add(execution) {
      const now = clock.monotonicMs()
      const entry: Entry = { execution, bytes: 0, addedAt: now, touchedAt: now, endedAt: undefined }
      entries.set(execution.queryId, entry)
      open++
      arrivals.wake()
      execution.aggregate.onValid(() => {
        if (!isTerminal(execution.aggregate.state.kind) || !close(entry)) return
        // After the other listeners of this end.
        if (endedBytes > limits.endedBytes) setImmediate(makeRoom)
      })
      execution.created.catch(() => {
        if (close(entry)) drop(entry)
      })
    },
    added: (ms) => arrivals.wait(ms),
    failedInRecovery: () => arrivals.wake(),
    get: (queryId) => entries.get(queryId)?.execution,
    list: () => [...entries.values()].map((entry) => entry.execution),
    get open() {
      return open
    },
    touch(queryId) {
      const entry = entries.get(queryId)
      if (entry) entry.touchedAt = clock.monotonicMs()
    },
    remove,
    onRemoved: (listener) => void removed.push(listener),
    stop: () => clearInterval(timer),
  }
}

function abandon(execution: QueryExecution, afterMs: number): void {
  const minutes = (afterMs / 60_000).toFixed(2)
  const message = `Query ${execution.queryId} was abandoned by the client, as it may have exited or stopped checking for query results. Query results have not been accessed for ${minutes}m`
  void execution.fail(failureOf('ABANDONED_QUERY', message)).catch(() => {})
}
