import { deferred } from '../../shared/deferred.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { FairQueue, type SlotOwner } from '../../shared/fair-queue.ts'
import { Shares } from '../../shared/shares.ts'
import { groupText, type GroupPath } from './groups/group-path.ts'
import type { GroupedStatement } from './groups/group-selector.ts'
import type { GroupState } from './groups/group-state.ts'
import type { QueryUsage } from './groups/group-tree.ts'

/**
 * A place in a resource group; given back once, later calls do nothing. It belongs to the query whose signal it was asked
 * for with: aborted, it is given back by itself, whether anybody has taken it in hand yet or not.
 */
export interface GroupSlot {
  /** Where it is. */
  readonly group: string
  release(): void
}

/** Who wants a place. */
export interface Entrant {
  /** Its group as it is recorded. */
  readonly group: string
  /** Whose turn it is. */
  readonly owner: SlotOwner
  /** What its group is chosen by. */
  readonly statement: GroupedStatement
  /** Of its session, above 0. */
  readonly priority: number
  /** Aborted when it ends. */
  readonly signal: AbortSignal
  /** It came to the coordinator before: earlier than whoever is new. */
  readonly recovered: boolean
  /** What it uses while it has a place. */
  readonly usage: () => QueryUsage
  /** It waits in another group from now on. */
  readonly moved: (queued: Queued) => void
}

/** Where a query waits. */
export interface Queued {
  readonly group: string
  /** How many waited there when it came, it included: its position at worst. */
  readonly position: number
  /** Which limit of which group it waits for, now. */
  reason(): string
}

export interface GroupLimits {
  /** Queries that may run at once. */
  readonly running: number
  /** Queries that may wait. */
  readonly queued: number
}

/** Of all groups that have the same name among figures. */
export interface GroupFigures {
  readonly group: string
  readonly running: number
  readonly queued: number
  readonly limits: GroupLimits
}

/** Places and turns that queries of the coordinator before have, until they are here to take them. */
export interface Reservation {
  /** Resolves when it is known how many there are; who is new and found none of the places for such waits for that. */
  readonly counted: Promise<void>
  /** So many come; places are kept for them. */
  expect(queries: number): void
  /** One has come, or ended. */
  queryRecovered(): void
  /** Nothing is kept any more. */
  end(): void
}

/**
 * Admission: who runs now and who waits: within a group users take turns, and each has his in the order of their coming.
 * One user, or one address, leaves places to others, whose short statements would else wait for long ones.
 */
export interface ResourceGroups {
  /** Of a coordinator that takes queries over; undefined once it has ended. */
  readonly reservation: Reservation | undefined
  /** @returns the reservation, for one that begins now */
  reserve(): Reservation
  /** The group of a query, as text; empty where no group takes it, which it is told when it enters. */
  groupOf(statement: GroupedStatement): string
  /** A place whatever the limit says: admitted queries keep theirs over a restart. */
  occupy(entrant: Entrant): GroupSlot
  /** A place at once, or undefined when the group is full, or no more the one that is recorded. */
  tryEnter(entrant: Entrant): GroupSlot | undefined
  /**
   * Waits for a place; undefined once the signal is aborted.
   * @throws EngineError QUERY_QUEUE_FULL, QUERY_REJECTED where no group takes it; the latter also in the promise
   */
  enter(entrant: Entrant): { readonly queued: Queued; readonly slot: Promise<GroupSlot | undefined> }
  figures(): readonly GroupFigures[]
  /** Those at the top. */
  roots(): readonly GroupState[]
  /** A group as it is now; undefined: there is none. */
  stateOf(path: GroupPath): GroupState | undefined
  stop(): void
}

export const GLOBAL_GROUP = 'global'

/** Of a query that has ended. */
const NO_PLACE: GroupSlot = { group: GLOBAL_GROUP, release() {} }

interface Waiting {
  wake(slot: GroupSlot): void
  readonly signal: AbortSignal
  readonly owner: SlotOwner
}

interface Group {
  running: number
  /** Of those, who came to this coordinator. */
  fresh: number
  /** Of the same. */
  readonly shares: Shares
  /** Those that waited for the coordinator before, in their old order. */
  readonly recovered: Waiting[]
  readonly waiting: FairQueue<Waiting>
}

/** Of so many places one is for who is new, however many the coordinator before left waiting. */
const PLACES_FOR_ONE_NEW = 4

/** One group for all, without a file that says otherwise: users take turns in it. */
export function createResourceGroups(limits: GroupLimits): ResourceGroups {
  const group: Group = { running: 0, fresh: 0, shares: new Shares(), recovered: [], waiting: new FairQueue() }
  const forNew = Math.floor(limits.running / PLACES_FOR_ONE_NEW)
  /** Queries that are still to come. */
  let expected = 0
  let reservation: Reservation | undefined
  /** @param fresh whose it is, of one that came to this coordinator */
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
  /** May who is new have a place, where one is free? */
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
      // It was in a group of rules that are there no more: that it is in this one is told.
      if (recorded !== GLOBAL_GROUP) return undefined
      const free = limits.running - group.running
      // Others who wait while there are free ones have too many.
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

/** As Trino tells of a group that has places and turns, and nothing else. */
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

/** @returns takes it out again */
function atEndOf(queue: Waiting[], entry: Waiting): () => void {
  queue.push(entry)
  return () => {
    const index = queue.indexOf(entry)
    if (index >= 0) queue.splice(index, 1)
  }
}

/**
 * Waits in a queue; undefined when the query is canceled before it has its place.
 * @param push puts it into the queue, and returns what takes it out again
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
