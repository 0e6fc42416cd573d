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
   * Prepares exactly one statement; a text of several is refused. Kept by its text when `cache` is set.
   * @param ready rejects when the text may not be run; not asked for one that is kept
   */
  prepare(sql: string, cache: boolean, ready: () => Promise<void>): Promise<DuckDBPreparedStatement>
  /** Gives back what `prepare` gave: frees it unless it is kept. */
  release(prepared: DuckDBPreparedStatement): void
  /**
   * Runs a text without preparing it apart: scans of files are bound once, where a prepared statement binds them again when
   * it is run. That it is one statement, who has read it knows: DuckDB would run several.
   */
  run(sql: string): Promise<DuckDBMaterializedResult>
  /** Is what it was told to run planned, and has begun? Not of every plan does DuckDB tell its progress. */
  hasBegun(): boolean
}

export interface Connections {
  /** The numbered connection, opened at its first use; the profiled one writes each statement's profile to the file. */
  take(number: number, profileFile?: string): Promise<StatementConnection>
  /** Resolves when a text is planned, on a connection of its own. @throws Error why it cannot be */
  plan(sql: string): Promise<void>
  /** Does the instance still run the simplest statement? */
  works(): Promise<boolean>
}

/** Statements kept a connection: a small statement's plan is some 10–100 kB, and there are 16 connections. */
const MAX_KEPT = 64
/** Longer texts are one-off in practice and would push many short ones out. */
const MAX_KEPT_CHARACTERS = 32 * 1024

export function createConnections(instance: DuckDBInstance): Connections {
  const plain = new Map<number, StatementConnection>()
  // Profiling costs half a millisecond a statement and is switched by a statement: two connections, no switching.
  const profiled = new Map<number, StatementConnection>()
  let probe: DuckDBConnection | undefined

  return {
    async take(number, profileFile) {
      const opened = profileFile === undefined ? plain : profiled
      let connection = opened.get(number)
      if (!connection) {
        const duckdb = await instance.connect()
        // Its progress tells when a statement is planned. A setting would need a configuration that is not locked.
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
  /** In order of last use. */
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
