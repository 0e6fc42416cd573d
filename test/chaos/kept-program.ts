import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawnQuipu, type QuipuProcess } from '../support/quipu-process.ts'
import { stopWithOwner } from '../support/stop-with-owner.ts'

const STOP_MS = 30_000

export interface KeptProgramOptions {
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** The file for its output and notes. */
  readonly logFile: string
}

/** A program of Quipu that starts again whenever it ends, as under a service manager. */
export class KeptProgram {
  readonly #options: KeptProgramOptions
  #process: QuipuProcess
  #stopping = false
  #stopped: Promise<number | null | undefined> | undefined
  readonly #kept: Promise<void>

  constructor(options: KeptProgramOptions) {
    this.#options = options
    this.#process = this.#spawn()
    this.#kept = this.#keep()
  }

  /** The current process. */
  get process(): QuipuProcess {
    return this.#process
  }

  /** Stops the restarts: the program does not start again from now on. */
  letEnd(): void {
    this.#stopping = true
  }

  /** Appends a note to the log file of the program. */
  note(text: string): void {
    appendFileSync(this.#options.logFile, text)
  }

  /** Sends SIGTERM; the program starts again by itself. Resolves once the old process has ended. */
  async restart(): Promise<void> {
    const process = this.#process
    process.signal('SIGTERM')
    await process.exit
  }

  /** Stops the program by SIGTERM for good. @returns the exit code; undefined when it did not end by itself */
  stop(): Promise<number | null | undefined> {
    return (this.#stopped ??= this.#stop())
  }

  #spawn(): QuipuProcess {
    const started = spawnQuipu(this.#options.args, { env: this.#options.env, productWaits: true })
    stopWithOwner(started.pid)
    return started
  }

  async #keep(): Promise<void> {
    for (;;) {
      const { code, stdout, stderr } = await this.#process.exit
      this.note(`${stdout}${stderr}\n— ended with ${code} —\n`)
      if (this.#stopping) return
      await sleep(100)
      if (this.#stopping) return
      this.#process = this.#spawn()
    }
  }

  async #stop(): Promise<number | null | undefined> {
    this.#stopping = true
    const process = this.#process
    try {
      process.signal('SIGTERM')
    } catch {
      // The process has already ended.
    }
    const late = Symbol()
    const ended = await Promise.race([process.exit, sleep(STOP_MS, late, { ref: false })])
    if (typeof ended === 'symbol') return undefined
    await this.#kept
    return ended.code
  }
}
