import { deferred, type Deferred } from '../../shared/deferred.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { EngineBound, EngineEvent, EngineLost, EngineResult, EngineUsage } from './engine.ts'
import { requestOf, resultOf } from './engine-answers.ts'
import type { EngineChild } from './engine-child.ts'
import type { EngineAttempt, Outcome, EngineWork } from './engine-work.ts'
import type { Frame } from './frames.ts'
import type { EngineFigures, EngineReply } from './messages.ts'
import { openRowReader, type RowReader } from './row-reader.ts'
import { spilledBytes } from './spilled-bytes.ts'
import { takeStaged } from './staged-files.ts'

/** A process of an engine with its role, its connections, and the statements that run in it. */
export interface RunningEngine {
  readonly child: EngineChild
  running(): number
  hasRoom(): boolean
  isDead(): boolean
  execute(work: EngineWork): EngineAttempt
  onReply(frame: Frame<EngineReply>): void
  /** Called every 50 ms while something runs: memory, heartbeat, figures. */
  watch(now: number): void
  /** Bytes that DuckDB holds, by purpose; empty for an engine that ended. Calls at the same time share one request. */
  memory(): Promise<Readonly<Record<string, number>>>
  /** Kills the process; all statements that run in it are lost. */
  kill(reason: EngineLost['reason']): void
  /** To be called when the process is gone. */
  onExit(): void
}

export interface RunningEngineOptions {
  readonly child: EngineChild
  /** The number of statements that may run at once. */
  readonly capacity: number
  readonly killBytes: number
  readonly recycleBytes: number
  /** Ask the engine to report every prepared statement; this costs small statements a tenth of their time. */
  readonly announceStarts: boolean
  readonly interruptToKillMs: number
  readonly deadAfterMs: number
  onEvent(event: EngineEvent): void
  /** A statement ended: there may be room for the next. */
  onIdle(): void
  /** Called once, when the engine takes no more statements. */
  onDead(reason: EngineLost['reason'], statements: readonly string[]): void
}

interface Running {
  readonly id: number
  readonly work: EngineWork
  readonly connection: number
  readonly settle: (outcome: Outcome) => void
  reader?: RowReader
  prepareTimer?: NodeJS.Timeout
  readonly givenAt: number
  /** CPU time of the process when it was given the statement. */
  readonly cpuMsBefore: number
  /** CPU time of the process when it began to plan the statement a second time. */
  cpuMsAgain?: number
  killTimer?: NodeJS.Timeout
  canceledAt?: number
  /** Why this process canceled the statement: the consumer or the reader failed. */
  refusal?: { readonly error: unknown }
  /**
   * Other statements ran beside it, or left the process larger than its size at rest: the memory is not this
   * statement's alone.
   */
  hadNeighbours: boolean
  /** Resident bytes of the process when it was given the statement. */
  readonly bytesBefore: number
  /** Its share of the CPU time that the process has used since. */
  cpuMs: number
  peakBytes: number
  spilledBytes: number
  /** The engine has finished; its files are being copied unless this is aborted. */
  taking?: AbortController
  ended: boolean
}

/** Share of the memory limit above which a sudden end of the process counts as out of memory. */
const NEARLY = 0.85
/** A planning that waits and gets no CPU ends after this multiple of its deadline. */
const WAITING_FACTOR = 10
/** The shortest time between two checks of planning: the CPU time has no finer resolution. */
const LOOK_AGAIN_MS = 50

export function createRunningEngine(options: RunningEngineOptions): RunningEngine {
  return new ChildEngine(options)
}

type Tags = Readonly<Record<string, number>>

class ChildEngine implements RunningEngine {
  readonly child: EngineChild
  readonly #options: RunningEngineOptions
  readonly #running = new Map<number, Running>()
  /** Connections that no statement has. */
  readonly #free: number[]
  readonly #baseBytes: number
  #lastId = 0
  #lastBytes: number
  #lastCpuMs: number
  #dead = false
  /** The request for the engine's memory that is under way. */
  #asked: Deferred<Tags> | undefined

  constructor(options: RunningEngineOptions) {
    const { child, capacity } = options
    this.child = child
    this.#options = options
    this.#free = Array.from({ length: capacity }, (_, index) => capacity - 1 - index)
    this.#baseBytes = child.residentBytes()
    this.#lastBytes = this.#baseBytes
    this.#lastCpuMs = child.cpuMs()
  }

  running(): number {
    return this.#running.size
  }

  hasRoom(): boolean {
    return !this.#dead && this.#free.length > 0
  }

  isDead(): boolean {
    return this.#dead
  }

  execute(work: EngineWork): EngineAttempt {
    const outcome = deferred<Outcome>()
    const bytesBefore = this.child.residentBytes()
    const statement: Running = {
      id: ++this.#lastId,
      work,
      connection: this.#free.pop()!,
      settle: outcome.resolve,
      hadNeighbours: this.#running.size > 0 || bytesBefore > this.#options.recycleBytes,
      givenAt: performance.now(),
      cpuMsBefore: this.child.cpuMs(),
      bytesBefore,
      cpuMs: 0,
      peakBytes: 0,
      spilledBytes: 0,
      ended: false,
    }
    const { id, connection } = statement
    this.#shareCpu()
    for (const other of this.#running.values()) other.hadNeighbours = true
    this.#running.set(id, statement)
    try {
      this.#openReader(statement)
    } catch (error) {
      this.#finish(statement, { kind: 'refused', error })
      return { outcome: outcome.promise, cancel: () => undefined }
    }
    const announce = this.#options.announceStarts
    this.#watchPlanning(statement, work.prepareDeadlineMs)
    this.child.send(requestOf(work, this.child, { id, connection, announce }))
    return { outcome: outcome.promise, cancel: () => this.#cancel(statement) }
  }

  onReply({ header, body }: Frame<EngineReply>): void {
    if (header.type === 'memory') {
      this.#asked?.resolve(header.tags)
      this.#asked = undefined
    }
    if (header.type === 'again') return this.#planAgain(header.id)
    if (header.type !== 'started' && header.type !== 'done' && header.type !== 'error') return
    const statement = this.#running.get(header.id)
    // A message about a statement that is already finished is not an answer.
    if (!statement || statement.ended || statement.taking) return
    clearTimeout(statement.prepareTimer)
    delete statement.prepareTimer
    if (header.type === 'started') return
    if (statement.canceledAt !== undefined) {
      this.#finish(statement, { kind: 'canceled' })
    } else if (header.type === 'error') {
      const { hadNeighbours, reader } = statement
      const delivered = reader?.delivered() ?? false
      const { message: text, broken = false, refused = false } = header
      this.#finish(statement, { kind: 'error', text, broken, refused, alone: !hadNeighbours, delivered })
    } else if (statement.reader) {
      statement.reader.ended.then(
        () => this.#complete(statement, header, body),
        // The consumer refused the last rows, or a cancel closed the reader before them: the engine itself has
        // finished.
        (error: unknown) =>
          this.#finish(
            statement,
            statement.canceledAt === undefined ? { kind: 'refused', error } : { kind: 'canceled' },
          ),
      )
    } else {
      this.#complete(statement, header, body)
    }
  }

  watch(now: number): void {
    if (this.#dead) return
    const { child } = this
    const { deadAfterMs, killBytes, recycleBytes } = this.#options
    if (now - child.lastBeat() > deadAfterMs) {
      this.#die('hang')
      return
    }
    const bytes = child.residentBytes()
    this.#lastBytes = bytes
    const spilled = this.#running.size > 0 ? spilledBytes(child.spillFolder) : 0
    for (const statement of this.#running.values()) {
      statement.peakBytes = Math.max(statement.peakBytes, bytes)
      statement.spilledBytes = Math.max(statement.spilledBytes, spilled)
    }
    this.#shareCpu()
    for (const statement of this.#running.values()) if (!statement.ended) statement.work.onUsage?.(usageOf(statement))
    if (bytes > killBytes) this.#die('memory')
    else if (this.#running.size > 0) this.#holdToBounds()
    else if (bytes > recycleBytes) this.#die('recycle')
  }

  /** Divides the CPU time since the last check evenly among the running statements. */
  #shareCpu(): void {
    const now = this.child.cpuMs()
    const part = (now - this.#lastCpuMs) / this.#running.size
    this.#lastCpuMs = now
    for (const statement of this.#running.values()) statement.cpuMs += part
  }

  #holdToBounds(): void {
    for (const statement of this.#running.values()) {
      const { cpu, memory } = statement.work.bounds ?? {}
      if (statement.ended || statement.refusal) continue
      const { cpuNanos, peakBytes } = usageOf(statement)
      const passed = memory && peakBytes > memory.most ? memory : cpu && cpuNanos > cpu.most ? cpu : undefined
      if (!passed) continue
      statement.refusal = { error: beyond(passed) }
      this.#cancel(statement)
    }
  }

  memory(): Promise<Tags> {
    if (this.#dead) return Promise.resolve({})
    if (!this.#asked) {
      this.#asked = deferred<Tags>()
      this.child.send({ type: 'memory' })
    }
    return this.#asked.promise
  }

  kill(reason: EngineLost['reason']): void {
    this.#die(reason)
  }

  onExit(): void {
    // A process that cannot get memory aborts; V8 does so first.
    this.#die(this.#lastBytes > this.#options.killBytes * NEARLY ? 'memory' : 'crash')
  }

  #watchPlanning(statement: Running, afterMs: number): void {
    statement.prepareTimer = setTimeout(() => {
      setImmediate(() => {
        if (statement.ended || statement.prepareTimer === undefined) return
        const leftMs = this.#planningLeftMs(statement)
        if (leftMs > 0) return this.#watchPlanning(statement, Math.max(leftMs, LOOK_AGAIN_MS))
        // A thread that another statement's function blocks cannot report that this statement is prepared.
        this.#die('deadline', this.child.isHeld() && !this.#options.announceStarts ? undefined : statement)
      })
    }, afterMs)
  }

  #planAgain(id: number): void {
    const statement = this.#running.get(id)
    if (statement) statement.cpuMsAgain ??= this.child.cpuMs()
  }

  /**
   * The rest of the CPU time that a statement may take for planning, milliseconds. The engine's CPU time is divided
   * evenly among its running statements, and between the two plannings of a statement.
   */
  #planningLeftMs({ work, givenAt, cpuMsBefore, cpuMsAgain }: Running): number {
    const { prepareDeadlineMs } = work
    if (performance.now() - givenAt >= WAITING_FACTOR * prepareDeadlineMs) return 0
    const cpuMs = this.child.cpuMs()
    const ofSecond = (cpuMs - (cpuMsAgain ?? cpuMs)) / 2
    return prepareDeadlineMs - (cpuMs - cpuMsBefore - ofSecond) / this.#running.size
  }

  #finish(statement: Running, outcome: Outcome): void {
    if (statement.ended) return
    statement.ended = true
    this.#shareCpu()
    statement.work.onUsage?.(usageOf(statement))
    statement.taking?.abort()
    clearTimeout(statement.prepareTimer)
    clearTimeout(statement.killTimer)
    if (statement.canceledAt !== undefined) {
      const how = outcome.kind === 'lost' ? 'kill' : 'interrupt'
      this.#options.onEvent({ type: 'canceled', milliseconds: performance.now() - statement.canceledAt, how })
    }
    // The FIFO must be closed before its connection is used again, else its reader would get the next statement's rows.
    const closed = statement.reader?.close() ?? Promise.resolve()
    void closed.then(() => {
      this.#running.delete(statement.id)
      this.#free.push(statement.connection)
      const refused = statement.refusal && (outcome.kind === 'canceled' || outcome.kind === 'lost')
      statement.settle(refused ? { kind: 'refused', error: statement.refusal!.error } : outcome)
      if (!this.#dead) this.#options.onIdle()
    })
  }

  #die(reason: EngineLost['reason'], culprit?: Running): void {
    if (this.#dead) return
    this.#dead = true
    this.child.kill()
    this.#asked?.resolve({})
    const single = this.#running.size === 1
    const statements = [...this.#running.values()].map(({ work }) => work.id)
    for (const statement of this.#running.values()) {
      const delivered = statement.reader?.delivered() ?? false
      const alone = single && !statement.hadNeighbours
      this.#finish(statement, { kind: 'lost', reason, alone, culprit: statement === culprit, delivered })
    }
    this.#options.onDead(reason, statements)
  }

  #cancel(statement: Running): void {
    if (statement.ended || statement.canceledAt !== undefined) return
    statement.canceledAt = performance.now()
    if (statement.taking) return statement.taking.abort()
    void statement.reader?.close()
    this.child.send({ type: 'interrupt', id: statement.id })
    statement.killTimer = setTimeout(() => {
      // The answer may be in the socket, unread because this process stalled: read the socket once more first.
      setImmediate(() => {
        if (!statement.ended) this.#die('cancel', statement)
      })
    }, this.#options.interruptToKillMs)
  }

  #openReader(statement: Running): void {
    const { asks } = statement.work
    if (asks.kind !== 'rows' || asks.output.kind !== 'stream') return
    const { output } = asks
    statement.reader = openRowReader(
      this.child.fifo(statement.connection),
      (lines) => output.onRows(lines),
      (error) => {
        statement.refusal = { error }
        this.#cancel(statement)
      },
    )
  }

  /** Ends a statement that the engine finished. If the engine runs as another user, its files are copied first. */
  #complete(statement: Running, figures: EngineFigures, body: Buffer): void {
    const { child } = this
    const { asks } = statement.work
    let outcome: Extract<Outcome, { kind: 'result' }>
    try {
      const peak = Math.max(statement.peakBytes, figures.residentBytes)
      outcome = resultOf(statement.work, figures, body, {
        peakMemoryBytes: Math.max(0, peak - this.#baseBytes),
        spilledBytes: statement.spilledBytes,
        enginePid: child.pid(),
      })
    } catch {
      // An engine of this program does not send such an answer.
      return this.#die('crash')
    }
    const exceeded = boundBeyond(statement, outcome.result, figures.residentBytes)
    if (exceeded) return this.#finish(statement, { kind: 'refused', error: beyond(exceeded) })
    if (child.user === undefined || asks.kind !== 'rows' || asks.output.kind !== 'parquet')
      return this.#finish(statement, outcome)
    statement.taking = new AbortController()
    const { signal } = statement.taking
    takeStaged(child.staging(statement.id), asks.output.folder, child.user, outcome.result.files ?? [], signal).then(
      (files) =>
        this.#finish(
          statement,
          signal.aborted ? { kind: 'canceled' } : { ...outcome, result: { ...outcome.result, files } },
        ),
      (error: unknown) => this.#finish(statement, signal.aborted ? { kind: 'canceled' } : { kind: 'refused', error }),
    )
  }
}

function usageOf({ cpuMs, hadNeighbours, peakBytes, bytesBefore }: Running): EngineUsage {
  return { cpuNanos: Math.round(cpuMs * 1e6), peakBytes: hadNeighbours ? 0 : Math.max(0, peakBytes - bytesBefore) }
}

function beyond({ errorName, message }: EngineBound): EngineError {
  return new EngineError(errorName, message)
}

/** The bound that a statement exceeded, when it ended before the first check. */
function boundBeyond(statement: Running, result: EngineResult, residentBytes: number): EngineBound | undefined {
  const { cpu, memory } = statement.work.bounds ?? {}
  if (statement.hadNeighbours) return undefined
  if (cpu && result.cpuExact && result.cpuNanos > cpu.most) return cpu
  const bytes = Math.max(statement.peakBytes, residentBytes) - statement.bytesBefore
  return memory && bytes > memory.most ? memory : undefined
}
