import { EngineError, ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { createEngineJob, type EngineJob } from './engine-job.ts'
import { EngineSupply } from './engine-supply.ts'
import type { EnginePool, EngineSettings } from './engine.ts'
import { memoryLimitOf } from './pool-members.ts'
import { PoolWatch } from './pool-watch.ts'
import { makeEmpty } from './slot-folders.ts'
import { WaitingJobs } from './waiting-jobs.ts'
import type { Role } from './engine-job.ts'

/**
 * Creates the engines for all statements of a process. A statement takes this path:
 *
 *     run ─> EngineJob ─> WaitingJobs ─> EngineSupply gives it a RunningEngine ─> EngineChild (a process)
 *                 ^                                                    │
 *                 └── its outcome: the result, an error, or a retry ───┘
 *
 * `PoolMembers` holds the processes; `PoolWatch` checks them regularly.
 */
export function createEnginePool(settings: EngineSettings): EnginePool {
  const waiting = new WaitingJobs()
  const supply = new EngineSupply({ settings, waiting, onGiven: () => watch.soon() })
  const { members } = supply
  const watch = new PoolWatch(members, settings.deadAfterMs)
  let started: Promise<void> | undefined
  let stopped: Promise<void> | undefined

  const enqueue = (job: EngineJob): void => {
    if (supply.isStopping()) return job.reject(stopping())
    waiting.add(job)
    supply.dispatch()
  }

  const stopAll = async (): Promise<void> => {
    supply.stop()
    watch.stop()
    waiting.rejectAll(stopping())
    await members.killAll()
  }

  const jobDeps = {
    settings,
    memoryLimit: (role: Role) => memoryLimitOf(settings, role),
    enqueue,
    dequeue: (job: EngineJob) => waiting.remove(job),
    isStopping: () => supply.isStopping(),
  }

  return {
    ...(settings.launcher && { stagedIn: settings.folder }),

    start() {
      started ??= (async () => {
        for (const folder of [settings.folder, settings.spillFolder]) await makeEmpty(folder)
        try {
          await supply.open('shared')
        } catch (error) {
          stopped ??= stopAll()
          await stopped
          const reason = error instanceof Error ? error.message : String(error)
          throw new ExitError(exitCodes.internal, `No engine could be started: ${reason}`, { cause: error })
        }
        watch.start()
        supply.scheduleSpare(settings.spareAfterMs)
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
      // A caller that cancels may not look at `done` any more.
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

    memory: (waitMs) => members.memory(waitMs),
    children: () => members.children(),
  }
}

function stopping(): EngineError {
  return new EngineError('SERVER_SHUTTING_DOWN', 'The engines are stopping')
}
