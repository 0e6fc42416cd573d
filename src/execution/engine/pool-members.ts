import { startEngineChild, type EngineChild, type EngineChildOptions } from './engine-child.ts'
import type { EngineChildInfo, EngineLost, EngineSettings } from './engine.ts'
import type { RunningEngine } from './running-engine.ts'
import { processMemoryLimit } from './sandbox.ts'
import type { Role } from './engine-job.ts'

/** A process from its spawn to its end, with the engine it becomes once it has a role. */
export interface Member {
  readonly child: EngineChild
  /** Undefined for the spare. */
  role: Role | undefined
  engine?: RunningEngine
  /** Whether the process has started: a ready spare can take over at once. */
  ready: boolean
  ended: boolean
}

export interface PoolMembersHooks {
  onReady(member: Member): void
  /** The process is gone before it became an engine. */
  onLost(member: Member, reason: EngineLost['reason']): void
}

export type StartChild = (options: EngineChildOptions) => EngineChild

/** The shared engine gets this fraction of a dedicated engine's memory: its statements are small. */
const SHARED_MEMORY_PART = 4

/** Bytes that DuckDB may take in an engine of a role. */
export function memoryLimitOf(settings: EngineSettings, role: Role): number {
  return role === 'shared' ? settings.memoryLimitBytes / SHARED_MEMORY_PART : settings.memoryLimitBytes
}

/** The processes of a pool: each in a slot of its own, from its spawn until its folders are gone. */
export class PoolMembers {
  readonly #settings: EngineSettings
  readonly #hooks: PoolMembersHooks
  readonly #startChild: StartChild
  readonly #members = new Set<Member>()

  constructor(settings: EngineSettings, hooks: PoolMembersHooks, startChild: StartChild = startEngineChild) {
    this.#settings = settings
    this.#hooks = hooks
    this.#startChild = startChild
  }

  [Symbol.iterator](): Iterator<Member> {
    return this.#members.values()
  }

  /** The members of a role, or the spare ones, that have not ended. */
  of(role: Role | undefined): Member[] {
    return [...this.#members].filter((member) => member.role === role && !member.ended)
  }

  /** @throws when no process or no disk is available */
  spawn(role: Role | undefined): Member {
    const settings = this.#settings
    const since = performance.now()
    const child = this.#startChild({
      slot: this.#freeSlot(),
      folder: settings.folder,
      spillFolder: settings.spillFolder,
      connections: Math.max(settings.sharedConnections, settings.dedicatedConnections),
      dataLimitBytes: processMemoryLimit(memoryLimitOf(settings, role ?? 'dedicated')),
      arguments: {
        beatMs: settings.beatMs,
        ...(settings.functionsModule === undefined ? {} : { functionsModule: settings.functionsModule }),
      },
      ...(settings.launcher && { launcher: settings.launcher }),
      onReply: (frame) => member.engine?.onReply(frame),
      onExit: () => {
        if (member.engine) member.engine.onExit()
        else this.#hooks.onLost(member, 'crash')
      },
    })
    const member: Member = { child, role, ready: false, ended: false }
    this.#members.add(member)
    void child.gone.then(() => this.#members.delete(member))
    child.ready.then(
      () => {
        member.ready = true
        this.#hooks.onReady(member)
        settings.onEvent?.({
          type: 'started',
          slot: child.slot,
          pid: child.pid(),
          milliseconds: performance.now() - since,
        })
      },
      () => undefined,
    )
    return member
  }

  /** Resolves when all processes are gone and their folders are removed. */
  async killAll(): Promise<void> {
    for (const { engine, child } of this.#members) {
      engine?.kill('recycle')
      child.kill()
    }
    await Promise.all([...this.#members].map(({ child }) => child.gone))
  }

  /** Bytes that the engines hold, by purpose; engines that do not answer within `waitMs` are left out. */
  async memory(waitMs: number): Promise<Record<string, number>> {
    const late = new Promise<Record<string, number>>((resolve) => setTimeout(resolve, waitMs, {}).unref())
    const engines = [...this.#members].flatMap(({ engine }) => engine ?? [])
    const total: Record<string, number> = {}
    for (const tags of await Promise.all(engines.map((engine) => Promise.race([engine.memory(), late]))))
      for (const [tag, bytes] of Object.entries(tags)) total[tag] = (total[tag] ?? 0) + bytes
    return total
  }

  children(): EngineChildInfo[] {
    return [...this.#members].map(({ child, role, ready, engine }) => {
      const running = engine?.running() ?? 0
      const state = engine ? (running > 0 ? 'busy' : 'idle') : role === undefined && ready ? 'spare' : 'starting'
      return { slot: child.slot, pid: child.pid(), state, residentBytes: child.residentBytes(), running }
    })
  }

  #freeSlot(): number {
    const taken = new Set([...this.#members].map(({ child }) => child.slot))
    let slot = 0
    while (taken.has(slot)) slot++
    return slot
  }
}
