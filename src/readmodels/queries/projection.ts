import { evolve } from '../../coordinator/query/stream/evolve.ts'
import {
  initialQueryState,
  isTerminal,
  type KnownQuery,
  type QueryState,
} from '../../coordinator/query/stream/state.ts'
import { memoryOf } from '../../events/envelope.ts'
import type { Recorded } from '../../events/event-log.ts'
import type { QueryRows, TableWrite } from '../../events/projection.ts'
import { queryOfStream } from '../../shared/ids.ts'
import { readStreams } from '../query-events/queries.ts'
import { parseQueryEvent } from './query-event.ts'
import { columnsReadRows } from './columns-read.ts'
import { operatorRows, queryRow, stageRows, tableAccessRows, taskRow } from './rows.ts'
import { columnsReadTable, operatorsTable, queriesTable, stagesTable, tableAccessTable, tasksTable } from './tables.ts'

/** The fold of a query up to one of its events. */
export interface QueryFold {
  readonly state: QueryState
  readonly sequence: number
  readonly epoch: number
  readonly incomplete: boolean
  /** Memory of its events; the fold holds a part of them. */
  readonly bytes: number
}

const nothing: QueryFold = { state: initialQueryState, sequence: 0, epoch: 0, incomplete: false, bytes: 0 }

/**
 * The queries of a batch: the fold of each before the batch, and after the events applied so far. Rows are functions of
 * the fold, so they do not depend on how events were cut into batches.
 */
export interface QueryBatch {
  /** Applies an event. @throws the parser's error when the event does not fit its type */
  apply(event: Recorded): void
  /** Marks the query as incomplete, because this event was not applied. */
  leaveOut(event: Recorded): void
  writes(): readonly TableWrite[]
  keep(): void
}

interface Kept {
  readonly queries: number
  /** Memory of the events of all queries together. */
  readonly bytes: number
}

/** Limit of open queries to keep … */
const OPEN_KEPT: Kept = { queries: 20_000, bytes: 64 << 20 }
/** … and of ended ones: few events follow, and a plan is large. */
const ENDED_KEPT: Kept = { queries: 500, bytes: 16 << 20 }

/** Folds of queries that may get more events; a dropped one is folded again from its stored events. */
export class QueryFolds {
  readonly #open: KeptFolds
  readonly #ended: KeptFolds

  constructor(kept = { open: OPEN_KEPT, ended: ENDED_KEPT }) {
    this.#open = new KeptFolds(kept.open)
    this.#ended = new KeptFolds(kept.ended)
  }

  clear(): void {
    this.#open.clear()
    this.#ended.clear()
  }

  /** Approximate memory of all kept queries, bytes. */
  get bytes(): number {
    return this.#open.bytes + this.#ended.bytes
  }

  forget(stream: string): void {
    this.#open.delete(stream)
    this.#ended.delete(stream)
  }

  async begin(events: readonly Recorded[], query: QueryRows): Promise<QueryBatch> {
    const before = new Map<string, QueryFold>()
    const missing = new Set<string>()
    for (const { stream, sequence } of events) {
      if (before.has(stream)) continue
      const kept = this.#open.get(stream) ?? this.#ended.get(stream)
      before.set(stream, kept ?? nothing)
      if (!kept && sequence > 1) missing.add(stream)
    }
    if (missing.size > 0)
      for (const [stream, fold] of foldStored(await readStreams(query, [...missing]))) before.set(stream, fold)
    return new Batch(before, (after) => this.#keep(after))
  }

  #keep(after: ReadonlyMap<string, QueryFold>): void {
    for (const [stream, fold] of after) {
      this.#open.delete(stream)
      this.#ended.delete(stream)
      ;(isTerminal(fold.state.kind) ? this.#ended : this.#open).set(stream, fold)
    }
  }
}

/** The newest folds, up to a limit of number and size. */
class KeptFolds {
  readonly #folds = new Map<string, QueryFold>()
  readonly #most: Kept
  bytes = 0

  constructor(most: Kept) {
    this.#most = most
  }

  get(stream: string): QueryFold | undefined {
    return this.#folds.get(stream)
  }

  set(stream: string, fold: QueryFold): void {
    this.delete(stream)
    this.#folds.set(stream, fold)
    this.bytes += fold.bytes
    for (const oldest of this.#folds.keys()) {
      if (this.#folds.size <= this.#most.queries && this.bytes <= this.#most.bytes) return
      this.delete(oldest)
    }
  }

  delete(stream: string): void {
    this.bytes -= this.#folds.get(stream)?.bytes ?? 0
    this.#folds.delete(stream)
  }

  clear(): void {
    this.#folds.clear()
    this.bytes = 0
  }
}

/** Folds whole stored streams. An event that does not fit ends the fold of its stream, as it did the first time. */
function foldStored(events: readonly Recorded[]): Map<string, QueryFold> {
  const folds = new Map<string, QueryFold>()
  for (const event of events) {
    const fold = folds.get(event.stream) ?? nothing
    if (!fold.incomplete) folds.set(event.stream, after(fold, event))
  }
  return folds
}

/** Folds one stream from its beginning; used by `quipu rebuild --query`, time travel and ended queries. */
export function foldQueryStream(events: readonly Recorded[]): QueryFold {
  return foldStored(events).values().next().value ?? nothing
}

function after(fold: QueryFold, event: Recorded): QueryFold {
  try {
    return step(fold, event)
  } catch {
    return { ...fold, incomplete: true }
  }
}

function step(fold: QueryFold, event: Recorded): QueryFold {
  const parsed = parseQueryEvent(event)
  return {
    state: parsed ? evolve(queryOfStream(event.stream), fold.state, parsed) : fold.state,
    sequence: event.sequence,
    epoch: event.epoch,
    incomplete: fold.incomplete,
    bytes: fold.bytes + memoryOf(event),
  }
}

class Batch implements QueryBatch {
  readonly #before: ReadonlyMap<string, QueryFold>
  readonly #after = new Map<string, QueryFold>()
  readonly #keep: (after: ReadonlyMap<string, QueryFold>) => void

  constructor(before: ReadonlyMap<string, QueryFold>, keep: (after: ReadonlyMap<string, QueryFold>) => void) {
    this.#before = before
    this.#keep = keep
  }

  apply(event: Recorded): void {
    this.#after.set(event.stream, step(this.#at(event), event))
  }

  leaveOut(event: Recorded): void {
    this.#after.set(event.stream, { ...this.#at(event), incomplete: true })
  }

  writes(): readonly TableWrite[] {
    const changed = [...this.#after].flatMap(([stream, fold]) =>
      fold.state.kind === 'NONE'
        ? []
        : [{ now: fold.state, fold, was: known(this.#before.get(stream)?.state ?? initialQueryState) }],
    )
    const newTasks = changed.flatMap(({ now, was }) =>
      [...now.tasks.values()]
        .filter((task) => was?.tasks.get(task.taskId) !== task)
        .map((task) => ({ queryId: now.queryId, task })),
    )
    const newlyPlanned = changed.filter(({ now, was }) => now.planned !== was?.planned)
    return [
      queriesTable.upsert(changed.map(({ now, fold }) => queryRow(now, fold))),
      stagesTable.upsert(changed.flatMap(({ now }) => stageRows(now))),
      tasksTable.upsert(newTasks.map(({ queryId, task }) => taskRow(queryId, task))),
      operatorsTable.upsert(newTasks.flatMap(({ queryId, task }) => operatorRows(queryId, task))),
      tableAccessTable.upsert(newlyPlanned.flatMap(({ now }) => tableAccessRows(now))),
      columnsReadTable.upsert(newlyPlanned.flatMap(({ now }) => columnsReadRows(now))),
    ].filter((write) => write !== undefined)
  }

  keep(): void {
    this.#keep(this.#after)
  }

  #at(event: Recorded): QueryFold {
    return this.#after.get(event.stream) ?? this.#before.get(event.stream) ?? nothing
  }
}

function known(state: QueryState): KnownQuery | undefined {
  return state.kind === 'NONE' ? undefined : state
}
