/** Headers of the frames between a process and its engine (`frames.ts`): no frame brings a statement that DuckDB is given as it is. */
import type { DuckDBConnection } from '@duckdb/node-api'
import type { FileQuestion } from '../../connectors/spi/table-source.ts'
import type { EngineQuery } from './engine-query.ts'
import type { SandboxLimits } from './sandbox.ts'
import type { EngineVocabulary } from './statement-wall.ts'

/** What the engine's program is started with: everything that holds for any role the engine may get. */
export interface EngineArguments {
  readonly beatMs: number
  /** File URL of an `EngineModule`. */
  readonly functionsModule?: string
}

/** What the front end brings into an engine's process. */
export interface EngineModule {
  /** Registers macros and scalar functions, once per instance and before its configuration is locked. */
  register(connection: DuckDBConnection): Promise<void>
  /** Without a module nothing can be called. */
  readonly vocabulary: EngineVocabulary
}

/** What the engine's main thread hands to its worker thread. */
export interface ThreadArguments {
  readonly functionsModule?: string
  /** One number that the worker thread raises while its event loop turns. */
  readonly turns: Int32Array<SharedArrayBuffer>
}

export type EngineRequest =
  /** Gives the engine its role: the settings of the sandbox, the last of them the lock. */
  | { readonly type: 'configure'; readonly limits: SandboxLimits }
  | {
      readonly type: 'run'
      readonly id: number
      /** Number of the connection, which nothing else uses until this statement has ended. */
      readonly connection: number
      readonly query: EngineQuery
      /** Keep the prepared statement by its text. */
      readonly cache: boolean
      /** Say at once that it is prepared; else only when it takes longer than a moment. */
      readonly announce: boolean
      /** Where DuckDB writes the profile; absent without a profile. */
      readonly profile?: string
      readonly output:
        | { readonly kind: 'inline'; readonly maxBytes: number }
        | { readonly kind: 'fifo'; readonly path: string }
        | { readonly kind: 'parquet'; readonly folder: string }
    }
  | { readonly type: 'inspect'; readonly id: number; readonly connection: number; readonly question: FileQuestion }
  | { readonly type: 'interrupt'; readonly id: number }
  /** What DuckDB holds; answered beside whatever runs. */
  | { readonly type: 'memory' }

export type EngineReply =
  | { readonly type: 'ready' }
  | { readonly type: 'configured' }
  /** The engine cannot be used. */
  | { readonly type: 'failed'; readonly message: string }
  /** Prepared, now running. Left out when a statement ends at once. */
  | { readonly type: 'started'; readonly id: number }
  /** Body: rows (inline), JSON rows (inspect) or JSON figures of the files (parquet), then the profile. */
  | ({ readonly type: 'done'; readonly id: number } & EngineFigures)
  | {
      readonly type: 'error'
      readonly id: number
      readonly message: string
      /** Not even `SELECT 1` works any more in this instance. */
      readonly broken?: true
      /** The statement never reached DuckDB: it is not of the form that rendered statements have. */
      readonly refused?: true
    }
  /** Bytes by what they are for, as DuckDB names it. */
  | { readonly type: 'memory'; readonly tags: Readonly<Record<string, number>> }

export interface EngineFigures {
  readonly rows: number
  readonly overflow: boolean
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  readonly wallNanos: number
  readonly cpuNanos: number
  readonly cpuExact: boolean
  readonly residentBytes: number
  /** How many bytes at the end of the body are the profile. */
  readonly profileBytes: number
}
