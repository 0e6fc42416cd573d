import { join } from 'node:path'
import { freePort } from '../support/postgres.ts'
import { spawnQuipu, type QuipuProcess } from '../support/quipu-process.ts'
import { repository } from '../support/repository.ts'
import { KeptProgram } from './kept-program.ts'
import type { Plan } from './plan.ts'

export interface ChaosServerOptions {
  readonly folder: string
  readonly plan: Plan
  readonly brokers?: readonly string[]
  /** The name of the data folder and of the program's log. @default 'data' and 'quipu' */
  readonly name?: string
  readonly settings?: Readonly<Record<string, string>>
}

/** Short waits: abandoned queries and tasks must end before the checks of a run. */
const SHORT_WAITS = {
  QUIPU_FIRST_FOLLOW_MS: '5s',
  QUIPU_CLIENT_ABSENT_MS: '8s',
  QUIPU_COORDINATOR_DEAD_MS: '4s',
  QUIPU_DRAIN_MS: '2s',
}
const CLOCK_HOOK = join(repository, 'test', 'chaos', 'shifted-clock.mjs')

/** `quipu start` on a data folder, started again whenever it ends, as a service manager does. */
export class ChaosServer {
  readonly base: string
  readonly dataDir: string
  readonly clockFile: string
  readonly #args: readonly string[]
  readonly #env: Readonly<Record<string, string>>
  readonly #program: KeptProgram

  private constructor({ folder, plan, brokers, name, settings }: ChaosServerOptions, port: number) {
    this.base = `http://127.0.0.1:${port}`
    this.dataDir = join(folder, name ?? 'data')
    this.clockFile = join(folder, `${name ?? ''}clock`)
    const kafka = brokers
      ? ['--kafka-brokers', brokers.join(','), '--kafka-topic', `quipu.chaos-${plan.seed}-${port}`]
      : []
    this.#args = ['--data-dir', this.dataDir, ...kafka]
    this.#env = {
      ...SHORT_WAITS,
      QUIPU_PORT: String(port),
      QUIPU_WORKERS: String(plan.workers),
      QUIPU_PAGE_BYTES: String(plan.pageBytes),
      ...(plan.waitsForPages ? { QUIPU_ANSWERS_KEPT_MS: '25s' } : {}),
      QUIPU_LOG_LEVEL: 'info',
      NODE_OPTIONS: `--import ${CLOCK_HOOK}`,
      CHAOS_CLOCK_FILE: this.clockFile,
      ...settings,
    }
    const logFile = join(folder, `${name ?? 'quipu'}.log`)
    this.#program = new KeptProgram({ args: ['start', ...this.#args], env: this.#env, logFile })
  }

  /** Starts a server and waits until it answers. */
  static async start(options: ChaosServerOptions): Promise<ChaosServer> {
    const server = new ChaosServer(options, await freePort())
    try {
      await server.#program.process.url
    } catch (error) {
      server.#program.letEnd()
      throw error
    }
    return server
  }

  /** Appends a note to the log file of the server. */
  note(text: string): void {
    this.#program.note(text)
  }

  /** Sends SIGTERM; the server starts again by itself. Resolves once the old server has ended. */
  restart(): Promise<void> {
    return this.#program.restart()
  }

  /** Runs another program of Quipu on the same data folder. */
  command(...args: string[]): QuipuProcess {
    const { NODE_OPTIONS: _, ...env } = this.#env
    return spawnQuipu([...args, ...this.#args], { env, productWaits: true })
  }

  /** Stops the server by SIGTERM for good. @returns the exit code; undefined when it did not end by itself */
  stop(): Promise<number | null | undefined> {
    return this.#program.stop()
  }
}
