import type { StatementConnection } from './engine-connections.ts'

export interface RunningStatement {
  readonly id: number
  readonly announce: boolean
  connection?: StatementConnection
  fifo?: number
  interrupted: boolean
  repeat?: NodeJS.Timeout
  cpuMicros: number
  cpuExact: boolean
}

/** User and system time of the process, microseconds. */
export type CpuUsage = () => { readonly user: number; readonly system: number }

/** The statements that run in an engine now, and their cost: the process's CPU time is divided among them. */
export class RunningStatements {
  readonly #running = new Map<number, RunningStatement>()
  readonly #cpuUsage: CpuUsage
  #last: ReturnType<CpuUsage>

  constructor(cpuUsage: CpuUsage = () => process.cpuUsage()) {
    this.#cpuUsage = cpuUsage
    this.#last = cpuUsage()
  }

  get(id: number): RunningStatement | undefined {
    return this.#running.get(id)
  }

  begin(id: number, announce: boolean): RunningStatement {
    this.#account()
    const alone = this.#running.size === 0
    const statement: RunningStatement = { id, announce, interrupted: false, cpuMicros: 0, cpuExact: alone }
    for (const other of this.#running.values()) other.cpuExact = false
    this.#running.set(id, statement)
    return statement
  }

  end(statement: RunningStatement): void {
    this.#account()
    this.#running.delete(statement.id)
    clearInterval(statement.repeat)
  }

  /** Divides the CPU time since the last call among the running statements. */
  #account(): void {
    const now = this.#cpuUsage()
    const used = now.user + now.system - this.#last.user - this.#last.system
    this.#last = now
    for (const statement of this.#running.values()) statement.cpuMicros += used / this.#running.size
  }
}
