import type { EventAppender } from '../../events/event-log.ts'
import type { Announcement } from '../../execution/api/task.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Service } from '../../shared/service.ts'
import type { ActiveWorker, WorkerDirectory, WorkerNode } from '../scheduler/workers.ts'
import { countAt } from './decay-counter.ts'
import type { NodeEvent } from './events.ts'
import { createNodeJournal, type NewNodeEvent, type NodeJournal } from './node-journal.ts'
import {
  answered,
  assess,
  failureRatio,
  newHealth,
  notAnswered,
  withMissedBeats,
  type HealthLimits,
  type HealthVerdict,
  type NodeFailure,
  type NodeHealth,
} from './node-health.ts'
import { nodeCode } from '../../shared/node-error.ts'
import type { NodeId } from '../../shared/ids.ts'

export type NodeStateName = HealthVerdict['state']

/** The state of a node now; counts have decayed to this moment. */
export interface NodeSnapshot extends WorkerNode {
  readonly version: string
  readonly cores: number
  readonly memoryBytes: number
  readonly epochSeen: number
  /** Id of the node's process, if the node reports it. */
  readonly processUuid?: string
  readonly state: NodeStateName
  /** Present when the node takes no new tasks. */
  readonly leaving?: true
  /** Milliseconds that the process has run, as far as known here. */
  readonly ageMillis: number
  /** Milliseconds since the node was last heard of. */
  readonly silentMillis: number
  readonly recentRequests: number
  readonly recentFailures: number
  readonly recentSuccesses: number
  readonly recentFailureRatio: number
  readonly recentFailuresByType: Readonly<Record<string, number>>
  /** Milliseconds since the epoch; absent before the first. */
  readonly lastRequestAt?: number
  readonly lastResponseAt?: number
  readonly lastFailure?: NodeFailure
}

/** A node from the events of an earlier coordinator. */
export interface RememberedNode {
  readonly nodeId: NodeId
  readonly url: string
  readonly version: string
  readonly state: NodeStateName
  readonly cores: number
  readonly memoryBytes: number
}

/** The workers and their state, learned from their announcements and from the outcomes of requests to them. */
export interface Membership extends WorkerDirectory, Service {
  announce(announcement: Announcement): void
  /** Removes a worker that stops: it will not answer any more, and this is no failure. */
  leave(nodeId: NodeId): void
  /** Notes that the worker takes no new tasks. */
  leaving(nodeId: NodeId): void
  /** Takes the outcome of a request to a worker. */
  outcome(url: string, error: Error | undefined): void
  /** Takes over nodes that were there before this coordinator: they are suspect until they announce themselves. */
  remember(nodes: readonly RememberedNode[]): void
  nodes(): readonly NodeSnapshot[]
}

export interface MembershipOptions {
  readonly log: EventAppender
  readonly clock: Clock
  readonly limits: { readonly beatMs: number; readonly failedMs: number }
  /** Whether this process is the writer. Followers watch the nodes without recording events. */
  readonly writes: () => boolean
  /** A failed node is removed when it is not heard of for this long. @default 10 minutes */
  readonly forgetMs?: number
  readonly onEvent?: (event: NodeEvent) => void
}

interface Node {
  readonly announcement: Announcement
  readonly health: NodeHealth
  readonly state: NodeStateName
  /** The last state that was recorded. */
  readonly recorded: NodeStateName
  /** Whether the node has not announced itself to this coordinator yet. Then no event records that it is suspect. */
  readonly unheard: boolean
  /** Monotonic time at which the node's process began, as far as known. */
  readonly bornAt: number
  readonly lastRequestAt?: number
  readonly lastResponseAt?: number
}

const TICK_MS = 250

export function createMembership(options: MembershipOptions): Membership {
  return new WatchedNodes(options)
}

class WatchedNodes implements Membership {
  readonly #clock: Clock
  readonly #forgetMs: number
  readonly #limits: HealthLimits
  readonly #journal: NodeJournal
  readonly #nodes = new Map<NodeId, Node>()
  readonly #listeners = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  #tickedAt: number

  constructor(options: MembershipOptions) {
    this.#clock = options.clock
    this.#forgetMs = options.forgetMs ?? 600_000
    this.#limits = { ...options.limits, failureRatio: 0.1, judgedFrom: 30 }
    this.#journal = createNodeJournal(options)
    this.#tickedAt = this.#clock.monotonicMs()
  }

  async start(): Promise<void> {
    this.#tickedAt = this.#clock.monotonicMs()
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    await this.#journal.settled()
    // After a restart of this service the old data would be outdated.
    this.#nodes.clear()
  }

  announce(announcement: Announcement): void {
    const now = this.#clock.monotonicMs()
    const bornAt = now - (announcement.uptimeMillis ?? 0)
    const known = this.#nodes.get(announcement.nodeId)
    const seen = { announcement, lastRequestAt: this.#clock.now(), lastResponseAt: this.#clock.now() }
    if (known && !isAnotherProcess(known, announcement, bornAt)) {
      // A leaving worker stays leaving: an announcement that it sent before may arrive after.
      const { state } = known.announcement
      const latest = state === undefined ? announcement : { ...announcement, state }
      this.#put(
        {
          ...known,
          ...seen,
          announcement: latest,
          unheard: false,
          bornAt: announcement.uptimeMillis === undefined ? known.bornAt : bornAt,
        },
        answered(known.health, now),
      )
      return
    }
    // The record of an earlier process of the node says nothing about this one.
    this.#nodes.set(announcement.nodeId, {
      ...seen,
      health: answered(newHealth(now), now),
      state: 'active',
      recorded: 'active',
      unheard: false,
      bornAt,
    })
    const { cores, memoryBytes } = announcement
    this.#journal.record(announcement.nodeId, {
      type: 'NodeJoined',
      data: { ...identity(announcement), cores, memoryBytes },
    })
    this.#changed()
  }

  leave(nodeId: NodeId): void {
    const node = this.#nodes.get(nodeId)
    if (node) this.#forget(node)
  }

  leaving(nodeId: NodeId): void {
    const node = this.#nodes.get(nodeId)
    if (!node) return
    this.#nodes.set(nodeId, { ...node, announcement: { ...node.announcement, state: 'shutting_down' } })
    this.#changed()
  }

  outcome(url: string, error: Error | undefined): void {
    const node = this.#at(url)
    if (!node) return
    const now = this.#clock.monotonicMs()
    const at = this.#clock.now()
    if (error) this.#put({ ...node, lastRequestAt: at }, notAnswered(node.health, failureOfError(error), now))
    else this.#put({ ...node, unheard: false, lastRequestAt: at, lastResponseAt: at }, answered(node.health, now))
  }

  remember(remembered: readonly RememberedNode[]): void {
    const now = this.#clock.monotonicMs()
    for (const one of remembered)
      if (!this.#nodes.has(one.nodeId)) this.#nodes.set(one.nodeId, nodeOf(one, this.#limits, now))
    this.#changed()
  }

  nodes(): readonly NodeSnapshot[] {
    return [...this.#nodes.values()].map((node) => snapshot(node, this.#clock.monotonicMs()))
  }

  active(): ActiveWorker[] {
    return [...this.#nodes.values()].filter((node) => node.state === 'active').map(workerOf)
  }

  byId(nodeId: NodeId): WorkerNode | undefined {
    const node = this.#nodes.get(nodeId)
    return node && { nodeId, url: node.announcement.url }
  }

  byUrl(url: string): WorkerNode | undefined {
    const node = this.#at(url)
    return node && { nodeId: node.announcement.nodeId, url }
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  #at(url: string): Node | undefined {
    return [...this.#nodes.values()].find((one) => one.announcement.url === url)
  }

  #put(node: Node, health: NodeHealth): void {
    const { nodeId } = node.announcement
    const verdict = assess(health, this.#limits, this.#clock.monotonicMs())
    const isNews = verdict.state !== node.recorded && !(verdict.state === 'suspect' && node.unheard)
    const recorded = isNews ? verdict.state : node.recorded
    this.#nodes.set(nodeId, { ...node, health, state: verdict.state, recorded })
    if (isNews) this.#journal.record(nodeId, stateEvent(node.announcement, verdict, health))
    if (verdict.state !== node.state) this.#changed()
  }

  #changed(): void {
    for (const listener of this.#listeners) listener()
  }

  #tick(): void {
    const now = this.#clock.monotonicMs()
    // While this process stood still, it could hear no node: the nodes were not silent.
    const asleep = Math.max(0, now - this.#tickedAt - 2 * TICK_MS)
    this.#tickedAt = now
    for (const node of this.#nodes.values()) {
      const health = { ...node.health, heardAt: Math.min(now, node.health.heardAt + asleep) }
      if (now - health.heardAt > this.#forgetMs) this.#forget(node)
      else this.#put(node, withMissedBeats(health, this.#limits, now))
    }
  }

  #forget(node: Node): void {
    this.#nodes.delete(node.announcement.nodeId)
    this.#journal.record(node.announcement.nodeId, { type: 'NodeLeft', data: identity(node.announcement) })
    this.#changed()
  }
}

/** Clocks of two processes differ a little; a new process is younger by much more. */
const UPTIME_SLACK_MS = 500

/** A late announcement looks like that of a younger process. So the ids of the processes decide, if both are known. */
function isAnotherProcess(known: Node, announcement: Announcement, bornAt: number): boolean {
  const { url, processUuid } = known.announcement
  if (url !== announcement.url) return true
  if (processUuid !== undefined && announcement.processUuid !== undefined)
    return processUuid !== announcement.processUuid
  return (
    announcement.uptimeMillis !== undefined &&
    known.announcement.uptimeMillis !== undefined &&
    bornAt > known.bornAt + UPTIME_SLACK_MS
  )
}

/** A node as the log has it, before this coordinator has heard of it. */
function nodeOf({ state, ...node }: RememberedNode, limits: HealthLimits, now: number): Node {
  const silent = state === 'failed' ? limits.failedMs : 0
  return {
    announcement: { ...node, epochSeen: 0 },
    health: { ...newHealth(now - silent), missed: true, missedBeats: Math.ceil(silent / limits.beatMs) },
    state: state === 'active' ? 'suspect' : state,
    recorded: state,
    unheard: true,
    bornAt: now,
  }
}

function workerOf({ announcement }: Node): ActiveWorker {
  const { nodeId, url, cores, memoryBytes, freeEngines } = announcement
  return {
    nodeId,
    url,
    cores,
    memoryBytes,
    ...(freeEngines === undefined ? {} : { freeEngines }),
    ...leavingOf(announcement),
  }
}

function leavingOf({ state }: Announcement): Pick<ActiveWorker, 'leaving'> {
  return state === undefined ? {} : { leaving: true }
}

function snapshot(node: Node, now: number): NodeSnapshot {
  const { announcement, health, state, bornAt, lastRequestAt, lastResponseAt } = node
  const { nodeId, url, version, cores, memoryBytes, epochSeen, processUuid } = announcement
  return {
    ...(processUuid !== undefined && { processUuid }),
    nodeId,
    url,
    version,
    cores,
    memoryBytes,
    epochSeen,
    state,
    ...leavingOf(announcement),
    ageMillis: Math.max(0, now - bornAt),
    silentMillis: Math.max(0, now - health.heardAt),
    recentRequests: countAt(health.requests, now),
    recentFailures: countAt(health.failures, now),
    recentSuccesses: countAt(health.successes, now),
    recentFailureRatio: failureRatio(health, now),
    recentFailuresByType: Object.fromEntries(
      [...health.failuresByType].map(([type, counter]) => [type, countAt(counter, now)]),
    ),
    ...(lastRequestAt === undefined ? {} : { lastRequestAt }),
    ...(lastResponseAt === undefined ? {} : { lastResponseAt }),
    ...(health.lastFailure ? { lastFailure: health.lastFailure } : {}),
  }
}

function identity({ nodeId, url, version }: Announcement) {
  return { nodeId, url, version, role: 'worker' as const }
}

function stateEvent(announcement: Announcement, verdict: HealthVerdict, health: NodeHealth): NewNodeEvent {
  const data = identity(announcement)
  switch (verdict.state) {
    case 'active':
      return { type: 'NodeRecovered', data }
    case 'suspect':
      return { type: 'NodeSuspected', data: { ...data, reason: verdict.reason } }
    case 'failed': {
      const last = health.lastFailure
      return {
        type: 'NodeFailed',
        data: {
          ...data,
          reason: verdict.reason,
          ...(last ? { lastFailure: { ...last, stack: [...last.stack], suppressed: [...last.suppressed] } } : {}),
        },
      }
    }
    default:
      throw new Error(`Unknown verdict: ${JSON.stringify(verdict satisfies never)}`)
  }
}

function failureOfError(error: Error): NodeFailure {
  const cause = error.cause instanceof Error ? error.cause : error
  const code = nodeCode(cause)
  return {
    type: code ? `${cause.name}.${code}` : error.name,
    message: error.message,
    stack: (error.stack ?? '')
      .split('\n')
      .slice(1, 11)
      .map((line) => line.trim()),
    suppressed: [],
  }
}
