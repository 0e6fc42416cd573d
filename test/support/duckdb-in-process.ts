import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import registerAll from '../../src/duckdb/scripts/register.ts'
import { languageSettings } from '../../src/execution/engine/sandbox.ts'
import { checkStatement, type EngineVocabulary } from '../../src/execution/engine/statement-wall.ts'
import { engineVocabulary } from '../../src/duckdb/engine-vocabulary.ts'

/**
 * A DuckDB in this process with the settings, functions and macros of an engine, for tests of rendered SQL.
 * Statements pass the statement wall of engines and run on one connection. Rows are returned as DuckDB's JSON.
 */
export interface InProcessDuckDB {
  readonly connection: DuckDBConnection
  /** The rows of a statement as plain JSON values. */
  rows(sql: string): Promise<unknown[][]>
  close(): void
}

/** The functions of engines, and functions that tests need to inspect values. */
const vocabulary: EngineVocabulary = {
  ...engineVocabulary,
  functions: new Set([...engineVocabulary.functions, 'typeof']),
}

/** A connection to such a DuckDB without the restrictions of engines. */
export async function openEngineConnection(): Promise<Pick<InProcessDuckDB, 'connection' | 'close'>> {
  const instance = await DuckDBInstance.create(':memory:', {
    threads: '2',
    memory_limit: '1GB',
    preserve_insertion_order: 'false',
    max_expression_depth: '1000',
  })
  const connection = await instance.connect()
  for (const setting of languageSettings) await connection.run(setting)
  await registerAll(connection)
  return {
    connection,
    close() {
      connection.closeSync()
      instance.closeSync()
    },
  }
}

export async function openDuckDB(): Promise<InProcessDuckDB> {
  const { connection, close } = await openEngineConnection()
  for (const setting of ['autoinstall_known_extensions', 'autoload_known_extensions', 'allow_community_extensions']) {
    await connection.run(`SET GLOBAL ${setting}=false`)
  }
  await connection.run('SET GLOBAL enable_external_access=false')
  await connection.run('SET GLOBAL lock_configuration=true')
  return {
    connection,
    async rows(sql) {
      checkStatement(sql, 0, vocabulary)
      const reader = await connection.runAndReadAll(sql)
      return reader.getRowsJson() as unknown[][]
    },
    close,
  }
}
