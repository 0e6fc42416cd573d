/** Headers of the frames between a process and its engine (`frames.ts`). */

/** What the engine's program is started with: everything that holds for any role the engine may get. */
export interface EngineArguments {
  readonly beatMs: number
  /** File URL of the module that registers functions. */
  readonly functionsModule?: string
}

/** What the engine's main thread hands to its worker thread. */
export interface ThreadArguments {
  readonly functionsModule?: string
  /** One number that the worker thread raises while its event loop turns. */
  readonly turns: Int32Array<SharedArrayBuffer>
}

export type EngineRequest =
  /** Gives the engine its role: runs these settings in their order, the last of them the lock. */
  | { readonly type: 'configure'; readonly settings: readonly string[] }
  | {
      readonly type: 'run'
      readonly id: number
      /** Number of the connection, which nothing else uses until this statement has ended. */
      readonly connection: number
      readonly sql: string
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
  | { readonly type: 'query'; readonly id: number; readonly connection: number; readonly sql: string }
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
  /** Body: rows (inline), JSON rows (query) or JSON figures of the files (parquet), then the profile. */
  | ({ readonly type: 'done'; readonly id: number } & EngineFigures)
  /** Broken: not even `SELECT 1` works any more in this instance. */
  | { readonly type: 'error'; readonly id: number; readonly message: string; readonly broken?: true }
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
