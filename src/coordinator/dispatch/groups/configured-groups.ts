import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { EngineError } from '../../../shared/engine-error.ts'
import { deferred } from '../../../shared/deferred.ts'
import type { Clock } from '../../../shared/clock.ts'
import type {
  Entrant,
  GroupFigures,
  GroupSlot,
  Queued,
  Reservation,
  ResourceGroups,
  Waiting,
} from '../resource-groups.ts'
import { Choices } from './choices.ts'
import { groupPath, groupText, type GroupPath } from './group-path.ts'
import type { GroupRules } from './group-rules.ts'
import type { GroupRule } from './group-rule.ts'
import type { ChosenGroup, GroupedStatement } from './group-selector.ts'
import { groupState, type GroupState } from './group-state.ts'
import { GroupTree, type Arrival, type Ticket } from './group-tree.ts'
import { limitText, ownersText } from './limit-text.ts'
import { groupAt } from './rules-lookup.ts'
import { labelledRules } from './group-level.ts'

export interface ConfiguredGroupsDeps {
  /** The rules in force; another object after the file was read again. */
  readonly rules: () => GroupRules
  /** The memory of all present workers, bytes. */
  readonly memory: () => number
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** A random number in [0, 1). @default Math.random */
  readonly draw?: () => number
}

/** A query that has entered a group. */
interface Visit {
  readonly entrant: Entrant
  wake(slot: GroupSlot | undefined): void
  refuse(error: unknown): void
}

interface Configuration {
  readonly rules: GroupRules
  readonly choices: Choices
}

/** How often usage, quotas and rules are looked at, as often as Trino does. */
const LOOK_MS = 100
/**
 * When the rules change, up to this many waiting queries are decided at once; more are decided in slices of the event
 * loop, each of this many milliseconds.
 */
const DECIDED_AT_ONCE = 200
const DECIDING_MS = 8
const MOST_ROUNDS = 5

/**
 * Resource groups by the rules of a file, or by those of the single group: connects the state machine `GroupTree` to
 * promises, a clock and signals.
 */
export class ConfiguredGroups implements ResourceGroups {
  readonly #deps: ConfiguredGroupsDeps
  readonly #tree: GroupTree<Visit>
  readonly #running = new Set<Ticket<Visit>>()
  #choices: Choices
  /** Rules that are not in force yet, while the groups of waiting queries are chosen by them, a little at a time. */
  #next: Configuration | undefined
  readonly #timer: NodeJS.Timeout | undefined
  #reservation: Reservation | undefined
  #expected = 0
  #passedAt: number

  constructor(deps: ConfiguredGroupsDeps) {
    this.#deps = deps
    this.#tree = new GroupTree(deps.draw ?? Math.random)
    const rules = deps.rules()
    this.#tree.configure(rules)
    this.#choices = new Choices(rules)
    this.#passedAt = deps.clock.monotonicMs()
    // The single group is always the same, and no usage counts in it.
    if (!rules.single) this.#timer = setInterval(() => this.check(), LOOK_MS).unref()
  }

  get reservation(): Reservation | undefined {
    return this.#reservation
  }

  /**
   * Lets waiting queries keep their order and running ones their slots. With rules of a file no query starts until all
   * of them have arrived, or the reservation ends. The single group keeps slots for them, and lets others start.
   */
  reserve(): Reservation {
    const counted = deferred()
    const isSingle = this.#tree.rules.single !== undefined
    this.#expect(Number.POSITIVE_INFINITY)
    // With a file the count is not awaited: a new query waits in its group, behind the recovered ones.
    if (!isSingle) counted.resolve()
    const end = (): void => {
      this.#reservation = undefined
      this.#expect(0)
      counted.resolve()
    }
    const wait = (queries: number): void => {
      if (queries <= 0 && !isSingle) return end()
      this.#expect(Math.max(0, queries))
    }
    return (this.#reservation = {
      counted: counted.promise,
      expect(queries) {
        wait(queries)
        counted.resolve()
      },
      queryRecovered: () => wait(this.#expected - 1),
      end,
    })
  }

  #expect(queries: number): void {
    this.#expected = queries
    this.#tree.expect(queries)
    this.#start()
  }

  /** Whether other rules are about to come into force. */
  get isDeciding(): boolean {
    return this.#next !== undefined
  }

  groupOf(statement: GroupedStatement): string {
    const chosen = this.#choices.of(statement)
    return typeof chosen === 'string' ? '' : groupText(chosen.path)
  }

  occupy(entrant: Entrant): GroupSlot {
    // Its recorded group, whether the rules of a file still have it or not.
    const { single, rootGroups } = this.#tree.rules
    const chosen = this.#choices.of(entrant.statement)
    const isThere = typeof chosen !== 'string' && (single || groupText(chosen.path) === entrant.group)
    const group = isThere ? chosen : groupAt(groupPath(entrant.group), rootGroups)
    const arrival = { ...arrivalOf(silentVisit(entrant)), recovered: true }
    return this.#slotOf(this.#tree.occupy(group, arrival))
  }

  tryEnter(entrant: Entrant): GroupSlot | undefined {
    this.#reload()
    const chosen = this.#choices.of(entrant.statement)
    if (typeof chosen === 'string' || groupText(chosen.path) !== entrant.group) return undefined
    if ((entrant.recovered && !this.#tree.rules.single) || !chosen.leaf) return undefined
    const ticket = this.#tree.start(chosen, arrivalOf(silentVisit(entrant)))
    return ticket && this.#slotOf(ticket)
  }

  enter(entrant: Entrant): Waiting {
    this.#reload()
    const group = this.#groupOrThrow(entrant.statement)
    const given = deferred<GroupSlot | undefined>()
    const visit: Visit = { entrant, wake: given.resolve, refuse: given.reject }
    const ticket = this.#tree.arrive(group, arrivalOf(visit))
    if (!ticket) throw new EngineError('QUERY_QUEUE_FULL', `Too many queued queries for "${groupText(group.path)}"`)
    const queued = this.#queued(ticket)
    const { signal } = entrant
    const leave = (): void => {
      if (ticket.state !== 'waiting') return
      this.#tree.finish(ticket)
      visit.wake(undefined)
      this.#start()
    }
    if (signal.aborted) leave()
    else if (ticket.state === 'running') visit.wake(this.#slotOf(ticket))
    else signal.addEventListener('abort', leave, { once: true })
    if (!ticket.group.line.startsOnArrival) this.#start()
    return {
      queued,
      slot: given.promise,
      hold: () => this.#tree.hold(ticket),
      release: () => {
        this.#tree.release(ticket)
        this.#start()
      },
    }
  }

  figures(): readonly GroupFigures[] {
    const found = new Map(
      [...labelledRules(this.#tree.rules.rootGroups)].map(([group, rule, isTemplate]) => {
        const limits = isTemplate ? { running: 0, queued: 0 } : limitsOf(rule)
        return [group, { group, isTemplate, running: 0, queued: 0, limits }]
      }),
    )
    for (const { label, rule, running, queued } of this.#tree.groups()) {
      const figures = rule && found.get(label)
      if (!figures) continue
      figures.running += running
      figures.queued += queued
      if (!figures.isTemplate) continue
      figures.limits.running += rule.hardConcurrencyLimit
      figures.limits.queued += rule.maxQueued
    }
    return [...found.values()].map(({ isTemplate: _, ...figures }) => figures)
  }

  roots(): readonly GroupState[] {
    return [...this.#tree.groups()].filter(({ path }) => path.length === 1).map((node) => groupState(node))
  }

  stateOf(path: GroupPath): GroupState | undefined {
    const node = this.#tree.find(path)
    return node && groupState(node)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#next = undefined
  }

  /** Looks at the usage of queries, at the time and at the rules, and starts the queries that may start now. */
  check(): void {
    this.#reload()
    this.#tree.setMemory(this.#deps.memory())
    for (const ticket of this.#running) this.#tree.measure(ticket, ticket.subject.entrant.usage())
    const seconds = Math.floor((this.#deps.clock.monotonicMs() - this.#passedAt) / 1000)
    if (seconds > 0) {
      this.#passedAt += seconds * 1000
      this.#tree.pass(seconds)
    }
    this.#start()
  }

  /**
   * Reads the rules again. If they changed, waiting queries get their groups anew, and running ones keep their slots.
   * When many wait, their groups are computed beforehand, in slices; until then the old rules are in force.
   */
  #reload(): void {
    const rules = this.#deps.rules()
    if (rules === (this.#next?.rules ?? this.#tree.rules)) return
    const next = { rules, choices: new Choices(rules) }
    this.#next = next
    if (this.#tree.queued <= DECIDED_AT_ONCE) this.#configure(next)
    else
      void this.#decideBefore(next.choices, () => this.#next === next).then(() => {
        if (this.#next === next) this.#configure(next)
      })
  }

  #configure({ rules, choices }: Configuration): void {
    this.#next = undefined
    this.#tree.configure(rules)
    this.#choices = choices
    for (const ticket of this.#tree.waiting()) this.#chooseAgain(ticket)
    this.#start()
  }

  /**
   * Computes and caches the groups of waiting queries. Queries that come meanwhile are handled in later rounds, of
   * which there are few.
   */
  async #decideBefore(choices: Choices, isWanted: () => boolean): Promise<void> {
    let left = Infinity
    for (let round = 0; round < MOST_ROUNDS && left > DECIDED_AT_ONCE; round++) {
      left = 0
      let until = 0
      for (const { subject } of this.#tree.waiting()) {
        if (performance.now() >= until) {
          await nextLoopPass()
          if (!isWanted()) return
          until = performance.now() + DECIDING_MS
        }
        if (choices.has(subject.entrant.statement.session)) continue
        choices.of(subject.entrant.statement)
        left++
      }
    }
  }

  #chooseAgain(ticket: Ticket<Visit>): void {
    const { entrant, refuse } = ticket.subject
    try {
      const group = this.#groupOrThrow(entrant.statement)
      if (this.#tree.move(ticket, group)) entrant.moved(this.#queued(ticket))
    } catch (error) {
      this.#tree.finish(ticket)
      refuse(error)
    }
  }

  #start(): void {
    for (const ticket of this.#tree.startAll()) ticket.subject.wake(this.#slotOf(ticket))
  }

  #slotOf(ticket: Ticket<Visit>): GroupSlot {
    const { signal, usage } = ticket.subject.entrant
    const release = (): void => {
      if (!this.#running.delete(ticket)) return
      signal.removeEventListener('abort', release)
      this.#tree.measure(ticket, usage())
      this.#tree.finish(ticket)
      this.#start()
    }
    this.#running.add(ticket)
    signal.addEventListener('abort', release)
    if (signal.aborted) release()
    return { group: ticket.group.text, release }
  }

  #queued(ticket: Ticket<Visit>): Queued {
    const { group } = ticket
    const position = group.line.positionOf(ticket)
    if (this.#tree.rules.single) {
      const reason = `${ownersText(group)}; position ${position}`
      return { group: group.text, position, reason: () => reason }
    }
    return {
      group: group.text,
      position,
      reason: () => {
        const limit = this.#tree.limitOf(ticket)
        const what = this.#tree.held
          ? 'queries that waited before the coordinator was restarted come first'
          : limit
            ? limitText(limit)
            : `resource group "${group.text}" waits for its turn`
        return `${what}; position ${position}`
      },
    }
  }

  /** @throws EngineError in Trino's words: no selector fits, or the group has sub-groups */
  #groupOrThrow(statement: GroupedStatement): ChosenGroup {
    const chosen = this.#choices.of(statement)
    if (chosen === 'none')
      throw new EngineError('QUERY_REJECTED', 'No matching resource group found with the configured selection rules')
    if (chosen === 'unnamed')
      throw new EngineError('QUERY_REJECTED', 'The name of the selected resource group would be empty')
    if (!chosen.leaf)
      throw new EngineError(
        'INVALID_RESOURCE_GROUP',
        `Cannot add queries to '${groupText(chosen.path)}'. It is not a leaf group.`,
      )
    return chosen
  }
}

/** The visit of a query that does not wait. */
function silentVisit(entrant: Entrant): Visit {
  return { entrant, wake() {}, refuse() {} }
}

function arrivalOf(visit: Visit): Arrival<Visit> {
  const { owner, priority, recovered, held = false } = visit.entrant
  return { subject: visit, owner, priority, recovered, held }
}

function limitsOf({ hardConcurrencyLimit, maxQueued }: GroupRule): { running: number; queued: number } {
  return { running: hardConcurrencyLimit, queued: maxQueued }
}
