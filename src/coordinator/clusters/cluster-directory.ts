import type { Checkpoint, EventAppender } from '../../events/event-log.ts'
import type { Clock } from '../../shared/clock.ts'
import { deferred } from '../../shared/deferred.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { ClusterName } from '../../shared/ids.ts'
import type { Service } from '../../shared/service.ts'
import {
  isClusterOpen,
  type Cluster,
  type ClusterDirectory,
  type ClusterSlot,
  type ClusterTarget,
  type ClusterView,
  type LastCheck,
} from './cluster.ts'
import { createClusterChecks, type CheckResult } from './cluster-checks.ts'
import type { ClusterFiles } from './cluster-files.ts'
import { afterSighting, limitsOf, newCondition, type ClusterCondition, type ClusterSighting } from './cluster-health.ts'
import { createClusterJournal } from './cluster-journal.ts'
import type { ClusterStates } from './cluster-states.ts'
import type { ClusterEvent, ClusterEventData } from './events.ts'
import type { ClusterState } from './state.ts'
import { isTarget, keyOf, SlotQueue, type Waiter } from './slot-queue.ts'

/** The clusters of the coordinator that writes the log. */
export interface ClusterControl extends ClusterDirectory, Service {
  /**
   * Puts a cluster into a state, for the user who asks.
   * @returns the cluster once the event is valid; undefined when no file describes it
   */
  ask(name: ClusterName, state: ClusterState, by: StateAsker): Promise<ClusterView | undefined>
  /** How many statements wait for a cluster of the group. */
  waitingIn(group: string): number
}

export type StateAsker = Pick<ClusterEventData<'ClusterStateAsked'>, 'by' | 'originalUser' | 'remoteAddress' | 'reason'>

export interface ClusterDirectoryOptions {
  /** The files in force now; the same object until they change. */
  readonly files: () => ClusterFiles
  readonly states: ClusterStates
  readonly log: EventAppender
  /** The end of the log when this coordinator began to write. The directory does nothing before `states` reaches it. */
  readonly begin: Checkpoint
  readonly clock: Clock
  /** Milliseconds between two checks of a cluster. */
  readonly beatMs: number
  /** How long a statement waits where no cluster of its target is open, milliseconds. */
  readonly waitMs: number
  readonly telemetry: ClusterTelemetry
}

/** Receives the events, checks and waits of clusters. */
export interface ClusterTelemetry {
  onEvent(event: ClusterEvent): void
  onCheck(cluster: Cluster, check: LastCheck): void
  /** A statement got a slot, or gave up. */
  onWaited(milliseconds: number, result: 'slot' | 'gave_up'): void
}

/** A cluster that a file describes. */
interface Entry {
  readonly cluster: Cluster
  condition: ClusterCondition
  version: string | undefined
  lastCheck: LastCheck | undefined
}

const MOST_TICK_MS = 100
const TICKS_OF_A_BEAT = 20

export function createClusterDirectory(options: ClusterDirectoryOptions): ClusterControl {
  const { states, clock, beatMs, waitMs, telemetry } = options
  const limits = limitsOf(beatMs)
  const journal = createClusterJournal({
    log: options.log,
    clock,
    states,
    onEvent(event) {
      telemetry.onEvent(event)
      slots.serve()
    },
  })
  const checks = createClusterChecks({ clock, beatMs, onResult: checked })
  const entries = new Map<string, Entry>()
  const slots = new SlotQueue(() => [...entries.values()].filter(takesStatements).map(({ cluster }) => cluster))
  const waits = new Map<Waiter, Wait>()
  const ready = deferred()
  let files: ClusterFiles | undefined
  let timer: NodeJS.Timeout | undefined

  function stateOf(name: string): ClusterState {
    return states.get(name)?.state ?? 'ACTIVE'
  }

  function takesStatements({ cluster, condition }: Entry): boolean {
    return isClusterOpen({ state: stateOf(cluster.name), health: condition.health })
  }

  function tick(): void {
    if (!states.hasReached(options.begin)) return
    const now = options.files()
    if (now !== files) take(now)
    checks.tick(now.clusters, ({ name }) => isSettled(entries.get(name)!.condition))
    endWaits()
  }

  /** Takes new files, and records what they changed. */
  function take(now: ClusterFiles): void {
    const occasion: 'start' | 'reload' = files === undefined ? 'start' : 'reload'
    files = now
    const before = new Map(entries)
    entries.clear()
    for (const cluster of now.clusters) {
      const { name } = cluster
      entries.set(name, entryOf(cluster, before.get(name)))
      void record(name, 'ClusterFound', () => {
        const known = states.get(name)
        if (known?.present && known.digest === cluster.digest) return undefined
        const { group, digest } = cluster
        const url = cluster.url.origin
        return { name, url, group, digest, occasion, ...(known?.present && { before: known.digest }) }
      })
    }
    for (const { name } of states.list())
      if (!entries.has(name))
        void record(name, 'ClusterGone', () => {
          const known = states.get(name)
          return known?.present ? { name, digest: known.digest, occasion } : undefined
        })
    slots.serve()
    ready.resolve()
  }

  /** Makes an entry. A cluster with an unchanged address keeps its health; after a restart, the health in the log. */
  function entryOf(cluster: Cluster, before: Entry | undefined): Entry {
    if (before?.cluster.url.origin === cluster.url.origin) return { ...before, cluster }
    const known = states.get(cluster.name)
    const isSame = known?.present === true && known.url === cluster.url.origin
    const condition = newCondition(isSame ? known.health : 'PENDING', clock.monotonicMs())
    return { cluster, condition, version: undefined, lastCheck: undefined }
  }

  const record: typeof journal.record = (name, type, make) =>
    // A fenced writer cannot record it. The next writer records its own observations.
    journal.record(name, type, make).catch(() => {})

  function checked(cluster: Cluster, { sighting, check, version }: CheckResult): void {
    const entry = entries.get(cluster.name)
    if (entry?.cluster !== cluster) return
    entry.lastCheck = check
    entry.version = version ?? entry.version
    telemetry.onCheck(cluster, check)
    see(entry, sighting)
  }

  function see(entry: Entry, sighting: ClusterSighting): void {
    const { name } = entry.cluster
    const { condition, change } = afterSighting(entry.condition, sighting, limits, clock.monotonicMs())
    entry.condition = condition
    if (!change) return
    void record(name, 'ClusterHealthChanged', () => ({ name, ...change }))
    slots.serve()
  }

  /** Ends the waiting of statements for which no cluster was open for too long. */
  function endWaits(): void {
    if (waits.size === 0) return
    const now = clock.monotonicMs()
    const open = [...entries.values()].filter(takesStatements)
    const closed = new Map<string, boolean>()
    for (const [{ target }, wait] of waits) {
      const key = keyOf(target)
      if (!closed.has(key)) closed.set(key, !open.some(({ cluster }) => isTarget(cluster, target)))
      if (closed.get(key)) wait.closedSince ??= now
      else wait.closedSince = undefined
      if (wait.closedSince !== undefined && now - wait.closedSince >= waitMs) wait.giveUp(noCluster(target))
    }
  }

  function noCluster(target: ClusterTarget): EngineError {
    const all = [...entries.values()].filter(({ cluster }) => isTarget(cluster, target))
    const what = 'group' in target ? `cluster of group ${target.group}` : `cluster ${target.cluster}`
    if (all.length === 0)
      return new EngineError('NO_NODES_AVAILABLE', `No file describes a ${what}`, { retry: 'later' })
    const each = all.map(({ cluster: { name }, condition }) => {
      const state = stateOf(name)
      return `${name} is ${state === 'ACTIVE' ? condition.health : state}`
    })
    return new EngineError('NO_NODES_AVAILABLE', `No ${what} takes statements: ${each.join(', ')}`, { retry: 'later' })
  }

  function slotAt(cluster: Cluster): ClusterSlot {
    let left = false
    return {
      cluster,
      leave() {
        if (left) return
        left = true
        slots.leave(cluster.name)
      },
    }
  }

  function viewOf({ cluster, condition, version, lastCheck }: Entry): ClusterView {
    const known = states.get(cluster.name)
    const state = known?.state ?? 'ACTIVE'
    const isActive = state === 'ACTIVE'
    return {
      state,
      ...cluster,
      health: condition.health,
      reason: isActive ? known?.healthReason : known?.stateReason,
      by: known?.stateBy,
      since: isActive ? known?.healthSince : known?.stateSince,
      running: slots.runningAt(cluster.name),
      waiting: slots.waitingFor(cluster),
      version,
      lastCheck,
    }
  }

  const viewNamed = (name: string): ClusterView | undefined => {
    const entry = entries.get(name)
    return entry && viewOf(entry)
  }

  return {
    ready: ready.promise,
    async start() {
      timer ??= setInterval(tick, Math.min(MOST_TICK_MS, Math.max(10, beatMs / TICKS_OF_A_BEAT)))
      timer.unref()
      tick()
    },
    async stop() {
      clearInterval(timer)
      timer = undefined
      checks.stop()
      const over = new EngineError('NO_NODES_AVAILABLE', 'This coordinator stops', { retry: 'anew' })
      for (const wait of waits.values()) wait.giveUp(over)
      await journal.settled()
    },
    list: () => [...entries.values()].map(viewOf),
    byName: viewNamed,
    groups() {
      const groups = new Map<string, ClusterView[]>()
      for (const entry of entries.values()) {
        const { group } = entry.cluster
        const members = groups.get(group) ?? []
        members.push(viewOf(entry))
        groups.set(group, members)
      }
      return groups
    },
    waitingIn: (group) => {
      let waiting = slots.waitingOf({ group })
      for (const { cluster } of entries.values())
        if (cluster.group === group) waiting += slots.waitingOf({ cluster: cluster.name })
      return waiting
    },
    slot(target, { user, signal, avoid }) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason as Error)
        const start = clock.monotonicMs()
        let stopWaiting: (() => void) | undefined
        const settle = (result: 'slot' | 'gave_up'): void => {
          waits.delete(waiter)
          signal.removeEventListener('abort', onAbort)
          telemetry.onWaited(clock.monotonicMs() - start, result)
        }
        const giveUp = (error: Error): void => {
          stopWaiting?.()
          settle('gave_up')
          reject(error)
        }
        const onAbort = (): void => giveUp(signal.reason as Error)
        const waiter: Waiter = {
          target,
          user,
          avoid,
          onSlot(name) {
            settle('slot')
            resolve(slotAt(entries.get(name)!.cluster))
          },
        }
        waits.set(waiter, { giveUp, closedSince: undefined })
        signal.addEventListener('abort', onAbort, { once: true })
        stopWaiting = slots.push(waiter)
        endWaits()
      })
    },
    adopt(name) {
      const entry = entries.get(name)
      if (!entry) return undefined
      slots.take(name)
      return slotAt(entry.cluster)
    },
    outcome(name, error) {
      const entry = entries.get(name)
      if (entry) see(entry, error ? { kind: 'failed', error } : { kind: 'ready' })
    },
    async ask(name, after, asker) {
      if (!entries.has(name)) return undefined
      await journal.record(name, 'ClusterStateAsked', () => {
        const before = stateOf(name)
        return before === after ? undefined : { name, before, after, ...asker }
      })
      return viewNamed(name)
    },
  }
}

interface Wait {
  readonly giveUp: (error: Error) => void
  /** Since when no cluster of the target is open, monotonic milliseconds. */
  closedSince: number | undefined
}

/** Whether checks at the normal rate are enough. */
function isSettled({ health, failuresInARow }: ClusterCondition): boolean {
  return health === 'UNHEALTHY' || (health === 'HEALTHY' && failuresInARow === 0)
}
