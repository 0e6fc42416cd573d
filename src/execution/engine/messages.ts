/**
 * Headers of the frames between a process and its engine (`frames.ts`). No frame contains a statement that DuckDB gets
 * unchanged.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import type { FileQuestion } from '../../connectors/spi/table-source.ts'
import type { EngineQuery } from './engine-query.ts'
import type { SandboxLimits } from './sandbox.ts'
import type { EngineVocabulary } from './statement-wall.ts'

/** The arguments of the engine's program: they hold for any role that the engine may get. */
export interface EngineArguments {
  readonly beatMs: number
  /** File URL of an `EngineModule`. */
  readonly functionsModule?: string
  /**
   * When the engine runs as a user of its own: the folder of its parent's socket, which replaces descriptors 3 and 4.
   */
  readonly channelFolder?: string
}

/** The functions that the front end adds to an engine's process. */
export interface EngineModule {
  /**
   * Registers scalar functions, once per instance and before its configuration is locked; macros are part of the
   * vocabulary.
   */
  register(connection: DuckDBConnection): Promise<void>
  /** Without a module statements can call no function. */
  readonly vocabulary: EngineVocabulary
}

/** The arguments that the engine's main thread passes to its worker thread. */
export interface ThreadArguments {
  readonly functionsModule?: string
  readonly channelFolder?: string
  /** A counter that the worker thread increments while its event loop runs. */
  readonly loopPasses: Int32Array<SharedArrayBuffer>
}

export type EngineRequest =
  /** Gives the engine its role: the settings of the sandbox, with the lock as the last setting. */
  | { readonly type: 'configure'; readonly limits: SandboxLimits }
  | {
      readonly type: 'run'
      readonly id: number
      /** Number of the connection, which no other statement uses until this statement has ended. */
      readonly connection: number
      readonly query: EngineQuery
      /** Cache the prepared statement by its text. */
      readonly cache: boolean
      /** Send `started` as soon as the statement is prepared; else only when it takes longer than a moment. */
      readonly announce: boolean
      /** The file for DuckDB's profile; absent without a profile. */
      readonly profile?: string
      readonly output:
        | { readonly kind: 'inline'; readonly maxBytes: number }
        | { readonly kind: 'fifo'; readonly path: string }
        /** `make`: the engine has to make the folder, and to remove it if the statement fails. */
        | { readonly kind: 'parquet'; readonly folder: string; readonly make: boolean }
    }
  | { readonly type: 'inspect'; readonly id: number; readonly connection: number; readonly question: FileQuestion }
  | { readonly type: 'interrupt'; readonly id: number }
  /** Asks for the memory that DuckDB holds; answered while statements run. */
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
  /** Bytes at the end of the body that are the profile. */
  profileBytes: z.number(),
}
export type EngineFigures = Readonly<z.infer<z.ZodObject<typeof figures>>>

/** The messages that an engine may send. An engine that sends anything else is no longer trusted, and is killed. */
export const engineReplySchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready') }),
  z.object({ type: z.literal('configured') }),
  /** The engine cannot be used. */
  z.object({ type: z.literal('failed'), message: z.string() }),
  /** The statement is prepared and runs now. Left out for a statement that ends at once. */
  z.object({ type: z.literal('started'), id: z.number() }),
  /**
   * The engine cannot see whether the statement is planned: it plans the text a second time, with as much CPU as the
   * first time.
   */
  z.object({ type: z.literal('again'), id: z.number() }),
  /** Body: rows (inline), JSON rows (inspect) or JSON figures of the files (parquet), then the profile. */
  z.object({ type: z.literal('done'), id: z.number(), ...figures }),
  z.object({
    type: z.literal('error'),
    id: z.number(),
    message: z.string(),
    /** Whether not even `SELECT 1` works in this instance any more. */
    broken: z.literal(true).optional(),
    /** The statement never reached DuckDB: it does not have the form of rendered statements. */
    refused: z.literal(true).optional(),
  }),
  /** Bytes by purpose, in DuckDB's words. */
  z.object({ type: z.literal('memory'), tags: z.record(z.string(), z.number()) }),
])
export type EngineReply = Readonly<z.infer<typeof engineReplySchema>>
