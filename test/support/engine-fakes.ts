import type { EngineChild, EngineChildOptions } from '../../src/execution/engine/engine-child.ts'
import type { EngineJob } from '../../src/execution/engine/engine-job.ts'
import type { EngineReply, EngineRequest } from '../../src/execution/engine/messages.ts'
import type { RunningEngine } from '../../src/execution/engine/running-engine.ts'

/** A fake of the process of an engine, which sends the messages of the test. */
export class FakeChild implements EngineChild {
  readonly slot: number
  readonly user = undefined
  readonly folder: string
  readonly spillFolder: string
  readonly ready: Promise<void>
  readonly gone: Promise<void>
  readonly sent: EngineRequest[] = []
  readonly #options: EngineChildOptions
  readonly #settle: { ready(): void; failed(error: Error): void; gone(): void }
  killed = false
  /** The bytes that the engine holds now. */
  resident = 0
  beaten = 0
  /** The CPU time that the engine has used. */
  used = 0

  constructor(options: EngineChildOptions) {
    let settleReady!: FakeChild['becomeReady']
    let fail!: (error: Error) => void
    let settleGone!: () => void
    this.ready = new Promise((resolve, reject) => {
      settleReady = resolve
      fail = reject
    })
    this.ready.catch(() => undefined)
    this.gone = new Promise((resolve) => (settleGone = resolve))
    this.#options = options
    this.#settle = { ready: settleReady, failed: fail, gone: settleGone }
    this.slot = options.slot
    this.folder = `${options.folder}/${options.slot}/`
    this.spillFolder = `${options.spillFolder}/${options.slot}/`
    this.beaten = performance.now()
  }

  get dataLimitBytes(): number {
    return this.#options.dataLimitBytes
  }

  becomeReady(): void {
    this.#settle.ready()
  }

  /** Ends the process for any reason. */
  exit(): void {
    this.#settle.failed(new Error('The engine ended while starting: '))
    this.#options.onExit()
    this.#settle.gone()
  }

  reply(header: EngineReply, body: Buffer = Buffer.alloc(0)): void {
    this.#options.onReply({ header, body })
  }

  /** Finishes the statement with this number, in the order of requests from 1. */
  answer(id: number): void {
    const figures = { startedAt: 0, wallNanos: 0, cpuNanos: 0, cpuExact: true, residentBytes: 0, profileBytes: 0 }
    this.reply({ type: 'done', id, rows: 0, overflow: false, ...figures })
  }

  configure(): Promise<void> {
    return Promise.resolve()
  }
  send(request: EngineRequest): void {
    this.sent.push(request)
  }
  kill(): void {
    this.killed = true
  }
  pid(): number {
    return 1000 + this.slot
  }
  fifo(connection: number): string {
    return `${this.folder}fifo-${connection}`
  }
  profile(connection: number): string {
    return `${this.folder}profile-${connection}`
  }
  staging(id: number): string {
    return `${this.folder}write-${id}`
  }
  residentBytes(): number {
    return this.resident
  }
  lastBeat(): number {
    return this.beaten
  }
  cpuMs(): number {
    return this.used
  }
  isHeld(): boolean {
    return false
  }
  lastWords(): string {
    return ''
  }
}

/** A job that runs a statement and records the engine, or the reason of a refusal. */
export class FakeJob implements EngineJob {
  readonly done = new Promise<never>(() => undefined)
  readonly #lane: 'shared' | 'dedicated'
  readonly id: string
  ranIn: RunningEngine | undefined
  refused: Error | undefined

  constructor(id: string, lane: 'shared' | 'dedicated') {
    this.id = id
    this.#lane = lane
  }

  lane(): 'shared' | 'dedicated' {
    return this.#lane
  }
  runIn(engine: RunningEngine): void {
    this.ranIn = engine
    engine.execute({
      id: this.id,
      asks: {
        kind: 'rows',
        query: { sql: 'SELECT 1', scans: [], row: { kind: 'text' } },
        output: { kind: 'inline', maxBytes: 1 },
        cachePrepared: false,
        profile: false,
      },
      prepareDeadlineMs: 1_000_000,
    })
  }
  cancel(): void {}
  reject(error: Error): void {
    this.refused = error
  }
}
