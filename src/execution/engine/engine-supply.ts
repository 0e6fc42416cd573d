import { EngineError } from '../../shared/engine-error.ts'
import type { EngineLost, EngineSettings } from './engine.ts'
import { memoryLimitOf, PoolMembers, type Member, type StartChild } from './pool-members.ts'
import { createRunningEngine } from './running-engine.ts'
import { processMemoryLimit, restingMemoryLimit } from './sandbox.ts'
import type { WaitingJobs } from './waiting-jobs.ts'
import type { Role } from './engine-job.ts'

const RESTART_FIRST_MS = 100
const RESTART_LONGEST_MS = 10_000
/** Failed starts in a row after which waiting statements get the error. */
const FAILED_STARTS = 3
/** Milliseconds until a used spare is replaced: its start takes a third of a second of CPU. */
const NEXT_SPARE_MS = 500

export interface EngineSupplyOptions {
  readonly settings: EngineSettings
  readonly waiting: WaitingJobs
  /** Called when an engine was given a statement. */
  onGiven(): void
  readonly startChild?: StartChild
}

/**
 * Gives engines to the waiting statements, and keeps engines available: always a shared one, dedicated ones on demand
 * up to the number of cores, and a spare process that can take either role at once. An engine that ends is replaced,
 * with back-off after a failed start.
 */
export class EngineSupply {
  readonly members: PoolMembers
  readonly #settings: EngineSettings
  readonly #waiting: WaitingJobs
  readonly #onGiven: () => void
  #failedStarts = 0
  #retryStart: NodeJS.Timeout | undefined
  #spareTimer: NodeJS.Timeout | undefined
  #stopping = false

  constructor({ settings, waiting, onGiven, startChild }: EngineSupplyOptions) {
    this.#settings = settings
    this.#waiting = waiting
    this.#onGiven = onGiven
    this.members = new PoolMembers(
      settings,
      {
        onReady: () => (this.#failedStarts = 0),
        onLost: (member, reason) => this.#ended(member, reason, []),
      },
      startChild,
    )
  }

  isStopping(): boolean {
    return this.#stopping
  }

  /**
   * Gives waiting statements to engines with room and starts missing engines. Called whenever either may have changed.
   */
  dispatch(): void {
    if (this.#stopping) return
    for (const role of ['shared', 'dedicated'] as const) {
      const engines = this.members.of(role)
      for (const { engine } of engines) {
        while (this.#waiting.count(role) > 0 && engine?.hasRoom()) {
          this.#waiting.next(role)!.runIn(engine)
          this.#onGiven()
        }
      }
      if (this.#retryStart) continue
      const missing = this.#missing(role, engines)
      for (let count = 0; count < missing; count++) this.open(role).catch(() => undefined)
    }
  }

  /**
   * Makes an engine of a role, from the spare if there is one, which is a third of a second faster. Rejects when the
   * start fails; the next start follows after a delay.
   */
  async open(role: Role): Promise<void> {
    const spare = this.members.of(undefined)[0]
    if (spare) this.scheduleSpare(NEXT_SPARE_MS)
    let member = spare
    try {
      member ??= this.members.spawn(role)
      member.role = role
      await this.#configure(member, role)
    } catch (error) {
      member?.child.kill()
      this.#startFailed(error)
      throw error
    }
    this.#run(member, role)
    this.dispatch()
  }

  /** @param delay milliseconds */
  scheduleSpare(delay: number): void {
    if (this.#stopping || this.#spareTimer) return
    this.#spareTimer = setTimeout(() => {
      this.#spareTimer = undefined
      if (this.members.of(undefined).length > 0) return
      try {
        this.members.spawn(undefined)
      } catch {
        // No process or no disk is available now; statements that need an engine report it.
        this.scheduleSpare(RESTART_LONGEST_MS)
      }
    }, delay)
    this.#spareTimer.unref()
  }

  /** Starts no more engines. Does not reject the statements that still wait. */
  stop(): void {
    this.#stopping = true
    clearTimeout(this.#spareTimer)
    clearTimeout(this.#retryStart)
  }

  /** How many engines of a role have to be started now. */
  #missing(role: Role, engines: readonly Member[]): number {
    if (role === 'shared') return 1 - engines.length
    const starting = engines.filter(({ engine }) => !engine).length
    return Math.min(this.#waiting.count(role) - starting, this.#settings.cores - engines.length)
  }

  async #configure(member: Member, role: Role): Promise<void> {
    const settings = this.#settings
    const { child } = member
    await child.ready
    await child.configure({
      spillFolder: child.spillFolder,
      allowedDirectories: [...settings.allowedDirectories, child.folder, child.spillFolder],
      memoryLimitBytes: memoryLimitOf(settings, role),
      maxSpillBytes: settings.maxSpillBytes,
      threads: role === 'shared' ? 1 : settings.cores,
    })
    if (member.ended) throw new Error('The engine ended while starting')
  }

  #run(member: Member, role: Role): void {
    const settings = this.#settings
    const memoryLimit = memoryLimitOf(settings, role)
    member.engine = createRunningEngine({
      child: member.child,
      capacity: role === 'shared' ? settings.sharedConnections : 1,
      killBytes: processMemoryLimit(memoryLimit),
      recycleBytes: restingMemoryLimit(memoryLimit),
      announceStarts: role === 'dedicated',
      interruptToKillMs: settings.interruptToKillMs,
      deadAfterMs: settings.deadAfterMs,
      onEvent: (event) => settings.onEvent?.(event),
      onIdle: () => this.dispatch(),
      onDead: (reason, statements) => this.#ended(member, reason, statements),
    })
  }

  #startFailed(error: unknown): void {
    if (this.#stopping) return
    this.#failedStarts++
    if (this.#failedStarts >= FAILED_STARTS)
      this.#waiting.rejectAll(new EngineError('GENERIC_INTERNAL_ERROR', 'No engine could be started', { cause: error }))
    clearTimeout(this.#retryStart)
    this.#retryStart = setTimeout(
      () => {
        this.#retryStart = undefined
        this.dispatch()
      },
      Math.min(RESTART_FIRST_MS * 2 ** (this.#failedStarts - 1), RESTART_LONGEST_MS),
    )
  }

  #ended(member: Member, reason: EngineLost['reason'], statements: readonly string[]): void {
    if (member.ended) return
    member.ended = true
    const { child } = member
    // When this process chose to end the engine, the last words are meaningless.
    const lastWords = this.#stopping || reason === 'cancel' || reason === 'recycle' ? '' : child.lastWords()
    this.#settings.onEvent?.({
      type: 'ended',
      slot: child.slot,
      pid: child.pid(),
      reason: this.#stopping ? 'stopped' : reason,
      statements,
      ...(lastWords === '' ? {} : { lastWords }),
    })
    if (this.#stopping) return
    if (member.role === undefined) this.scheduleSpare(RESTART_LONGEST_MS)
    // A process that ended before it became an engine is a failed start, which is tried again with back-off. So is an
    // idle engine that crashed.
    if (!member.engine) return
    if (reason === 'crash' && statements.length === 0) this.#startFailed(new Error('An idle engine crashed'))
    else this.dispatch()
  }
}
