import type { DuckDBConnection, DuckDBInstance, DuckDBValue } from '@duckdb/node-api'
import { QuipuError } from '../../shared/quipu-error.ts'

export type ParquetParameter = string | bigint | null | readonly string[]

/** Reads and writes Parquet files below one folder. */
export interface ParquetEngine {
  run(text: string, values: readonly ParquetParameter[]): Promise<void>
  /**
   * Runs a statement and returns its rows as they come, at most some thousand at a time. Reading ends when the caller
   * stops.
   * @param limitMs time limit, after which the statement is interrupted with an error
   * @throws ParquetTooLong | DuckDB's errors
   */
  rows(
    text: string,
    values: readonly ParquetParameter[],
    limitMs?: number,
  ): AsyncGenerator<readonly (readonly unknown[])[]>
  close(): Promise<void>
}

/** The statement exceeds its time limit. */
export class ParquetTooLong extends QuipuError {
  readonly retry = 'never'
}

const MEMORY = '1GB'

/** Makes an engine in this process. It starts at its first use, and can access only the folder. */
export function createParquetEngine(folder: string): ParquetEngine {
  let opened: Promise<DuckDBInstance> | undefined
  const open = async (): Promise<DuckDBInstance> => {
    const { DuckDBInstance, listValue } = await import('../../shared/duckdb.ts')
    const instance = await DuckDBInstance.create(':memory:', {
      memory_limit: MEMORY,
      threads: '2',
      // A statement that does not fit into memory is refused, so that no copies of data stay on the disk.
      temp_directory: '',
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
    })
    const connection = await instance.connect()
    await connection.run('SET allowed_directories = $1', [listValue([`${folder}/`])])
    await connection.run('SET parquet_metadata_cache = true')
    await connection.run('SET enable_external_access = false')
    await connection.run('SET lock_configuration = true')
    connection.closeSync()
    return instance
  }
  const connected = async <T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> => {
    const connection = await (await begun()).connect()
    try {
      return await work(connection)
    } finally {
      connection.closeSync()
    }
  }
  const begun = (): Promise<DuckDBInstance> => {
    opened ??= open()
    opened.catch(() => (opened = undefined))
    return opened
  }
  return {
    run: (text, values) => connected(async (connection) => void (await connection.run(text, await bound(values)))),
    async *rows(text, values, limitMs) {
      const connection = await (await begun()).connect()
      let late = false
      const timer =
        limitMs === undefined
          ? undefined
          : setTimeout(() => {
              late = true
              connection.interrupt()
            }, limitMs)
      try {
        const result = await connection.stream(text, await bound(values))
        for (;;) {
          const chunk = await result.fetchChunk()
          if (!chunk || chunk.rowCount === 0) break
          yield chunk.getRows()
        }
      } catch (error) {
        throw late ? new ParquetTooLong('Parquet files took too long to read', { cause: error }) : error
      } finally {
        clearTimeout(timer)
        connection.closeSync()
      }
    },
    async close() {
      const instance = await opened?.catch(() => undefined)
      opened = undefined
      instance?.closeSync()
    },
  }
}

async function bound(values: readonly ParquetParameter[]): Promise<DuckDBValue[]> {
  const { listValue } = await import('../../shared/duckdb.ts')
  return values.map((value) => (typeof value === 'object' && value !== null ? listValue([...value]) : value))
}
