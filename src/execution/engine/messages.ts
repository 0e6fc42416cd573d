/** Headers of the frames between a process and its engine (`frames.ts`): no frame brings a statement that DuckDB is given as it is. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import type { FileQuestion } from '../../connectors/spi/table-source.ts'
import type { EngineQuery } from './engine-query.ts'
import type { SandboxLimits } from './sandbox.ts'
import type { EngineVocabulary } from './statement-wall.ts'

/** What the engine's program is started with: everything that holds for any role the engine may get. */
export interface EngineArguments {
  readonly beatMs: number
  /** File URL of an `EngineModule`. */
  readonly functionsModule?: string
  /** Where the engine is a user of its own: the folder of its parent's socket, in place of descriptors 3 and 4. */
  readonly channelFolder?: string
}

/** What the front end brings into an engine's process. */
export interface EngineModule {
  /** Registers scalar functions, once per instance and before its configuration is locked; macros are of the vocabulary. */
  register(connection: DuckDBConnection): Promise<void>
  /** Without a module nothing can be called. */
  readonly vocabulary: EngineVocabulary
}

/** What the engine's main thread hands to its worker thread. */
export interface ThreadArguments {
  readonly functionsModule?: string
  readonly channelFolder?: string
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
        /** `make`: the folder is the engine's own, to be made, and removed should the statement fail. */
        | { readonly kind: 'parquet'; readonly folder: string; readonly make: boolean }
    }
  | { readonly type: 'inspect'; readonly id: number; readonly connection: number; readonly question: FileQuestion }
  | { readonly type: 'interrupt'; readonly id: number }
  /** What DuckDB holds; answered beside whatever runs. */
  | { readonly type: 'memory' }

const figures = {
  rows: z.number(),
  overflow: z.boolean(),
  /** Milliseconds since the epoch. */
  startedAt: z.number(),
  wallNanos: z.number(),
  cpuNanos: z.number(),
  cpuExact: z.boolean(),
  residentBytes: z.number(),
  /** How many bytes at the end of the body are the profile. */
  profileBytes: z.number(),
}
export type EngineFigures = Readonly<z.infer<z.ZodObject<typeof figures>>>

/** What an engine may say; one that says anything else is none of ours any more, and is killed. */
export const engineReplySchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready') }),
  z.object({ type: z.literal('configured') }),
  /** The engine cannot be used. */
  z.object({ type: z.literal('failed'), message: z.string() }),
  /** Prepared, now running. Left out when a statement ends at once. */
  z.object({ type: z.literal('started'), id: z.number() }),
  /** Whether it is planned is not to be seen: its text is planned once more beside it, with as much CPU as it has itself. */
  z.object({ type: z.literal('again'), id: z.number() }),
  /** Body: rows (inline), JSON rows (inspect) or JSON figures of the files (parquet), then the profile. */
  z.object({ type: z.literal('done'), id: z.number(), ...figures }),
  z.object({
    type: z.literal('error'),
    id: z.number(),
    message: z.string(),
    /** Not even `SELECT 1` works any more in this instance. */
    broken: z.literal(true).optional(),
    /** The statement never reached DuckDB: it is not of the form that rendered statements have. */
    refused: z.literal(true).optional(),
  }),
  /** Bytes by what they are for, as DuckDB names it. */
  z.object({ type: z.literal('memory'), tags: z.record(z.string(), z.number()) }),
])
export type EngineReply = Readonly<z.infer<typeof engineReplySchema>>
