import { fork } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Event } from '../../../src/events/event-log.ts'
import { until } from './log-fixture.ts'

/** The point of its next append (or claim, for `claim-record`) at which the process stops or dies, once. */
export type Point = 'before-send' | 'after-send' | 'after-ack' | 'after-fold' | 'before-answer' | 'claim-record'

export interface Answer {
  readonly ok: boolean
  /** The epoch of a claim, or the offset of an append. */
  readonly value?: string
  /** The name of the error. */
  readonly error?: string
}

/** An event log in a separate process: `log-process.mjs` over the built program. */
export interface LogProcess {
  readonly pid: number
  claim(): Promise<Answer>
  append(
    stream: string,
    expected: number,
    events: readonly Event[],
    pages?: readonly { token: number; text: string }[],
  ): Promise<Answer>
  /** Arms a point. The process sends itself the signal there, once. */
  arm(point: Point, signal: 'SIGSTOP' | 'SIGKILL'): Promise<void>
  /** Resolves when the process is stopped. */
  stopped(): Promise<void>
  resume(): void
  kill(): Promise<void>
  readonly exited: Promise<void>
}

const PROGRAM = new URL('./log-process.mjs', import.meta.url).pathname

export async function spawnLogProcess(config: object): Promise<LogProcess> {
  const child = fork(PROGRAM, [JSON.stringify(config)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const waiting = new Map<number, (answer: Answer) => void>()
  let asked = 0
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  void exited.then(() => waiting.forEach((settle) => settle({ ok: false, error: 'Exited' })))
  const ready = new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error('The log process ended before it was ready')))
    child.on('message', (message: { ready?: true; id: number; answer: Answer }) => {
      if (message.ready) return resolve()
      waiting.get(message.id)?.(message.answer)
      waiting.delete(message.id)
    })
  })
  await ready
  const ask = (command: object): Promise<Answer> => {
    const id = ++asked
    return new Promise((resolve) => {
      waiting.set(id, resolve)
      child.send({ id, ...command }, (error) => error && resolve({ ok: false, error: 'Exited' }))
    })
  }
  return {
    pid: child.pid!,
    claim: () => ask({ do: 'claim' }),
    append: (stream, expected, events, pages = []) => ask({ do: 'append', stream, expected, events, pages }),
    arm: async (point, signal) => void (await ask({ do: 'arm', point, signal })),
    stopped: () => until(async () => (await stateOf(child.pid!)).startsWith('T'), 60_000, 'the process stops'),
    resume: () => void child.kill('SIGCONT'),
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
    exited,
  }
}

async function stateOf(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  if (stat) return stat.slice(stat.lastIndexOf(')') + 2)
  const { stdout } = await promisify(execFile)('ps', ['-o', 'state=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return stdout.trim()
}
