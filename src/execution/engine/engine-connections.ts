import type {
  DuckDBConnection,
  DuckDBInstance,
  DuckDBMaterializedResult,
  DuckDBPreparedStatement,
} from '@duckdb/node-api'
import { enableProfiling } from './sandbox.ts'

/** One DuckDB connection and the statements prepared on it. */
export interface StatementConnection {
  interrupt(): void
  /**
   * Prepares exactly one statement; refuses a text of several. Caches it by its text when `cache` is set.
   * @param ready rejects when the text may not be run; not called for a cached statement
   */
  prepare(sql: string, cache: boolean, ready: () => Promise<void>): Promise<DuckDBPreparedStatement>
  /** Returns what `prepare` gave: frees it unless it is cached. */
  release(prepared: DuckDBPreparedStatement): void
  /**
   * Runs a text without preparing it first: scans of files are bound once, whereas a prepared statement binds them
   * again when it runs. The caller must have checked that the text is one statement: DuckDB would run several.
   */
  run(sql: string): Promise<DuckDBMaterializedResult>
  /** Whether the statement is planned and has begun. DuckDB reports no progress for some plans. */
  hasBegun(): boolean
}

export interface Connections {
  /** The numbered connection, opened at its first use; the profiled one writes each statement's profile to the file. */
  take(number: number, profileFile?: string): Promise<StatementConnection>
  /** Resolves when a text is planned, on a connection of its own. @throws Error the reason why it cannot be planned */
  plan(sql: string): Promise<void>
  /** Whether the instance can still run the simplest statement. */
  works(): Promise<boolean>
}

/** Cached statements per connection: a small statement's plan is some 10–100 kB, and there are 16 connections. */
const MAX_KEPT = 64
/** Longer texts are rarely used twice and would push many short ones out. */
const MAX_KEPT_CHARACTERS = 32 * 1024

export function createConnections(instance: DuckDBInstance): Connections {
  const plain = new Map<number, StatementConnection>()
  // Profiling costs half a millisecond a statement, and a statement switches it: two connections avoid switching.
  const profiled = new Map<number, StatementConnection>()
  let probe: DuckDBConnection | undefined

  return {
    async take(number, profileFile) {
      const opened = profileFile === undefined ? plain : profiled
      let connection = opened.get(number)
      if (!connection) {
        const duckdb = await instance.connect()
        // The progress shows when a statement is planned. SET would need a configuration that is not locked.
        await duckdb.run('PRAGMA enable_progress_bar')
        await duckdb.run('PRAGMA disable_print_progress_bar')
        if (profileFile !== undefined) await duckdb.run(enableProfiling(profileFile))
        connection = createStatementConnection(duckdb)
        opened.set(number, connection)
      }
      return connection
    },

    async plan(sql) {
      const duckdb = await instance.connect()
      try {
        const prepared = await duckdb.prepare(sql)
        prepared.destroySync()
      } finally {
        duckdb.closeSync()
      }
    },

    async works() {
      try {
        probe ??= await instance.connect()
        await probe.run('SELECT 1')
        return true
      } catch {
        return false
      }
    },
  }
}

function createStatementConnection(duckdb: DuckDBConnection): StatementConnection {
  /** In order of last use, the most recent last. */
  const kept = new Map<string, DuckDBPreparedStatement>()
  const keptStatements = new Set<DuckDBPreparedStatement>()

  return {
    interrupt: () => duckdb.interrupt(),
    async prepare(sql, cache, ready) {
      const known = kept.get(sql)
      if (known) {
        kept.delete(sql)
        kept.set(sql, known)
        return known
      }
      await ready()
      const prepared = await duckdb.prepare(sql)
      if (cache && sql.length <= MAX_KEPT_CHARACTERS) {
        kept.set(sql, prepared)
        keptStatements.add(prepared)
        const [oldestText, oldest] = kept.entries().next().value!
        if (kept.size > MAX_KEPT) {
          kept.delete(oldestText)
          keptStatements.delete(oldest)
          oldest.destroySync()
        }
      }
      return prepared
    },
    release(prepared) {
      if (!keptStatements.has(prepared)) prepared.destroySync()
    },
    run: (sql) => duckdb.run(sql),
    hasBegun: () => duckdb.progress.percentage >= 0,
  }
}
