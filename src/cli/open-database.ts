import { existsSync } from 'node:fs'
import type { Config } from '../config/load-config.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { lockDataFolder } from '../supervisor/data-folder-lock.ts'
import { startEmbeddedPostgres } from '../supervisor/embedded-postgres.ts'
import { leaveRoot } from './leave-root.ts'

/** The database in use. An embedded one that does not run is started for the while, with the data folder held. */
export async function openDatabase(config: Config): Promise<{ url: string; close(): Promise<void> }> {
  // What is written below a data folder is its user's.
  if (config.databaseUrl === undefined || existsSync(config.dataDir)) await leaveRoot(config, printToOperator)
  if (config.databaseUrl !== undefined) return { url: config.databaseUrl, close: async () => {} }
  // Refused: a server runs, and with it its Postgres, which is taken over below and left alone afterwards.
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
