import type { FileQuestion } from '../../connectors/spi/table-source.ts'
import type { ErrorName } from '../../shared/error-table.ts'
import type { Service } from '../../shared/service.ts'
import type { EngineQuery } from './engine-query.ts'
import type { EngineLauncher } from './launched-program.ts'
import { QuipuError } from '../../shared/quipu-error.ts'

/**
 * The parent's side of the engines: child processes with one DuckDB instance each, connected by a socket pair. A pool
 * belongs to one process (a worker, or the coordinator for coordinator-only stages).
 */
export interface EnginePool extends Service {
  /**
   * Runs one SELECT; inline and streamed rows are the JSON texts of arrays. Never throws; results and errors come
   * through `done`.
   */
  run(statement: EngineStatement): EngineRun
  /** Answers a connector's question about files; rows as objects. */
  inspect(question: FileQuestion): Promise<readonly Readonly<Record<string, unknown>>[]>
  /**
   * Bytes that DuckDB holds in all engines together, by purpose.
   * @param waitMs engines that do not answer in time are left out
   */
  memory(waitMs: number): Promise<Readonly<Record<string, number>>>
  /**
   * The folder for files of engines with users of their own, until the files are copied. Its disk needs room for them.
   */
  readonly stagedIn?: string
  /** The engine processes, for metrics and `/v1/status`. */
  children(): readonly EngineChildInfo[]
}

export interface EngineStatement {
  /** Task id and batch, or query id: for logs and messages. */
  readonly id: string
  readonly query: EngineQuery
  /** Small statements share one engine; any other statement gets a dedicated engine from the pool. */
  readonly placement: 'shared' | 'dedicated'
  /** The statement runs in an engine of its own, where it is prepared first. */
  readonly risky: boolean
  /** Whether DuckDB's profiler is on: `EngineResult.profile` is present unless DuckDB wrote no profile. */
  readonly profile: boolean
  /**
   * Whether the prepared statement may be cached by its text; false for texts that are used once (they contain splits).
   */
  readonly cachePrepared: boolean
  readonly output: EngineOutput
  /** The rest of the run time, milliseconds: after it the statement ends with EXCEEDED_TIME_LIMIT. */
  readonly remainingMillis?: number
  readonly bounds?: EngineBounds
  /** Called with the usage so far, while the statement runs and when it ends for any reason. */
  readonly onUsage?: (usage: EngineUsage) => void
}

/** The usage of a statement so far; its bounds are compared with it. */
export interface EngineUsage {
  /** In a shared engine, an even share of the engine's CPU time. */
  readonly cpuNanos: number
  /** The largest growth of the engine's process at any moment; 0 when several statements shared it. */
  readonly peakBytes: number
}

/** The limits of a statement; a statement that exceeds a bound ends with that bound's error. */
export interface EngineBounds {
  /** CPU in nanoseconds; a shared engine's CPU time is divided evenly among the statements that run at once. */
  readonly cpu?: EngineBound | undefined
  /**
   * Growth of the engine's process, bytes. A statement with a bound below a shared engine's limit gets an engine to
   * itself.
   */
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
   * the promise is pending (back-pressure). A caller that keeps the lines has to copy them: the next lines use the same
   * memory.
   */
  | { readonly kind: 'stream'; onRows(lines: Buffer): void | Promise<void> }
  /**
   * Returns only `EngineResult.files`: writes the rows of any SELECT as Parquet files of about 128 MB into the folder,
   * with the columns of the SELECT. A second attempt after a loss writes files with other names: only the returned
   * files count.
   */
  | { readonly kind: 'parquet'; readonly folder: string }

export interface EngineRun {
  /** Rejects with an EngineError (Trino's names; DuckDB's own text never comes through) or `EngineLost`. */
  readonly done: Promise<EngineResult>
  /**
   * Makes the engine idle within 200 ms: interrupt, then SIGKILL. `done` rejects with USER_CANCELED. Safe to call
   * twice.
   */
  cancel(): void
}

export interface EngineResult {
  readonly rows: number
  /** For inline output: the rows `[…],\n[…]` without enclosing brackets; empty without rows. */
  readonly inline?: Buffer
  readonly overflow?: boolean
  /** For Parquet output; a result without rows is one empty file. */
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

/** DuckDB's JSON profile with the fields that are used; others are left out. */
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

/** The engine died while the statement ran, and the statement is not known to be the cause: it may be tried again. */
export class EngineLost extends QuipuError {
  readonly retry = 'anew'
  readonly reason: 'memory' | 'deadline' | 'hang' | 'crash' | 'cancel' | 'recycle'

  constructor(reason: EngineLost['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

export interface EngineSettings {
  /** Holds the FIFOs and profiles of the slots; absolute. */
  readonly folder: string
  readonly spillFolder: string
  /** Absolute, with trailing slash: the only folders that DuckDB may read (its own folders are added). */
  readonly allowedDirectories: readonly string[]
  /** DuckDB's own memory_limit for a dedicated engine; a shared engine gets a quarter. The kill limit is higher. */
  readonly memoryLimitBytes: number
  readonly maxSpillBytes: number
  /** Cores of the container. */
  readonly cores: number
  /** Connections of the shared and of a dedicated engine. */
  readonly sharedConnections: number
  readonly dedicatedConnections: number
  /** File URL of an `EngineModule`: macros, scalar functions, and what statements may call. */
  readonly functionsModule?: string
  /** Starts engines as users of their own, with a module that the launcher itself knows. */
  readonly launcher?: EngineLauncher
  readonly prepareDeadlineMs: number
  readonly interruptToKillMs: number
  readonly beatMs: number
  readonly deadAfterMs: number
  /** Milliseconds from ready until the spare engine is started. */
  readonly spareAfterMs: number
  /** Turns DuckDB's text of an error into an error of Quipu; the SQL front end implements it. */
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
      /** The end of the process's standard error, for the log. */
      readonly lastWords?: string
    }
  /** The engine refused a statement: an earlier stage is faulty, or hostile. */
  | { readonly type: 'refused'; readonly statement: string; readonly message: string }
  /** The engine's own user may not open a file that this process's user may open. */
  | { readonly type: 'closed'; readonly statement: string; readonly user: number; readonly message: string }
  | { readonly type: 'canceled'; readonly milliseconds: number; readonly how: 'interrupt' | 'kill' }
  /** A statement gave its result. */
  | {
      readonly type: 'statement'
      readonly kind: 'fragment' | 'metadata'
      readonly milliseconds: number
      readonly spilledBytes: number
    }
