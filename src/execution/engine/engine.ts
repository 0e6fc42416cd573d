import type { FileQuestion } from '../../connectors/spi/table-source.ts'
import type { ErrorName } from '../../shared/error-table.ts'
import type { Service } from '../../shared/service.ts'
import type { EngineQuery } from './engine-query.ts'
import type { EngineLauncher } from './launched-program.ts'
import { QuipuError } from '../../shared/quipu-error.ts'

/**
 * The parent's side of the engines: child processes of one DuckDB instance each, spoken to over a socket pair.
 * A pool belongs to one process (a worker, or the coordinator for coordinator-only stages).
 */
export interface EnginePool extends Service {
  /**
   * Runs one SELECT; inline and streamed rows are the JSON texts of arrays.
   * Never throws; everything comes through `done`.
   */
  run(statement: EngineStatement): EngineRun
  /** Answers a connector's question about files; rows as objects. */
  inspect(question: FileQuestion): Promise<readonly Readonly<Record<string, unknown>>[]>
  /**
   * Bytes that DuckDB holds in all engines together, by what they are for.
   * @param waitMs engines that do not answer in time are left out
   */
  memory(waitMs: number): Promise<Readonly<Record<string, number>>>
  /** Where engines of users of their own put what they write, until it is copied: a folder of the disk that needs room then. */
  readonly stagedIn?: string
  /** What runs now, for metrics and `/v1/status`. */
  children(): readonly EngineChildInfo[]
}

export interface EngineStatement {
  /** Task id and batch, or query id: for logs and messages. */
  readonly id: string
  readonly query: EngineQuery
  /** Small statements share one engine; any other gets an engine to itself from the pool. */
  readonly placement: 'shared' | 'dedicated'
  /** Prepared apart first. */
  readonly risky: boolean
  /** DuckDB's profiler on: `EngineResult.profile` is there unless DuckDB wrote none. */
  readonly profile: boolean
  /** May the prepared statement be kept by its text? Off for one-off texts (splits inside). */
  readonly cachePrepared: boolean
  readonly output: EngineOutput
  /** Run time left, milliseconds: past it the statement ends with EXCEEDED_TIME_LIMIT. */
  readonly remainingMillis?: number
  readonly bounds?: EngineBounds
  /** Told of what it has taken while it runs, and when it ends, however it does. */
  readonly onUsage?: (usage: EngineUsage) => void
}

/** What a statement has taken of its engine until now, as its bounds are held to. */
export interface EngineUsage {
  /** Of an engine that several share, an even part. */
  readonly cpuNanos: number
  /** At most at once, by which the engine's process has grown; 0 where several have shared it. */
  readonly peakBytes: number
}

/** What a statement may take of its engine; past one it ends with that bound's error. */
export interface EngineBounds {
  /** CPU in nanoseconds; of an engine that several share, it is shared out evenly among those that run at once. */
  readonly cpu?: EngineBound | undefined
  /** Bytes by which the engine's process grows. One below what a shared engine may have gets an engine to itself. */
  readonly memory?: EngineBound | undefined
}

export interface EngineBound {
  readonly most: number
  readonly errorName: ErrorName
  readonly message: string
}

export type EngineOutput =
  /** Rows come back in `EngineResult.inline`; more than `maxBytes` ends with `overflow: true` and no rows. */
  | { readonly kind: 'inline'; readonly maxBytes: number }
  /**
   * Rows are streamed through a FIFO: `onRows` gets whole lines `[…],\n` concatenated; the engine stops pulling while
   * the promise is pending (back-pressure). They are copied by whoever keeps them: the next come into the same memory.
   */
  | { readonly kind: 'stream'; onRows(lines: Buffer): void | Promise<void> }
  /**
   * Nothing comes back but `EngineResult.files`: the rows of any SELECT are written as Parquet files of about 128 MB into
   * the folder, their columns those of the SELECT. Run again after a loss, it writes files of other names: only those
   * that come back count.
   */
  | { readonly kind: 'parquet'; readonly folder: string }

export interface EngineRun {
  /** Rejects with an EngineError (Trino's names; DuckDB's own text never comes through) or `EngineLost`. */
  readonly done: Promise<EngineResult>
  /** The engine is idle within 200 ms: interrupt, then SIGKILL. `done` rejects with USER_CANCELED. Safe to call twice. */
  cancel(): void
}

export interface EngineResult {
  readonly rows: number
  /** For inline output: the rows `[…],\n[…]` without enclosing brackets; empty without rows. */
  readonly inline?: Buffer
  readonly overflow?: boolean
  /** Of Parquet output; without rows one file with none. */
  readonly files?: readonly EngineFileStats[]
  readonly profile?: DuckDbProfile
  readonly startedAt: number
  readonly wallNanos: number
  /** CPU of the engine process while the statement ran; exact when nothing else ran in that engine. */
  readonly cpuNanos: number
  readonly cpuExact: boolean
  readonly peakMemoryBytes: number
  readonly spilledBytes: number
  readonly enginePid: number
}

export interface EngineFileStats {
  /** Absolute. */
  readonly path: string
  readonly rows: number
  readonly bytes: number
  /** Compressed bytes by column name. */
  readonly columnBytes: Readonly<Record<string, number>>
}

/** DuckDB's JSON profile, read as written, unknown fields kept out. */
export interface DuckDbProfile {
  /** Wall seconds summed over threads. */
  readonly scheduledSeconds: number
  readonly children: readonly DuckDbOperator[]
}

export interface DuckDbOperator {
  readonly type: string
  readonly name: string
  readonly timingSeconds: number
  readonly rowsOut: number
  readonly estimatedRows?: number
  readonly extraInfo: Readonly<Record<string, string | readonly string[]>>
  readonly children: readonly DuckDbOperator[]
}

export interface EngineChildInfo {
  readonly slot: number
  readonly pid: number
  readonly state: 'starting' | 'spare' | 'busy' | 'idle'
  readonly residentBytes: number
  readonly running: number
}

/** The engine died under a statement through no fault the statement is known to have: it may be tried again. */
export class EngineLost extends QuipuError {
  readonly retry = 'anew'
  readonly reason: 'memory' | 'deadline' | 'hang' | 'crash' | 'cancel' | 'recycle'

  constructor(reason: EngineLost['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

export interface EngineSettings {
  /** FIFOs and profiles of the slots lie below, absolute. */
  readonly folder: string
  readonly spillFolder: string
  /** Absolute, with trailing slash: the only places DuckDB may read (its own folders are added). */
  readonly allowedDirectories: readonly string[]
  /** DuckDB's own memory_limit of a dedicated engine; a shared one gets a quarter. The kill limit lies above. */
  readonly memoryLimitBytes: number
  readonly maxSpillBytes: number
  /** Cores of the container. */
  readonly cores: number
  /** Connections of the shared and of a dedicated engine. */
  readonly sharedConnections: number
  readonly dedicatedConnections: number
  /** File URL of an `EngineModule`: macros, scalar functions, and what statements may call. */
  readonly functionsModule?: string
  /** Starts engines as users of their own, with the module that it knows itself. */
  readonly launcher?: EngineLauncher
  readonly prepareDeadlineMs: number
  readonly interruptToKillMs: number
  readonly beatMs: number
  readonly deadAfterMs: number
  /** Milliseconds after ready until the spare engine is started. */
  readonly spareAfterMs: number
  /** DuckDB's text of an error to ours; lives in the SQL front end. */
  translateError(text: string): Error
  readonly onEvent?: (event: EngineEvent) => void
}

export type EngineEvent =
  | { readonly type: 'started'; readonly slot: number; readonly pid: number; readonly milliseconds: number }
  | {
      readonly type: 'ended'
      readonly slot: number
      readonly pid: number
      readonly reason: EngineLost['reason'] | 'stopped'
      readonly statements: readonly string[]
      /** What the process wrote on its standard error last, for the log. */
      readonly lastWords?: string
    }
  /** The engine did not take a statement: something before it is broken, or hostile. */
  | { readonly type: 'refused'; readonly statement: string; readonly message: string }
  /** An engine's own user may not open a file that this process's user may. */
  | { readonly type: 'closed'; readonly statement: string; readonly user: number; readonly message: string }
  | { readonly type: 'canceled'; readonly milliseconds: number; readonly how: 'interrupt' | 'kill' }
  /** A statement gave its result. */
  | {
      readonly type: 'statement'
      readonly kind: 'fragment' | 'metadata'
      readonly milliseconds: number
      readonly spilledBytes: number
    }
