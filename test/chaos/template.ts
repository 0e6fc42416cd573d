import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { mkdirSync } from 'node:fs'
import { startEmbeddedPostgres } from '../../src/supervisor/embedded-postgres.ts'
import { spawnQuipu, temporaryFolder } from '../support/quipu-process.ts'

const run = promisify(execFile)

/** Data folders with an initialized database: a server on a copy starts at once. */
export interface DataTemplate {
  /** @param folder the new data folder, or the parent of a data folder that is already mounted */
  copyTo(folder: string, log: 'postgres' | 'kafka'): Promise<void>
  remove(): Promise<void>
}

export async function createDataTemplate(): Promise<DataTemplate> {
  const folder = temporaryFolder()
  const started = join(folder.path, 'started', 'data')
  mkdirSync(started, { recursive: true, mode: 0o711 })
  const server = spawnQuipu(['start', '--data-dir', started, '--port', '0', '--log-level', 'error'])
  await server.url
  server.signal('SIGTERM')
  await server.exit
  // Read models belong to one log: with Kafka they begin with the topic.
  const empty = join(folder.path, 'empty', 'data')
  mkdirSync(empty, { recursive: true, mode: 0o711 })
  const postgres = await startEmbeddedPostgres({ dataDir: empty })
  await postgres.stop()
  return {
    // `-a` keeps owners: Postgres may run as another user than the owner of the parent folder.
    copyTo: async (target, log) => void (await run('cp', ['-a', log === 'kafka' ? empty : started, target])),
    remove: () => folder.remove(),
  }
}
