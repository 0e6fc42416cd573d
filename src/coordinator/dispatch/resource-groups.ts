import { deferred } from '../../shared/deferred.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { FairQueue, type SlotOwner } from '../../shared/fair-queue.ts'
import { Shares } from '../../shared/shares.ts'
import { groupText, type GroupPath } from './groups/group-path.ts'
import type { GroupedStatement } from './groups/group-selector.ts'
import type { GroupState } from './groups/group-state.ts'
import type { QueryUsage } from './groups/group-tree.ts'

/**
 * A place in a resource group; it is given back once, later calls do nothing. It belongs to the query with the signal
 * of the request: when the signal is aborted, the place is given back by itself, even if the query has not received it
 * yet.
 */
export interface GroupSlot {
  /** The group of the place. */
  readonly group: string
  release(): void
}

/** A query that wants a place. */
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
  /** The usage of the query while it has a place. */
  readonly usage: () => QueryUsage
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

/** Places and turns that are reserved for the queries of an earlier coordinator, until they arrive to take them. */
export interface Reservation {
  /** Resolves when their number is known; a new query that found no free place for this reason waits for it. */
  readonly counted: Promise<void>
  /** Expects this many queries; places are kept for them. */
  expect(queries: number): void
  /** Notes that one of them has arrived, or ended. */
  queryRecovered(): void
  /** Ends the reservation. */
  end(): void
}

/**
 * Admission: decides which queries run and which wait. Within a group users take turns, and each user's queries keep
 * their order. One user, or one address, leaves places to others, so that their short statements do not wait for long
 * ones.
 */
export interface ResourceGroups {
  /** The reservation of a coordinator that takes queries over; undefined once it has ended. */
  readonly reservation: Reservation | undefined
  /** @returns a reservation that begins now */
  reserve(): Reservation
  /** The group of a query, as text; empty where no group takes it, in which case `enter` rejects it. */
  groupOf(statement: GroupedStatement): string
  /** Takes a place whatever the limit says: admitted queries keep theirs over a restart. */
  occupy(entrant: Entrant): GroupSlot
  /** Takes a place at once; undefined when the group is full, or is no longer the recorded one. */
  tryEnter(entrant: Entrant): GroupSlot | undefined
  /**
   * Waits for a place; undefined once the signal is aborted.
   * @throws EngineError QUERY_QUEUE_FULL; QUERY_REJECTED or INVALID_RESOURCE_GROUP where no group takes it, also in the
   * promise
   */
  enter(entrant: Entrant): { readonly queued: Queued; readonly slot: Promise<GroupSlot | undefined> }
  figures(): readonly GroupFigures[]
  /** The groups at the top. */
  roots(): readonly GroupState[]
  /** The state of a group now; undefined when it does not exist. */
  stateOf(path: GroupPath): GroupState | undefined
  stop(): void
}

export const GLOBAL_GROUP = 'global'

/** The place of a query that has already ended. */
const NO_PLACE: GroupSlot = { group: GLOBAL_GROUP, release() {} }

interface Waiting {
  wake(slot: GroupSlot): void
  readonly signal: AbortSignal
  readonly owner: SlotOwner
}

interface Group {
  running: number
  /** How many of them came first to this coordinator. */
  fresh: number
  /** The shares of the same queries. */
  readonly shares: Shares
  /** Queries that waited at an earlier coordinator, in their old order. */
  readonly recovered: Waiting[]
  readonly waiting: FairQueue<Waiting>
}

/** One place of this many is for new queries, however many the earlier coordinator left waiting. */
const PLACES_FOR_ONE_NEW = 4

/** The groups without a file of rules: one group for all, in which users take turns. */
export function createResourceGroups(limits: GroupLimits): ResourceGroups {
  const group: Group = { running: 0, fresh: 0, shares: new Shares(), recovered: [], waiting: new FairQueue() }
  const forNew = Math.floor(limits.running / PLACES_FOR_ONE_NEW)
  /** The number of recovered queries that are still to come. */
  let expected = 0
  let reservation: Reservation | undefined
  /** @param fresh the owner of a query that came first to this coordinator */
  function take(signal: AbortSignal, fresh?: SlotOwner): GroupSlot {
    if (signal.aborted) return NO_PLACE
    const leave = fresh && group.shares.take(fresh)
    group.running++
    if (fresh) group.fresh++
    let held = true
    function release(): void {
      if (!held) return
      held = false
      signal.removeEventListener('abort', release)
      leave?.()
      group.running--
      if (fresh) group.fresh--
      admit()
    }
    signal.addEventListener('abort', release)
    return { group: GLOBAL_GROUP, release }
  }
  /** Whether a free place may go to a new query. */
  function isForNew(): boolean {
    if (group.fresh < forNew) return true
    return group.recovered.length === 0 && group.running + expected < limits.running
  }
  function admit(): void {
    while (group.running < limits.running) {
      const fresh = isForNew() ? group.waiting.shift(group.shares.among(limits.running - group.running)) : undefined
      const next = fresh ?? group.recovered.shift()
      if (!next) return
      next.wake(take(next.signal, fresh?.owner))
    }
  }
  function expectOnly(queries: number): void {
    expected = Math.max(0, queries)
    admit()
  }
  const queued = (): number => group.recovered.length + group.waiting.length
  return {
    get reservation() {
      return reservation
    },
    reserve() {
      const counted = deferred()
      expected = Number.POSITIVE_INFINITY
      return (reservation = {
        counted: counted.promise,
        expect(queries) {
          expectOnly(queries)
          counted.resolve()
        },
        queryRecovered: () => expectOnly(expected - 1),
        end() {
          reservation = undefined
          expectOnly(0)
          counted.resolve()
        },
      })
    },
    groupOf: () => GLOBAL_GROUP,
    occupy: ({ signal }) => take(signal),
    tryEnter({ group: recorded, signal, owner, recovered }) {
      // It was in a group of rules that no longer exist: an event must record that it is in this one now.
      if (recorded !== GLOBAL_GROUP) return undefined
      const free = limits.running - group.running
      // If others wait although places are free, their owners already have their share.
      const isNext = recovered
        ? group.recovered.length === 0
        : isForNew() && group.waiting.lengthOf(owner) === 0 && group.shares.may(owner, free)
      return isNext && free > 0 ? take(signal, recovered ? undefined : owner) : undefined
    },
    enter({ signal, owner, recovered }) {
      const before = queued()
      if (!recovered && before >= limits.queued)
        throw new EngineError('QUERY_QUEUE_FULL', `Too many queued queries for "${GLOBAL_GROUP}"`)
      const position = (recovered ? group.recovered.length : before) + 1
      const slot = slotIn((entry) => (recovered ? atEndOf(group.recovered, entry) : group.waiting.push(owner, entry)), {
        signal,
        owner,
      })
      const why =
        group.running >= limits.running
          ? `resource group "${GLOBAL_GROUP}" is full`
          : `the other places of resource group "${GLOBAL_GROUP}" are for other users and addresses`
      const reason = `${why}; position ${position}`
      admit()
      return { queued: { group: GLOBAL_GROUP, position, reason: () => reason }, slot }
    },
    figures: () => [{ group: GLOBAL_GROUP, running: group.running, queued: queued(), limits }],
    roots: () => [stateOfOne(group.running, queued(), limits)],
    stateOf: (path) => (groupText(path) === GLOBAL_GROUP ? stateOfOne(group.running, queued(), limits) : undefined),
    stop() {},
  }
}

/** The state in Trino's form of a group that has only places and turns. */
function stateOfOne(running: number, queued: number, limits: GroupLimits): GroupState {
  return {
    path: [GLOBAL_GROUP],
    state: running < limits.running ? 'CAN_RUN' : queued < limits.queued ? 'CAN_QUEUE' : 'FULL',
    schedulingPolicy: 'fair',
    schedulingWeight: 1,
    softMemoryLimitBytes: Infinity,
    softConcurrencyLimit: limits.running,
    hardConcurrencyLimit: limits.running,
    hardScanLimitBytes: Infinity,
    maxQueued: limits.queued,
    memoryBytes: 0,
    cpuMillis: 0,
    scannedBytes: 0,
    running,
    queued,
    eligibleSubGroups: 0,
    subGroups: [],
  }
}

/** @returns a function that removes the entry again */
function atEndOf(queue: Waiting[], entry: Waiting): () => void {
  queue.push(entry)
  return () => {
    const index = queue.indexOf(entry)
    if (index >= 0) queue.splice(index, 1)
  }
}

/**
 * Waits in a queue; undefined when the query is canceled before it gets its place.
 * @param push adds the entry to the queue, and returns a function that removes it again
 */
function slotIn(
  push: (entry: Waiting) => () => void,
  { signal, owner }: Pick<Waiting, 'signal' | 'owner'>,
): Promise<GroupSlot | undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(undefined)
    const leave = (): void => {
      out()
      resolve(undefined)
    }
    const out = push({
      wake(given) {
        signal.removeEventListener('abort', leave)
        resolve(given)
      },
      signal,
      owner,
    })
    signal.addEventListener('abort', leave)
  })
}
