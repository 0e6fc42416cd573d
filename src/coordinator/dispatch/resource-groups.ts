import { deferred } from '../../shared/deferred.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { FairQueue, type TurnOwner } from '../../shared/fair-queue.ts'
import { Shares } from '../../shared/shares.ts'

/**
 * A place in a resource group; given back once, later calls do nothing. It belongs to the query whose signal it was asked
 * for with: aborted, it is given back by itself, whether anybody has taken it in hand yet or not.
 */
export interface GroupPlace {
  release(): void
}

export interface GroupLimits {
  /** Queries that may run at once. */
  readonly running: number
  /** Queries that may wait. */
  readonly queued: number
}

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
  came(): void
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
  /** The group of a query; one for all until rules are configured. */
  groupOf(session: { readonly user: string; readonly source?: string | undefined }): string
  /** A place whatever the limit says: admitted queries keep theirs over a restart. */
  occupy(group: string, signal: AbortSignal): GroupPlace
  /**
   * A place at once, or undefined when the group is full, or its owner has so many that the others are for others.
   * @param recovered it came to the coordinator before: earlier than whoever is new, for whom a quarter of the places is
   *   kept all the same
   */
  tryEnter(group: string, signal: AbortSignal, owner: TurnOwner, recovered?: boolean): GroupPlace | undefined
  /**
   * Waits for a place; undefined once the signal is aborted.
   * @param owner whose turn it is
   * @param recovered it waits before whoever is new and found none of the places for such, however many wait
   * @returns how many wait then, it included: its position at worst; whether no place is free, or only none for this owner
   * @throws EngineError QUERY_QUEUE_FULL
   */
  enter(
    group: string,
    signal: AbortSignal,
    owner: TurnOwner,
    recovered?: boolean,
  ): { readonly position: number; readonly full: boolean; readonly place: Promise<GroupPlace | undefined> }
  figures(): readonly GroupFigures[]
}

/** Of a query that has ended. */
const NO_PLACE: GroupPlace = { release() {} }

interface Waiting {
  wake(place: GroupPlace): void
  readonly signal: AbortSignal
  readonly owner: TurnOwner
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

export const GLOBAL_GROUP = 'global'

/** Of so many places one is for who is new, however many the coordinator before left waiting. */
const PLACES_FOR_ONE_NEW = 4

export function createResourceGroups(limits: GroupLimits): ResourceGroups {
  const groups = new Map<string, Group>()
  const forNew = Math.floor(limits.running / PLACES_FOR_ONE_NEW)
  /** Queries that are still to come. */
  let expected = 0
  let reservation: Reservation | undefined
  const of = (name: string): Group => {
    let group = groups.get(name)
    if (!group) {
      group = { running: 0, fresh: 0, shares: new Shares(), recovered: [], waiting: new FairQueue() }
      groups.set(name, group)
    }
    return group
  }
  of(GLOBAL_GROUP)
  /** @param fresh whose it is, of one that came to this coordinator */
  function take(group: Group, signal: AbortSignal, fresh?: TurnOwner): GroupPlace {
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
      admit(group)
    }
    signal.addEventListener('abort', release)
    return { release }
  }
  /** May who is new have a place, where one is free? */
  function isForNew(group: Group): boolean {
    if (group.fresh < forNew) return true
    return group.recovered.length === 0 && group.running + expected < limits.running
  }
  function admit(group: Group): void {
    while (group.running < limits.running) {
      const fresh = isForNew(group)
        ? group.waiting.shift(group.shares.among(limits.running - group.running))
        : undefined
      const next = fresh ?? group.recovered.shift()
      if (!next) return
      next.wake(take(group, next.signal, fresh?.owner))
    }
  }
  function expectOnly(queries: number): void {
    expected = Math.max(0, queries)
    for (const group of groups.values()) admit(group)
  }
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
        came: () => expectOnly(expected - 1),
        end() {
          reservation = undefined
          expectOnly(0)
          counted.resolve()
        },
      })
    },
    groupOf: () => GLOBAL_GROUP,
    occupy: (name, signal) => take(of(name), signal),
    tryEnter(name, signal, owner, recovered = false) {
      const group = of(name)
      const free = limits.running - group.running
      // Others who wait while there are free ones have too many.
      const isNext = recovered
        ? group.recovered.length === 0
        : isForNew(group) && group.waiting.lengthOf(owner) === 0 && group.shares.may(owner, free)
      return isNext && free > 0 ? take(group, signal, recovered ? undefined : owner) : undefined
    },
    enter(name, signal, owner, recovered = false) {
      const group = of(name)
      const before = group.recovered.length + group.waiting.length
      if (!recovered && before >= limits.queued)
        throw new EngineError('QUERY_QUEUE_FULL', `Too many queued queries for "${name}"`)
      const position = (recovered ? group.recovered.length : before) + 1
      const place = placeIn(
        (entry) => (recovered ? atEndOf(group.recovered, entry) : group.waiting.push(owner, entry)),
        { signal, owner },
      )
      const full = group.running >= limits.running
      admit(group)
      return { position, full, place }
    },
    figures: () =>
      [...groups].map(([group, { running, recovered, waiting }]) => ({
        group,
        running,
        queued: recovered.length + waiting.length,
        limits,
      })),
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
function placeIn(
  push: (entry: Waiting) => () => void,
  { signal, owner }: Pick<Waiting, 'signal' | 'owner'>,
): Promise<GroupPlace | undefined> {
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
