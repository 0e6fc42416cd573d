import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { mkdirSync } from 'node:fs'
import { startEmbeddedPostgres } from '../../src/supervisor/embedded-postgres.ts'
import { spawnQuipu, temporaryFolder } from '../support/quipu-process.ts'

const run = promisify(execFile)

/** Data folders whose database is made already: copies of them start in a moment. */
export interface DataTemplate {
  /** @param folder becomes a data folder; or, where one is mounted already, its parent */
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
  // Read models follow one log: with Kafka they begin with the topic.
  const empty = join(folder.path, 'empty', 'data')
  mkdirSync(empty, { recursive: true, mode: 0o711 })
  const postgres = await startEmbeddedPostgres({ dataDir: empty })
  await postgres.stop()
  return {
    // With owners: Postgres may belong to another user than its folder's parent.
    copyTo: async (target, log) => void (await run('cp', ['-a', log === 'kafka' ? empty : started, target])),
    remove: () => folder.remove(),
  }
}
