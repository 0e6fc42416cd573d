import { existsSync } from 'node:fs'
import type { Config } from '../config/load-config.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { lockDataFolder } from '../supervisor/data-folder-lock.ts'
import { startEmbeddedPostgres } from '../supervisor/embedded-postgres.ts'
import { leaveRoot } from './leave-root.ts'

/**
 * Opens the database in use. If the embedded one does not run, starts it for the command, and locks the data folder
 * meanwhile.
 */
export async function openDatabase(config: Config): Promise<{ url: string; close(): Promise<void> }> {
  // Files in a data folder belong to its user.
  if (config.databaseUrl === undefined || existsSync(config.dataDir)) await leaveRoot(config, printToOperator)
  if (config.databaseUrl !== undefined) return { url: config.databaseUrl, close: async () => {} }
  // If this fails, a server runs with its Postgres. That Postgres is used below and not stopped afterwards.
  const lock = await lockDataFolder(config.dataDir).catch(() => undefined)
  try {
    const postgres = await startEmbeddedPostgres({ dataDir: config.dataDir, print: printToOperator })
    return {
      url: postgres.connectionString,
      close: async () => {
        if (lock) await postgres.stop()
        lock?.release()
      },
    }
  } catch (error) {
    lock?.release()
    throw new ExitError(exitCodes.dependency, (error as Error).message)
  }
}

function printToOperator(line: string): void {
  process.stderr.write(`quipu: ${line}\n`)
}
