import { readdirSync, statSync } from 'node:fs'
import type { FileQuestion } from '../../connectors/spi/table-source.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { EngineEvent, EngineFileStats, EngineLost, EngineOutput, EngineResult } from './engine.ts'
import type { EngineChild } from './engine-child.ts'
import type { Frame } from './frames.ts'
import type { EngineQuery } from './engine-query.ts'
import type { EngineFigures, EngineReply, EngineRequest } from './messages.ts'
import { parseProfile } from './profile.ts'
import { openRowReader, type RowReader } from './row-reader.ts'

/** A statement as one engine runs it. */
export interface Work {
  readonly id: string
  readonly asks:
    | {
        readonly kind: 'rows'
        readonly query: EngineQuery
        readonly output: EngineOutput
        readonly cachePrepared: boolean
        readonly profile: boolean
      }
    | { readonly kind: 'files'; readonly question: FileQuestion }
  /** Past it the engine is killed. */
  readonly prepareDeadlineMs: number
}

/** How an attempt ended. */
export type Outcome =
  | { readonly kind: 'result'; readonly result: EngineResult; readonly body: Buffer }
  | {
      readonly kind: 'error'
      /** DuckDB's. */
      readonly text: string
      /** No statement works in this engine any more. */
      readonly broken: boolean
      /** It never reached DuckDB: the engine takes no such statement. */
      readonly refused: boolean
      /** No other statement ran in the engine meanwhile. */
      readonly alone: boolean
      readonly delivered: boolean
    }
  /** The rows could not be taken: the reader's or the consumer's own error. */
  | { readonly kind: 'refused'; readonly error: unknown }
  | { readonly kind: 'canceled' }
  | {
      readonly kind: 'lost'
      readonly reason: EngineLost['reason']
      /** Nothing else ran when the engine died. */
      readonly alone: boolean
      /** This statement is why the engine was killed. */
      readonly culprit: boolean
      readonly delivered: boolean
    }

export interface Attempt {
  /** Never rejects; settles when the engine no longer works on the statement. */
  readonly outcome: Promise<Outcome>
  /** Interrupts, and kills the engine when that does not bite in time. */
  cancel(): void
}

/** An engine with its role, its connections, and what runs in it. */
export interface RunningEngine {
  readonly child: EngineChild
  running(): number
  hasRoom(): boolean
  isDead(): boolean
  execute(work: Work): Attempt
  onReply(frame: Frame<EngineReply>): void
  /** Called every 50 ms while something runs: memory, heartbeat, figures. */
  watch(now: number): void
  /** Bytes that DuckDB holds, by what they are for; nothing of an engine that ended. One question serves all who ask. */
  memory(): Promise<Readonly<Record<string, number>>>
  /** Kills the process; everything that runs in it is lost. */
  kill(reason: EngineLost['reason']): void
  /** The process is gone. */
  onExit(): void
}

export interface RunningEngineOptions {
  readonly child: EngineChild
  /** How many statements at once. */
  readonly capacity: number
  readonly killBytes: number
  readonly recycleBytes: number
  /** Ask for word of every statement that is prepared; costs small ones a tenth of their time. */
  readonly announceStarts: boolean
  readonly interruptToKillMs: number
  readonly deadAfterMs: number
  onEvent(event: EngineEvent): void
  /** A statement ended: there may be room for the next. */
  onIdle(): void
  /** Takes no more statements; called once. */
  onDead(reason: EngineLost['reason'], statements: readonly string[]): void
}

interface Running {
  readonly work: Work
  readonly connection: number
  readonly settle: (outcome: Outcome) => void
  reader?: RowReader
  prepareTimer?: NodeJS.Timeout
  killTimer?: NodeJS.Timeout
  canceledAt?: number
  /** Why it was canceled from within: the consumer or the reader failed. */
  refusal?: { readonly error: unknown }
  hadNeighbours: boolean
  peakBytes: number
  spilledBytes: number
  ended: boolean
}

/** Part of the limit at which a sudden end is taken for one of memory. */
const NEARLY = 0.85

export function createRunningEngine(options: RunningEngineOptions): RunningEngine {
  const { child } = options
  const running = new Map<number, Running>()
  const free = Array.from({ length: options.capacity }, (_, index) => options.capacity - 1 - index)
  const baseBytes = child.residentBytes()
  let lastId = 0
  let lastBytes = baseBytes
  let dead = false

  let asked:
    | { readonly answer: Promise<Readonly<Record<string, number>>>; resolve(tags: Record<string, number>): void }
    | undefined

  const finish = (id: number, statement: Running, outcome: Outcome): void => {
    if (statement.ended) return
    statement.ended = true
    clearTimeout(statement.prepareTimer)
    clearTimeout(statement.killTimer)
    if (statement.canceledAt !== undefined) {
      const how = outcome.kind === 'lost' ? 'kill' : 'interrupt'
      options.onEvent({ type: 'canceled', milliseconds: performance.now() - statement.canceledAt, how })
    }
    // The FIFO must be closed before its connection is used again, else its reader would get the next one's rows.
    const closed = statement.reader?.close() ?? Promise.resolve()
    void closed.then(() => {
      running.delete(id)
      free.push(statement.connection)
      const refused = statement.refusal && (outcome.kind === 'canceled' || outcome.kind === 'lost')
      statement.settle(refused ? { kind: 'refused', error: statement.refusal!.error } : outcome)
      if (!dead) options.onIdle()
    })
  }

  const die = (reason: EngineLost['reason'], culprit?: Running): void => {
    if (dead) return
    dead = true
    child.kill()
    asked?.resolve({})
    const alone = running.size === 1
    const statements = [...running.values()].map(({ work }) => work.id)
    for (const [id, statement] of running) {
      const delivered = statement.reader?.delivered() ?? false
      finish(id, statement, { kind: 'lost', reason, alone, culprit: statement === culprit, delivered })
    }
    options.onDead(reason, statements)
  }

  const cancel = (id: number, statement: Running): void => {
    if (statement.ended || statement.canceledAt !== undefined) return
    statement.canceledAt = performance.now()
    void statement.reader?.close()
    child.send({ type: 'interrupt', id })
    statement.killTimer = setTimeout(() => {
      // An answer may lie unread behind a stall of our own: look at the socket once more first.
      setImmediate(() => {
        if (!statement.ended) die('cancel', statement)
      })
    }, options.interruptToKillMs)
  }

  const openReader = (id: number, statement: Running): void => {
    const { asks } = statement.work
    if (asks.kind !== 'rows' || asks.output.kind !== 'stream') return
    const { output } = asks
    statement.reader = openRowReader(
      child.fifo(statement.connection),
      (lines) => output.onRows(lines),
      (error) => {
        statement.refusal = { error }
        cancel(id, statement)
      },
    )
  }

  const send = (id: number, connection: number, { asks }: Work): void => {
    if (asks.kind === 'files') return child.send({ type: 'inspect', id, connection, question: asks.question })
    child.send({
      type: 'run',
      id,
      connection,
      query: asks.query,
      cache: asks.cachePrepared,
      announce: options.announceStarts,
      ...(asks.profile ? { profile: child.profile(connection) } : {}),
      output: requestedOutput(asks.output, () => child.fifo(connection)),
    })
  }

  const resultOf = (statement: Running, figures: EngineFigures, body: Buffer): Outcome => {
    const rows = figures.profileBytes > 0 ? body.subarray(0, body.length - figures.profileBytes) : body
    const profile = figures.profileBytes > 0 ? parseProfile(body.subarray(rows.length).toString()) : undefined
    const { asks } = statement.work
    const output = asks.kind === 'rows' ? asks.output.kind : 'rows of objects'
    const result: EngineResult = {
      rows: figures.rows,
      ...(output === 'inline' && !figures.overflow ? { inline: rows } : {}),
      ...(figures.overflow ? { overflow: true } : {}),
      ...(output === 'parquet' ? { files: parseFileStats(rows) } : {}),
      ...(profile ? { profile } : {}),
      startedAt: figures.startedAt,
      wallNanos: figures.wallNanos,
      cpuNanos: figures.cpuNanos,
      cpuExact: figures.cpuExact,
      peakMemoryBytes: Math.max(0, Math.max(statement.peakBytes, figures.residentBytes) - baseBytes),
      spilledBytes: statement.spilledBytes,
      enginePid: child.pid,
    }
    return { kind: 'result', result, body: rows }
  }

  return {
    child,
    running: () => running.size,
    hasRoom: () => !dead && free.length > 0,
    isDead: () => dead,

    execute(work) {
      const id = ++lastId
      const connection = free.pop()!
      const { promise, settle } = outcomePromise()
      const statement: Running = {
        work,
        connection,
        settle,
        hadNeighbours: running.size > 0,
        peakBytes: 0,
        spilledBytes: 0,
        ended: false,
      }
      for (const other of running.values()) other.hadNeighbours = true
      running.set(id, statement)
      try {
        openReader(id, statement)
      } catch (error) {
        finish(id, statement, { kind: 'refused', error })
        return { outcome: promise, cancel: () => undefined }
      }
      statement.prepareTimer = setTimeout(() => {
        setImmediate(() => {
          if (statement.ended || statement.prepareTimer === undefined) return
          // A thread that is held by another statement's function cannot say that this one is prepared.
          die('deadline', child.isHeld() && !options.announceStarts ? undefined : statement)
        })
      }, work.prepareDeadlineMs)
      send(id, connection, work)
      return { outcome: promise, cancel: () => cancel(id, statement) }
    },

    onReply({ header, body }) {
      if (header.type === 'memory') {
        asked?.resolve(header.tags)
        asked = undefined
      }
      if (header.type !== 'started' && header.type !== 'done' && header.type !== 'error') return
      const statement = running.get(header.id)
      if (!statement || statement.ended) return
      clearTimeout(statement.prepareTimer)
      delete statement.prepareTimer
      if (header.type === 'started') return
      if (statement.canceledAt !== undefined) {
        finish(header.id, statement, { kind: 'canceled' })
      } else if (header.type === 'error') {
        const { hadNeighbours, reader } = statement
        const delivered = reader?.delivered() ?? false
        const { message: text, broken = false, refused = false } = header
        finish(header.id, statement, { kind: 'error', text, broken, refused, alone: !hadNeighbours, delivered })
      } else if (statement.reader) {
        statement.reader.ended.then(
          () => finish(header.id, statement, resultOf(statement, header, body)),
          // The consumer refused the last rows, or a cancel closed the reader before them: the engine itself is done.
          (error: unknown) =>
            finish(
              header.id,
              statement,
              statement.canceledAt === undefined ? { kind: 'refused', error } : { kind: 'canceled' },
            ),
        )
      } else {
        finish(header.id, statement, resultOf(statement, header, body))
      }
    },

    watch(now) {
      if (dead) return
      if (now - child.lastBeat() > options.deadAfterMs) {
        die('hang')
        return
      }
      const bytes = child.residentBytes()
      lastBytes = bytes
      const spilled = running.size > 0 ? folderBytes(child.spillFolder) : 0
      for (const statement of running.values()) {
        statement.peakBytes = Math.max(statement.peakBytes, bytes)
        statement.spilledBytes = Math.max(statement.spilledBytes, spilled)
      }
      if (bytes > options.killBytes) die('memory')
      else if (running.size === 0 && bytes > options.recycleBytes) die('recycle')
    },

    memory() {
      if (dead) return Promise.resolve({})
      if (!asked) {
        let resolve!: (tags: Readonly<Record<string, number>>) => void
        const answer = new Promise<Readonly<Record<string, number>>>((settle) => (resolve = settle))
        asked = { answer, resolve }
        child.send({ type: 'memory' })
      }
      return asked.answer
    },

    kill: (reason) => die(reason),
    // A process that cannot get memory aborts, V8 before all.
    onExit: () => die(lastBytes > options.killBytes * NEARLY ? 'memory' : 'crash'),
  }
}

function requestedOutput(output: EngineOutput, fifo: () => string): Extract<EngineRequest, { type: 'run' }>['output'] {
  switch (output.kind) {
    case 'inline':
      return { kind: 'inline', maxBytes: output.maxBytes }
    case 'stream':
      return { kind: 'fifo', path: fifo() }
    case 'parquet':
      return { kind: 'parquet', folder: output.folder }
    default:
      return unreachable(output)
  }
}

function parseFileStats(body: Buffer): readonly EngineFileStats[] {
  return JSON.parse(body.toString()) as EngineFileStats[]
}

function outcomePromise(): { promise: Promise<Outcome>; settle(outcome: Outcome): void } {
  let settle!: (outcome: Outcome) => void
  const promise = new Promise<Outcome>((resolve) => {
    settle = resolve
  })
  return { promise, settle }
}

/** Bytes of DuckDB's temporary files; the folder exists only while something is spilled. */
function folderBytes(folder: string): number {
  if (!statSync(folder, { throwIfNoEntry: false })) return 0
  let bytes = 0
  for (const name of readdirSync(folder)) bytes += statSync(folder + name, { throwIfNoEntry: false })?.size ?? 0
  return bytes
}
