import { fork, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { PreparedWrite } from '../../src/connectors/spi/table-writer.ts'
import type { CommitStep } from '../../src/connectors/lake/version-chain.ts'

const program = new URL('./committer-process.mjs', import.meta.url)

/** The step at which a committer stops or dies, the nth time that it reaches it. Without this step it finishes. */
export interface Fate {
  readonly step: CommitStep
  readonly nth: number
  readonly signal: 'SIGSTOP' | 'SIGKILL'
}

/** A commit in a separate process. */
export interface Commit {
  /** Resolves when the commit has ended, died or stopped. */
  readonly settled: Promise<'done' | 'dead' | 'stopped'>
  /** Resumes a stopped commit and waits for its end. @returns the error, or undefined */
  wake(): Promise<string | undefined>
}

/** Processes that commit writes to a lake. Living processes are reused. */
export interface Committers {
  commit(prepared: PreparedWrite, fate?: Fate): Commit
  stop(): void
}

interface Message {
  readonly id?: number
  readonly said: 'ready' | 'stopping' | 'done'
  readonly error?: string
}

export function createCommitters(location: string): Committers {
  const all = new Set<ChildProcess>()
  const idle: ChildProcess[] = []
  let next = 0

  function start(): ChildProcess {
    const child = fork(program, [location], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    child.setMaxListeners(0)
    all.add(child)
    child.once('exit', () => all.delete(child))
    return child
  }

  return {
    commit(prepared, fate) {
      const child = idle.pop() ?? start()
      const id = next++
      const ended = new Promise<string | undefined>((resolve, reject) => {
        const onExit = (): void => resolve('dead')
        child.once('exit', onExit)
        child.once('error', reject)
        child.on('message', function onMessage(message: Message) {
          if (message.id !== id || message.said !== 'done') return
          child.off('message', onMessage)
          child.off('exit', onExit)
          idle.push(child)
          resolve(message.error)
        })
      })
      const stopped = new Promise<'stopped'>((resolve) => {
        child.on('message', (message: Message) => {
          if (message.id === id && message.said === 'stopping' && fate?.signal === 'SIGSTOP') {
            void untilStopped(child.pid!).then(() => resolve('stopped'))
          }
        })
      })
      child.send({ id, prepared, ...(fate && { at: fate }) })
      return {
        settled: Promise.race([
          stopped,
          ended.then((error) => (error === 'dead' ? 'dead' : 'done') as 'dead' | 'done'),
        ]),
        wake() {
          child.kill('SIGCONT')
          return ended
        },
      }
    },
    stop() {
      for (const child of all) child.kill('SIGKILL')
    },
  }
}

/** Waits until the kernel reports that the process is stopped. */
async function untilStopped(pid: number): Promise<void> {
  for (;;) {
    const state = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.[0]
    if (state === 'T') return
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
