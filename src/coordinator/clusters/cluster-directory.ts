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
  type SlotAsker,
} from './cluster.ts'
import { createClusterChecks, type CheckResult, type ClusterChecks } from './cluster-checks.ts'
import type { ClusterFiles } from './cluster-files.ts'
import { afterSighting, limitsOf, newCondition, type ClusterCondition, type ClusterSighting } from './cluster-health.ts'
import { createClusterJournal, type ClusterJournal } from './cluster-journal.ts'
import type { ClusterStates } from './cluster-states.ts'
import type { HealthLimits } from '../nodes/node-health.ts'
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
  return new WritersClusters(options)
}

class WritersClusters implements ClusterControl {
  readonly #options: ClusterDirectoryOptions
  readonly #limits: HealthLimits
  readonly #journal: ClusterJournal
  readonly #checks: ClusterChecks
  readonly #entries = new Map<string, Entry>()
  readonly #slots = new SlotQueue(() => this.#open().map(({ cluster }) => cluster))
  readonly #waits = new Map<Waiter, Wait>()
  readonly #ready = deferred()
  #files: ClusterFiles | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(options: ClusterDirectoryOptions) {
    const { log, clock, states, beatMs, telemetry } = options
    this.#options = options
    this.#limits = limitsOf(beatMs)
    this.#journal = createClusterJournal({
      log,
      clock,
      states,
      onEvent: (event) => {
        telemetry.onEvent(event)
        this.#slots.serve()
      },
    })
    this.#checks = createClusterChecks({
      clock,
      beatMs,
      onResult: (cluster, result) => this.#checked(cluster, result),
    })
  }

  get ready(): Promise<void> {
    return this.#ready.promise
  }

  async start(): Promise<void> {
    const { beatMs } = this.#options
    this.#timer ??= setInterval(() => this.#tick(), Math.min(MOST_TICK_MS, Math.max(10, beatMs / TICKS_OF_A_BEAT)))
    this.#timer.unref()
    this.#tick()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#checks.stop()
    const over = new EngineError('NO_NODES_AVAILABLE', 'This coordinator stops', { retry: 'anew' })
    for (const wait of this.#waits.values()) wait.giveUp(over)
    await this.#journal.settled()
  }

  list(): readonly ClusterView[] {
    return [...this.#entries.values()].map((entry) => this.#viewOf(entry))
  }

  byName(name: string): ClusterView | undefined {
    const entry = this.#entries.get(name)
    return entry && this.#viewOf(entry)
  }

  groups(): ReadonlyMap<string, readonly ClusterView[]> {
    const groups = new Map<string, ClusterView[]>()
    for (const entry of this.#entries.values()) {
      const { group } = entry.cluster
      const members = groups.get(group) ?? []
      members.push(this.#viewOf(entry))
      groups.set(group, members)
    }
    return groups
  }

  waitingIn(group: string): number {
    let waiting = this.#slots.waitingOf({ group })
    for (const { cluster } of this.#entries.values())
      if (cluster.group === group) waiting += this.#slots.waitingOf({ cluster: cluster.name })
    return waiting
  }

  slot(target: ClusterTarget, { user, signal, avoid }: SlotAsker): Promise<ClusterSlot> {
    const { clock, telemetry } = this.#options
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error)
      const start = clock.monotonicMs()
      let stopWaiting: (() => void) | undefined
      const settle = (result: 'slot' | 'gave_up'): void => {
        this.#waits.delete(waiter)
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
        onSlot: (name) => {
          settle('slot')
          resolve(this.#slotAt(this.#entries.get(name)!.cluster))
        },
      }
      this.#waits.set(waiter, { giveUp, closedSince: undefined })
      signal.addEventListener('abort', onAbort, { once: true })
      stopWaiting = this.#slots.push(waiter)
      this.#endWaits()
    })
  }

  adopt(name: ClusterName): ClusterSlot | undefined {
    const entry = this.#entries.get(name)
    if (!entry) return undefined
    this.#slots.take(name)
    return this.#slotAt(entry.cluster)
  }

  outcome(name: string, error: Error | undefined): void {
    const entry = this.#entries.get(name)
    if (entry) this.#see(entry, error ? { kind: 'failed', error } : { kind: 'ready' })
  }

  async ask(name: ClusterName, after: ClusterState, asker: StateAsker): Promise<ClusterView | undefined> {
    if (!this.#entries.has(name)) return undefined
    await this.#journal.record(name, 'ClusterStateAsked', () => {
      const before = this.#stateOf(name)
      return before === after ? undefined : { name, before, after, ...asker }
    })
    return this.byName(name)
  }

  #stateOf(name: string): ClusterState {
    return this.#options.states.get(name)?.state ?? 'ACTIVE'
  }

  /** The clusters that take statements. */
  #open(): readonly Entry[] {
    return [...this.#entries.values()].filter(({ cluster, condition }) =>
      isClusterOpen({ state: this.#stateOf(cluster.name), health: condition.health }),
    )
  }

  #tick(): void {
    if (!this.#options.states.hasReached(this.#options.begin)) return
    const now = this.#options.files()
    if (now !== this.#files) this.#take(now)
    this.#checks.tick(now.clusters, ({ name }) => isSettled(this.#entries.get(name)!.condition))
    this.#endWaits()
  }

  /** Takes new files, and records what they changed. */
  #take(now: ClusterFiles): void {
    const occasion: 'start' | 'reload' = this.#files === undefined ? 'start' : 'reload'
    this.#files = now
    const before = new Map(this.#entries)
    this.#entries.clear()
    for (const cluster of now.clusters) {
      const { name } = cluster
      this.#entries.set(name, this.#entryOf(cluster, before.get(name)))
      void this.#record(name, 'ClusterFound', () => {
        const known = this.#options.states.get(name)
        if (known?.present && known.digest === cluster.digest) return undefined
        const { group, digest } = cluster
        const url = cluster.url.origin
        return { name, url, group, digest, occasion, ...(known?.present && { before: known.digest }) }
      })
    }
    for (const { name } of this.#options.states.list())
      if (!this.#entries.has(name))
        void this.#record(name, 'ClusterGone', () => {
          const known = this.#options.states.get(name)
          return known?.present ? { name, digest: known.digest, occasion } : undefined
        })
    this.#slots.serve()
    this.#ready.resolve()
  }

  /** Makes an entry. A cluster with an unchanged address keeps its health; after a restart, the health in the log. */
  #entryOf(cluster: Cluster, before: Entry | undefined): Entry {
    if (before?.cluster.url.origin === cluster.url.origin) return { ...before, cluster }
    const known = this.#options.states.get(cluster.name)
    const isSame = known?.present === true && known.url === cluster.url.origin
    const condition = newCondition(isSame ? known.health : 'PENDING', this.#options.clock.monotonicMs())
    return { cluster, condition, version: undefined, lastCheck: undefined }
  }

  readonly #record: ClusterJournal['record'] = (name, type, make) =>
    // A fenced writer cannot record it. The next writer records its own observations.
    this.#journal.record(name, type, make).catch(() => {})

  #checked(cluster: Cluster, { sighting, check, version }: CheckResult): void {
    const entry = this.#entries.get(cluster.name)
    if (entry?.cluster !== cluster) return
    entry.lastCheck = check
    entry.version = version ?? entry.version
    this.#options.telemetry.onCheck(cluster, check)
    this.#see(entry, sighting)
  }

  #see(entry: Entry, sighting: ClusterSighting): void {
    const { name } = entry.cluster
    const { condition, change } = afterSighting(
      entry.condition,
      sighting,
      this.#limits,
      this.#options.clock.monotonicMs(),
    )
    entry.condition = condition
    if (!change) return
    void this.#record(name, 'ClusterHealthChanged', () => ({ name, ...change }))
    this.#slots.serve()
  }

  /** Ends the waiting of statements for which no cluster was open for too long. */
  #endWaits(): void {
    if (this.#waits.size === 0) return
    const now = this.#options.clock.monotonicMs()
    const open = this.#open()
    const closed = new Map<string, boolean>()
    for (const [{ target }, wait] of this.#waits) {
      const key = keyOf(target)
      if (!closed.has(key)) closed.set(key, !open.some(({ cluster }) => isTarget(cluster, target)))
      if (closed.get(key)) wait.closedSince ??= now
      else wait.closedSince = undefined
      if (wait.closedSince !== undefined && now - wait.closedSince >= this.#options.waitMs)
        wait.giveUp(this.#noCluster(target))
    }
  }

  #noCluster(target: ClusterTarget): EngineError {
    const all = [...this.#entries.values()].filter(({ cluster }) => isTarget(cluster, target))
    const what = 'group' in target ? `cluster of group ${target.group}` : `cluster ${target.cluster}`
    if (all.length === 0)
      return new EngineError('NO_NODES_AVAILABLE', `No file describes a ${what}`, { retry: 'later' })
    const each = all.map(({ cluster: { name }, condition }) => {
      const state = this.#stateOf(name)
      return `${name} is ${state === 'ACTIVE' ? condition.health : state}`
    })
    return new EngineError('NO_NODES_AVAILABLE', `No ${what} takes statements: ${each.join(', ')}`, { retry: 'later' })
  }

  #slotAt(cluster: Cluster): ClusterSlot {
    let left = false
    return {
      cluster,
      leave: () => {
        if (left) return
        left = true
        this.#slots.leave(cluster.name)
      },
    }
  }

  #viewOf({ cluster, condition, version, lastCheck }: Entry): ClusterView {
    const known = this.#options.states.get(cluster.name)
    const state = known?.state ?? 'ACTIVE'
    const isActive = state === 'ACTIVE'
    return {
      state,
      ...cluster,
      health: condition.health,
      reason: isActive ? known?.healthReason : known?.stateReason,
      by: known?.stateBy,
      since: isActive ? known?.healthSince : known?.stateSince,
      running: this.#slots.runningAt(cluster.name),
      waiting: this.#slots.waitingFor(cluster),
      version,
      lastCheck,
    }
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
