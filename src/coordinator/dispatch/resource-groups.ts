import { EngineError } from '../../shared/engine-error.ts'

/** A place in a resource group; given back once, later calls do nothing. */
export interface Place {
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

/** Admission: who runs now and who waits, first come first served within a group. */
export interface ResourceGroups {
  /** The group of a query; one for all until rules are configured. */
  groupOf(session: { readonly user: string; readonly source?: string | undefined }): string
  /** A place whatever the limit says: admitted queries keep theirs over a restart. */
  occupy(group: string): Place
  /** A place at once, or undefined when the group is full. */
  tryEnter(group: string): Place | undefined
  /**
   * Waits for a place.
   * @param onPlace told the position in the queue, from 1, when it must wait
   * @throws EngineError QUERY_QUEUE_FULL
   */
  enter(group: string, signal: AbortSignal): { readonly position: number; readonly place: Promise<Place | undefined> }
  figures(): readonly GroupFigures[]
}

interface Group {
  running: number
  readonly waiting: { wake(place: Place | undefined): void; readonly signal: AbortSignal }[]
}

export const GLOBAL_GROUP = 'global'

export function createResourceGroups(limits: GroupLimits): ResourceGroups {
  const groups = new Map<string, Group>([[GLOBAL_GROUP, { running: 0, waiting: [] }]])
  const of = (name: string): Group => {
    let group = groups.get(name)
    if (!group) groups.set(name, (group = { running: 0, waiting: [] }))
    return group
  }
  function take(group: Group): Place {
    group.running++
    let held = true
    return {
      release() {
        if (!held) return
        held = false
        group.running--
        admit(group)
      },
    }
  }
  function admit(group: Group): void {
    while (group.running < limits.running) {
      const next = group.waiting.shift()
      if (!next) return
      if (next.signal.aborted) next.wake(undefined)
      else next.wake(take(group))
    }
  }
  return {
    groupOf: () => GLOBAL_GROUP,
    occupy: (name) => take(of(name)),
    tryEnter(name) {
      const group = of(name)
      return group.running < limits.running && group.waiting.length === 0 ? take(group) : undefined
    },
    enter(name, signal) {
      const group = of(name)
      if (group.waiting.length >= limits.queued)
        throw new EngineError('QUERY_QUEUE_FULL', `Too many queued queries for "${name}"`)
      const place = new Promise<Place | undefined>((resolve) => {
        const entry = { wake: resolve, signal }
        group.waiting.push(entry)
        signal.addEventListener(
          'abort',
          () => {
            const index = group.waiting.indexOf(entry)
            if (index >= 0) group.waiting.splice(index, 1)
            resolve(undefined)
          },
          { once: true },
        )
      })
      const position = group.waiting.length
      admit(group)
      return { position, place }
    },
    figures: () =>
      [...groups].map(([group, { running, waiting }]) => ({ group, running, queued: waiting.length, limits })),
  }
}
