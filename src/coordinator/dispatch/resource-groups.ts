import type { SlotOwner } from '../../shared/fair-queue.ts'
import type { GroupPath } from './groups/group-path.ts'
import type { GroupedStatement } from './groups/group-selector.ts'
import type { GroupState } from './groups/group-state.ts'
import type { QueryUsage } from './groups/group-tree.ts'

/**
 * A slot in a resource group; it is given back once, later calls do nothing. It belongs to the query with the signal
 * of the request: when the signal is aborted, the slot is given back by itself, even if the query has not received it
 * yet.
 */
export interface GroupSlot {
  /** The group of the slot. */
  readonly group: string
  release(): void
}

/** A query that wants a slot. */
export interface Entrant {
  /** The group that is recorded for it. */
  readonly group: string
  /** The owner in whose turn it comes. */
  readonly owner: SlotOwner
  /** The statement, by which its group is chosen. */
  readonly statement: GroupedStatement
  /** The priority from its session, above 0. */
  readonly priority: number
  /** Aborted when the query ends. */
  readonly signal: AbortSignal
  /** Whether an earlier coordinator accepted it: then it comes before all new queries. */
  readonly recovered: boolean
  /** The usage of the query while it has a slot. */
  readonly usage: () => QueryUsage
  /** Whether an act holds the query: it waits until it is released. @default false */
  readonly held?: boolean
  /** Called when the query waits in another group from now on. */
  readonly moved: (queued: Queued) => void
}

/** The wait of a query. */
export interface Queued {
  readonly group: string
  /** How many queries waited there when it came, itself included: its position at worst. */
  readonly position: number
  /** The group and its limit that the query waits for now. */
  reason(): string
}

/** A query that waits for a slot. */
export interface Waiting {
  readonly queued: Queued
  /** Undefined once the signal is aborted. */
  readonly slot: Promise<GroupSlot | undefined>
  /** Keeps the query from starting until `release`. @returns false where it does not wait any more */
  hold(): boolean
  release(): void
}

export interface GroupLimits {
  /** How many queries may run at once. */
  readonly running: number
  /** How many queries may wait. */
  readonly queued: number
}

/** The figures of all groups with the same label. */
export interface GroupFigures {
  readonly group: string
  readonly running: number
  readonly queued: number
  readonly limits: GroupLimits
}

/** Slots and queue positions that are reserved for the queries of an earlier coordinator until they arrive. */
export interface Reservation {
  /** Resolves when their number is known; a new query that found no free slot for this reason waits for it. */
  readonly counted: Promise<void>
  /** Expects this many queries; slots are kept for them. */
  expect(queries: number): void
  /** Notes that one of them has arrived, or ended. */
  queryRecovered(): void
  /** Ends the reservation. */
  end(): void
}

/**
 * Admission: decides which queries run and which wait. Within a group users take turns, and each user's queries keep
 * their order. One user, or one address, leaves slots to others, so that their short statements do not wait for long
 * ones.
 */
export interface ResourceGroups {
  /** The reservation of a coordinator that takes queries over; undefined once it has ended. */
  readonly reservation: Reservation | undefined
  /** @returns a reservation that begins now */
  reserve(): Reservation
  /** The group of a query, as text; empty where no group takes it, in which case `enter` rejects it. */
  groupOf(statement: GroupedStatement): string
  /** Takes a slot whatever the limit says: admitted queries keep theirs over a restart. */
  occupy(entrant: Entrant): GroupSlot
  /** Takes a slot at once; undefined when the group is full, or is no longer the recorded one. */
  tryEnter(entrant: Entrant): GroupSlot | undefined
  /**
   * Waits for a slot; undefined once the signal is aborted.
   * @throws EngineError QUERY_QUEUE_FULL; QUERY_REJECTED or INVALID_RESOURCE_GROUP where no group takes it, also in the
   * promise
   */
  enter(entrant: Entrant): Waiting
  figures(): readonly GroupFigures[]
  /** The groups at the top. */
  roots(): readonly GroupState[]
  /** The state of a group now; undefined when it does not exist. */
  stateOf(path: GroupPath): GroupState | undefined
  stop(): void
}
