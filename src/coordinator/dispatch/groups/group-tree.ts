import type { GroupPath } from './group-path.ts'
import { GroupNode, type GroupLimit } from './group-node.ts'
import type { ChosenGroup } from './group-selector.ts'
import type { GroupRules } from './group-rules.ts'
import { levelAt, type GroupLevel } from './group-level.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import { drawn, type Waits } from './waiting-line.ts'

/** The total and current usage of a query. */
export interface QueryUsage {
  /** In total, until now. */
  readonly cpuMillis: number
  /** Held now. */
  readonly memoryBytes: number
  /** In total, until now. */
  readonly scannedBytes: number
}

/** A query in its group: `waiting`, then `running`, then `gone`. */
export interface Ticket<T> extends Waits {
  readonly subject: T
  readonly group: TreeGroup<T>
  readonly state: 'waiting' | 'running' | 'gone'
}

export type TreeGroup<T> = GroupNode<Ticket<T>>

interface MutableTicket<T> extends Ticket<T> {
  group: TreeGroup<T>
  state: Ticket<T>['state']
  usage: QueryUsage
}

export interface Arrival<T> extends Pick<Waits, 'owner' | 'priority' | 'recovered'> {
  readonly subject: T
  /** Whether the query waits until it is released. @default false */
  readonly held?: boolean
}

const NOTHING: QueryUsage = { cpuMillis: 0, memoryBytes: 0, scannedBytes: 0 }
/** Puts queries of the earlier coordinator before all others. */
const BEFORE_ALL = -(2 ** 52)

/**
 * Trino's resource groups as a pure state machine: arrivals, ends and usage of queries go in, the queries to start come
 * out. Time and randomness are only its inputs, and it has no effects of its own.
 *
 * A group may run more when it is below its limits; it is *eligible* when it also has a query to start. Each group
 * keeps its eligible sub-groups in the order in which they became eligible, and its policy picks among them.
 *
 * ```
 *  arrive ─► all groups up to the root may run more? ── yes ─► running ─► finish
 *                     │ no: waiting, or refused as full                     │
 *                     ▼                                                     ▼
 *                  startAll: from the root down, policy by policy ◄── measure, pass, configure
 * ```
 */
export class GroupTree<T> {
  /** The parent of all root groups; it has no limits. */
  readonly #top = new GroupNode<Ticket<T>>(undefined, '')
  readonly #draw: () => number
  /** Groups with used CPU time or scanned bytes that are not forgotten yet. */
  readonly #indebted = new Set<TreeGroup<T>>()
  #rules: GroupRules = { rootGroups: [], selectors: [] }
  #memoryBytes = 0
  #arrivals = 0
  #expected = 0

  /** @param draw a random number in [0, 1) */
  constructor(draw: () => number) {
    this.#draw = draw
  }

  get rules(): GroupRules {
    return this.#rules
  }

  /** Sets how many queries of an earlier coordinator are expected. */
  expect(queries: number): void {
    this.#expected = queries
  }

  /**
   * Whether no query starts yet, because queries of an earlier coordinator are expected first. The single group never
   * waits: it keeps slots free for these queries.
   */
  get held(): boolean {
    return this.#expected > 0 && this.#rules.single === undefined
  }

  /** The number of waiting queries in all groups. */
  get queued(): number {
    let queued = 0
    for (const node of this.#top.subGroups.values()) queued += node.queued
    return queued
  }

  /**
   * Puts other rules into force. Queries stay in their groups, running ones whatever the limits say. Where several
   * templates fit a group, the next query that is led there decides which one it is made of.
   */
  configure(rules: GroupRules): void {
    this.#rules = rules
    for (const node of below(this.#top)) this.#setLevel(node, levelAt(node.path, rules.rootGroups, node.label))
    if (rules.single) this.#at(rules.single).shareAmongOwners()
  }

  /** Sets the memory of the workers, to which percentages refer. */
  setMemory(bytes: number): void {
    if (bytes === this.#memoryBytes) return
    this.#memoryBytes = bytes
    for (const node of below(this.#top)) node.setMemory(bytes)
    for (const node of below(this.#top)) this.#refresh(node)
  }

  /** The group of a path, if it exists. */
  find(path: GroupPath): TreeGroup<T> | undefined {
    let node: TreeGroup<T> | undefined = this.#top
    for (const name of path) node = node?.subGroups.get(name)
    return path.length === 0 ? undefined : node
  }

  /** All groups that exist. */
  groups(): Iterable<TreeGroup<T>> {
    return below(this.#top)
  }

  /** @returns undefined where the query cannot run at once */
  start(chosen: ChosenGroup, arrival: Arrival<T>): Ticket<T> | undefined {
    const node = this.#at(chosen)
    const hasSlot = !this.held && upFrom(node).every((group) => group.canRunMore())
    if (hasSlot && node.line.mayStart(arrival, node.running, this.#expected)) return this.occupy(chosen, arrival)
    this.#dropIdle(node)
    return undefined
  }

  /** @returns undefined where the query can neither run nor wait */
  arrive(chosen: ChosenGroup, arrival: Arrival<T>): Ticket<T> | undefined {
    const mayStart = !arrival.held && this.#at(chosen).line.startsOnArrival
    const started = mayStart ? this.start(chosen, arrival) : undefined
    if (started) return started
    const node = this.#at(chosen)
    const path = upFrom(node)
    const ticket = this.#ticket(node, arrival)
    const hasRoom = path.every((group) => (this.held ? group.canHoldMore() : group.canQueueMore()))
    if (!hasRoom && !arrival.recovered) {
      this.#dropIdle(node)
      return undefined
    }
    this.#wait(ticket, node, arrival.held ?? false)
    return ticket
  }

  /**
   * Holds a waiting query: it counts as waiting, and does not start until it is released.
   * @returns false where it does not wait
   */
  hold(ticket: Ticket<T>): boolean {
    const { group, state } = ticket
    if (state !== 'waiting') return false
    if (group.held.has(ticket)) return true
    group.line.remove(ticket)
    group.held.add(ticket)
    this.#refresh(group)
    return true
  }

  /** Lets a held query wait for its turn again. */
  release(ticket: Ticket<T>): void {
    const { group } = ticket
    if (!group.held.delete(ticket)) return
    group.line.add(ticket)
    this.#refresh(group)
  }

  /** Gives a slot to a query that has one already, whatever the limits say. */
  occupy(chosen: ChosenGroup, arrival: Arrival<T>): Ticket<T> {
    const node = this.#at(chosen)
    const ticket = this.#ticket(node, arrival)
    this.#begin(ticket)
    this.#refresh(node)
    return ticket
  }

  /**
   * Moves a waiting query to another group, where it keeps its time of arrival.
   * @returns whether the group is another one
   */
  move(given: Ticket<T>, chosen: ChosenGroup): boolean {
    const ticket = given as MutableTicket<T>
    if (ticket.state !== 'waiting') return false
    const node = this.#at(chosen)
    if (node === ticket.group) return false
    const held = ticket.group.held.has(ticket)
    this.#leaveLine(ticket)
    this.#wait(ticket, node, held)
    return true
  }

  /** Removes a query: it no longer runs or waits. */
  finish(given: Ticket<T>): void {
    const ticket = given as MutableTicket<T>
    const { group, state } = ticket
    if (state === 'gone') return
    if (state === 'waiting') this.#leaveLine(ticket)
    else {
      this.measure(ticket, { ...ticket.usage, memoryBytes: 0 })
      for (const node of upFrom(group)) node.running--
      group.runs.delete(ticket)
      group.line.ended(ticket)
    }
    ticket.state = 'gone'
    this.#refresh(group)
    this.#dropIdle(group)
  }

  /** Takes the usage of a running query until now. */
  measure(given: Ticket<T>, usage: QueryUsage): void {
    const ticket = given as MutableTicket<T>
    if (ticket.state !== 'running' || this.#rules.single) return
    const { usage: before, group } = ticket
    const cpuMillis = Math.max(before.cpuMillis, usage.cpuMillis)
    const scannedBytes = Math.max(before.scannedBytes, usage.scannedBytes)
    const cpu = cpuMillis - before.cpuMillis
    const scanned = scannedBytes - before.scannedBytes
    const memory = usage.memoryBytes - before.memoryBytes
    if (cpu === 0 && memory === 0 && scanned === 0) return
    ticket.usage = { cpuMillis, scannedBytes, memoryBytes: usage.memoryBytes }
    for (const node of upFrom(group)) {
      node.use(cpu, memory, scanned)
      if (node.isIndebted) this.#indebted.add(node)
    }
    this.#refresh(group)
  }

  /** Lets time pass: used quotas come back. */
  pass(seconds: number): void {
    const changed = [...this.#indebted]
    for (const node of changed) {
      node.regenerate(seconds)
      if (!node.isIndebted) this.#indebted.delete(node)
    }
    for (const node of changed) this.#refresh(node)
    for (const node of changed) this.#dropIdle(node)
  }

  /** Starts all queries that may start, in their order. */
  startAll(): readonly Ticket<T>[] {
    const started: Ticket<T>[] = []
    if (this.held) return started
    for (let next = this.#startNext(this.#top); next; next = this.#startNext(this.#top)) started.push(next)
    return started
  }

  /** The first limit, from the group up, that keeps a waiting query from running; undefined: it waits for its turn. */
  limitOf({ group }: Ticket<T>): GroupLimit | undefined {
    for (const node of upFrom(group)) {
      const limit = node.limit()
      if (limit) return limit
    }
    return undefined
  }

  /** All waiting queries, those of one group in their order. */
  waiting(): readonly Ticket<T>[] {
    return [...below(this.#top)].flatMap((node) => [...node.line.all, ...node.held])
  }

  #ticket(group: TreeGroup<T>, arrival: Arrival<T>): MutableTicket<T> {
    const order = (arrival.recovered ? BEFORE_ALL : 0) + this.#arrivals++
    return { ...arrival, order, group, state: 'waiting', usage: NOTHING }
  }

  #wait(ticket: MutableTicket<T>, node: TreeGroup<T>, held: boolean): void {
    ticket.group = node
    if (held) node.held.add(ticket)
    else node.line.add(ticket)
    for (const group of upFrom(node)) group.queued++
    this.#refresh(node)
  }

  #leaveLine(ticket: MutableTicket<T>): void {
    const { group } = ticket
    if (!group.held.delete(ticket)) group.line.remove(ticket)
    for (const node of upFrom(group)) node.queued--
    this.#refresh(group)
    this.#dropIdle(group)
  }

  #begin(ticket: MutableTicket<T>): void {
    ticket.state = 'running'
    ticket.group.runs.add(ticket)
    ticket.group.line.started(ticket)
    for (const node of upFrom(ticket.group)) node.running++
  }

  #startNext(node: TreeGroup<T>): Ticket<T> | undefined {
    if (!node.canRunMore()) return undefined
    const own = node.line.take(this.#draw, node.running, this.#expected) as MutableTicket<T> | undefined
    if (own) {
      for (const group of upFrom(node)) group.queued--
      this.#begin(own)
      return own
    }
    const next = this.#pick(node)
    if (!next) return undefined
    // Removed even when it has more to start: it is added again at the end.
    node.eligible.delete(next)
    const started = this.#startNext(next)
    if (next.isEligible()) node.eligible.add(next)
    return started
  }

  #pick(node: TreeGroup<T>): TreeGroup<T> | undefined {
    const { eligible } = node
    const { policy } = node.line
    switch (policy) {
      case 'fair':
        return first(eligible)
      case 'weighted': {
        const drawable = [...eligible]
        return drawable[drawn(drawable, (group) => group.lots, this.#draw)]
      }
      case 'weighted_fair':
        return best(eligible, (group) => -group.served)
      case 'query_priority':
        return best(eligible, (group) => group.highestPriority)
      default:
        return unreachable(policy)
    }
  }

  /** Updates whether a group, and those above it, are eligible. */
  #refresh(node: TreeGroup<T>): void {
    for (let group: TreeGroup<T> = node; group.parent; group = group.parent) {
      if (group.isEligible()) group.parent.eligible.add(group)
      else group.parent.eligible.delete(group)
    }
  }

  #at({ path, levels }: ChosenGroup): TreeGroup<T> {
    let node: TreeGroup<T> = this.#top
    for (const [depth, name] of path.entries()) {
      let next = node.subGroups.get(name)
      if (!next) {
        next = new GroupNode<Ticket<T>>(node, name)
        node.subGroups.set(name, next)
      }
      const level = levels[depth]!
      if (level.rule !== next.rule) this.#setLevel(next, level)
      node = next
    }
    return node
  }

  #setLevel(node: TreeGroup<T>, level: GroupLevel): void {
    node.setLevel(level, this.#memoryBytes)
    this.#refresh(node)
  }

  /** Removes a group without queries and debts: users come and go, and the next query creates it again. */
  #dropIdle(node: TreeGroup<T>): void {
    for (let group: TreeGroup<T> = node; group.parent && group.isIdle; group = group.parent) {
      group.parent.subGroups.delete(group.key)
      group.parent.eligible.delete(group)
    }
  }
}

/** A group and those above it. */
function upFrom<T>(node: TreeGroup<T>): readonly TreeGroup<T>[] {
  const path: TreeGroup<T>[] = []
  for (let group = node; group.parent; group = group.parent) path.push(group)
  return path
}

function* below<T>(node: TreeGroup<T>): Generator<TreeGroup<T>> {
  for (const group of node.subGroups.values()) {
    yield group
    yield* below(group)
  }
}

function first<N>(of: Iterable<N>): N | undefined {
  for (const one of of) return one
  return undefined
}

/** The first item with the highest figure. */
function best<N>(of: Iterable<N>, figure: (one: N) => number): N | undefined {
  let found: { readonly one: N; readonly figure: number } | undefined
  for (const one of of) {
    const own = figure(one)
    if (!found || own > found.figure) found = { one, figure: own }
  }
  return found?.one
}
