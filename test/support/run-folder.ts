import { mkdir, mkdtemp, rm, stat, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** The environment variable with the folder that all test files of one run share. The global set-up sets it. */
export const RUN_FOLDER = 'QUIPU_TEST_RUN_FOLDER'
/** The pid of the process that owns the run. Processes of the run end when it is gone. */
export const RUN_PID = 'QUIPU_TEST_RUN_PID'

export async function createRunFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'quipu-test-'))
  process.env[RUN_FOLDER] = folder
  process.env[RUN_PID] = String(process.pid)
  return folder
}

export function runFolder(): string {
  const folder = process.env[RUN_FOLDER]
  if (!folder) throw new Error('The global set-up of the tests did not run')
  return folder
}

/** Takes a lock with one holder at a time among the processes of a run. The lock of a dead holder ends after two minutes. */
export function withRunLock<T>(name: string, work: () => Promise<T>): Promise<T> {
  return withLock(join(runFolder(), `${name}.lock`), work)
}

/** Takes a lock with one holder at a time on this machine. The lock of a dead holder ends after two minutes. */
export async function withLock<T>(lock: string, work: () => Promise<T>): Promise<T> {
  await mkdir(dirname(lock), { recursive: true })
  for (;;) {
    try {
      await mkdir(lock)
      break
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const age = await stat(lock).then(
        (found) => Date.now() - found.mtimeMs,
        () => 0,
      )
      if (age > 120_000) await rm(lock, { recursive: true, force: true })
      await sleep(25)
    }
  }
  const living = setInterval(() => void utimes(lock, new Date(), new Date()).catch(() => {}), 10_000)
  try {
    return await work()
  } finally {
    clearInterval(living)
    await rm(lock, { recursive: true, force: true })
  }
}
