import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { EngineError, ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { createEngineJob, type EngineJob } from './engine-job.ts'
import { startEngineChild, type EngineChild } from './engine-child.ts'
import type { EngineChildInfo, EngineLost, EnginePool, EngineSettings } from './engine.ts'
import type { Frame } from './frames.ts'
import type { EngineReply } from './messages.ts'
import { createRunningEngine, type RunningEngine } from './running-engine.ts'
import { processMemoryLimit, restingMemoryLimit } from './sandbox.ts'

type Role = 'shared' | 'dedicated'

/** A process from its spawn to its end, with the engine it becomes once it has a role. */
interface Member {
  readonly child: EngineChild
  /** None yet: the spare. */
  role: Role | undefined
  engine?: RunningEngine
  /** Started, so a spare is one that can take over at once. */
  ready: boolean
  ended: boolean
}

/** Small statements are small: their engine gets a part of the memory of one that has a statement to itself. */
const SHARED_MEMORY_PART = 4
const WATCH_MS = 50
const IDLE_WATCH_MS = 500
const RESTART_FIRST_MS = 100
const RESTART_LONGEST_MS = 10_000
/** Starts that fail in a row until waiting statements are told. */
const FAILED_STARTS = 3
/** A spare that was used is replaced after a moment: its start takes a third of a second of CPU. */
const NEXT_SPARE_MS = 500

export function createEnginePool(settings: EngineSettings): EnginePool {
  const members = new Set<Member>()
  const queues: Record<Role, EngineJob[]> = { shared: [], dedicated: [] }
  let failedStarts = 0
  let retryStart: NodeJS.Timeout | undefined
  let spareTimer: NodeJS.Timeout | undefined
  let watchTimer: NodeJS.Timeout | undefined
  let watchDue = 0
  let started: Promise<void> | undefined
  let stopped: Promise<void> | undefined
  let stopping = false

  const memoryLimit = (role: Role): number =>
    role === 'shared' ? settings.memoryLimitBytes / SHARED_MEMORY_PART : settings.memoryLimitBytes

  const of = (role: Role | undefined): Member[] =>
    [...members].filter((member) => member.role === role && !member.ended)

  const freeSlot = (): number => {
    const taken = new Set([...members].map(({ child }) => child.slot))
    let slot = 0
    while (taken.has(slot)) slot++
    return slot
  }

  const spawnMember = (role: Role | undefined): Member => {
    const since = performance.now()
    const child = startEngineChild({
      slot: freeSlot(),
      folder: settings.folder,
      spillFolder: settings.spillFolder,
      connections: Math.max(settings.sharedConnections, settings.dedicatedConnections),
      dataLimitBytes: processMemoryLimit(memoryLimit(role ?? 'dedicated')),
      arguments: {
        beatMs: settings.beatMs,
        ...(settings.functionsModule === undefined ? {} : { functionsModule: settings.functionsModule }),
      },
      onReply: (frame: Frame<EngineReply>) => member.engine?.onReply(frame),
      onExit: () => {
        if (member.engine) member.engine.onExit()
        else ended(member, 'crash', [])
      },
    })
    const member: Member = { child, role, ready: false, ended: false }
    members.add(member)
    void child.gone.then(() => members.delete(member))
    child.ready.then(
      () => {
        member.ready = true
        failedStarts = 0
        settings.onEvent?.({
          type: 'started',
          slot: child.slot,
          pid: child.pid,
          milliseconds: performance.now() - since,
        })
      },
      () => undefined,
    )
    return member
  }

  /** Makes an engine of a role: of the spare when there is one, which is a third of a second sooner. */
  const openEngine = async (role: Role): Promise<void> => {
    const spare = of(undefined)[0]
    if (spare) scheduleSpare(NEXT_SPARE_MS)
    let member = spare
    try {
      member ??= spawnMember(role)
      member.role = role
      const { child } = member
      await child.ready
      await child.configure({
        spillFolder: child.spillFolder,
        allowedDirectories: [...settings.allowedDirectories, child.folder, child.spillFolder],
        memoryLimitBytes: memoryLimit(role),
        maxSpillBytes: settings.maxSpillBytes,
        threads: role === 'shared' ? 1 : settings.cores,
      })
      if (member.ended) throw new Error('The engine ended while starting')
    } catch (error) {
      member?.child.kill()
      startFailed(error)
      throw error
    }
    const opened = member
    opened.engine = createRunningEngine({
      child: opened.child,
      capacity: role === 'shared' ? settings.sharedConnections : 1,
      killBytes: processMemoryLimit(memoryLimit(role)),
      recycleBytes: restingMemoryLimit(memoryLimit(role)),
      announceStarts: role === 'dedicated',
      interruptToKillMs: settings.interruptToKillMs,
      deadAfterMs: settings.deadAfterMs,
      onEvent: (event) => settings.onEvent?.(event),
      onIdle: dispatch,
      onDead: (reason, statements) => ended(opened, reason, statements),
    })
    dispatch()
  }

  const startFailed = (error: unknown): void => {
    if (stopping) return
    failedStarts++
    if (failedStarts >= FAILED_STARTS) {
      const failure = new EngineError('GENERIC_INTERNAL_ERROR', 'No engine could be started', { cause: error })
      for (const job of [...queues.shared.splice(0), ...queues.dedicated.splice(0)]) job.reject(failure)
    }
    clearTimeout(retryStart)
    retryStart = setTimeout(
      () => {
        retryStart = undefined
        dispatch()
      },
      Math.min(RESTART_FIRST_MS * 2 ** (failedStarts - 1), RESTART_LONGEST_MS),
    )
  }

  const ended = (member: Member, reason: EngineLost['reason'], statements: readonly string[]): void => {
    if (member.ended) return
    member.ended = true
    const { slot, pid } = member.child
    // Of an end that we chose they say nothing.
    const lastWords = stopping || reason === 'cancel' || reason === 'recycle' ? '' : member.child.lastWords()
    settings.onEvent?.({
      type: 'ended',
      slot,
      pid,
      reason: stopping ? 'stopped' : reason,
      statements,
      ...(lastWords === '' ? {} : { lastWords }),
    })
    if (stopping) return
    if (member.role === undefined) scheduleSpare(RESTART_LONGEST_MS)
    // One that ended before it was an engine is a failed start, which is tried again with back-off; so is one that
    // crashed with nothing to do.
    if (!member.engine) return
    if (reason === 'crash' && statements.length === 0) startFailed(new Error('An idle engine crashed'))
    else dispatch()
  }

  const scheduleSpare = (delay: number): void => {
    if (stopping || spareTimer) return
    spareTimer = setTimeout(() => {
      spareTimer = undefined
      if (of(undefined).length > 0) return
      try {
        spawnMember(undefined)
      } catch {
        // No process or no disk to be had now; statements that need an engine say so.
        scheduleSpare(RESTART_LONGEST_MS)
      }
    }, delay)
    spareTimer.unref()
  }

  /** Gives waiting statements to engines with room and starts what is missing. Called whenever either may have changed. */
  const dispatch = (): void => {
    if (stopping) return
    for (const role of ['shared', 'dedicated'] as const) {
      const engines = of(role)
      for (const { engine } of engines) {
        while (queues[role].length > 0 && engine?.hasRoom()) {
          queues[role].shift()!.runIn(engine)
          watchSoon()
        }
      }
      if (retryStart) continue
      const starting = engines.filter(({ engine }) => !engine).length
      const wanted =
        role === 'shared'
          ? 1 - engines.length
          : Math.min(queues.dedicated.length - starting, settings.cores - engines.length)
      for (let count = 0; count < wanted; count++) openEngine(role).catch(() => undefined)
    }
  }

  const enqueue = (job: EngineJob): void => {
    if (stopping) {
      job.reject(new EngineError('SERVER_SHUTTING_DOWN', 'The engines are stopping'))
      return
    }
    queues[job.lane()].push(job)
    dispatch()
  }

  const dequeue = (job: EngineJob): void => {
    for (const queue of [queues.shared, queues.dedicated]) {
      const place = queue.indexOf(job)
      if (place >= 0) queue.splice(place, 1)
    }
  }

  const watch = (): void => {
    const now = performance.now()
    // When this process itself was stopped or busy, beats lie unread: the silence is our own, and the next round knows.
    const stalled = now - watchDue > IDLE_WATCH_MS
    let busy = false
    for (const { engine, child, ready } of members) {
      if (!stalled) {
        if (engine) engine.watch(now)
        else if (ready && now - child.lastBeat() > settings.deadAfterMs) child.kill()
      }
      if (engine && engine.running() > 0) busy = true
    }
    watchIn(busy || stalled ? WATCH_MS : IDLE_WATCH_MS)
  }

  const watchIn = (delay: number): void => {
    clearTimeout(watchTimer)
    watchDue = performance.now() + delay
    watchTimer = setTimeout(watch, delay)
  }

  /** Something runs now: do not wait out the idle interval. */
  const watchSoon = (): void => {
    if (watchDue - performance.now() > WATCH_MS) watchIn(WATCH_MS)
  }

  const stopAll = async (): Promise<void> => {
    stopping = true
    clearTimeout(watchTimer)
    clearTimeout(spareTimer)
    clearTimeout(retryStart)
    const failure = new EngineError('SERVER_SHUTTING_DOWN', 'The engines are stopping')
    for (const job of [...queues.shared.splice(0), ...queues.dedicated.splice(0)]) job.reject(failure)
    for (const { engine, child } of members) {
      engine?.kill('recycle')
      child.kill()
    }
    await Promise.all([...members].map(({ child }) => child.gone))
  }

  const jobDeps = {
    settings,
    memoryLimit,
    enqueue,
    dequeue,
    isStopping: () => stopping,
  }

  return {
    start() {
      started ??= (async () => {
        for (const folder of [settings.folder, settings.spillFolder]) {
          mkdirSync(folder, { recursive: true, mode: 0o700 })
          for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
        }
        try {
          await openEngine('shared')
        } catch (error) {
          stopped ??= stopAll()
          await stopped
          const reason = error instanceof Error ? error.message : String(error)
          throw new ExitError(exitCodes.internal, `No engine could be started: ${reason}`, { cause: error })
        }
        watchIn(IDLE_WATCH_MS)
        scheduleSpare(settings.spareAfterMs)
      })()
      return started
    },

    stop() {
      stopped ??= stopAll()
      return stopped
    },

    run(statement) {
      const job = createEngineJob(statement, jobDeps)
      enqueue(job)
      const done = job.done.then(({ result }) => result)
      // Whoever cancels may not look at `done` any more.
      done.catch(() => undefined)
      return {
        done,
        cancel: () => job.cancel(),
      }
    },

    async inspect(question) {
      const job = createEngineJob({ id: 'metadata', question }, jobDeps)
      enqueue(job)
      const { body } = await job.done
      return JSON.parse(body.toString()) as Readonly<Record<string, unknown>>[]
    },

    async memory(waitMs) {
      const late = new Promise<Record<string, number>>((resolve) => setTimeout(resolve, waitMs, {}).unref())
      const engines = [...members].flatMap(({ engine }) => engine ?? [])
      const total: Record<string, number> = {}
      for (const tags of await Promise.all(engines.map((engine) => Promise.race([engine.memory(), late]))))
        for (const [tag, bytes] of Object.entries(tags)) total[tag] = (total[tag] ?? 0) + bytes
      return total
    },

    children() {
      return [...members].map(({ child, role, ready, engine }): EngineChildInfo => {
        const running = engine?.running() ?? 0
        const state = engine ? (running > 0 ? 'busy' : 'idle') : role === undefined && ready ? 'spare' : 'starting'
        return { slot: child.slot, pid: child.pid, state, residentBytes: child.residentBytes(), running }
      })
    },
  }
}
