import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { spawnQuipu, temporaryFolder } from '../support/quipu-process.ts'

const run = promisify(execFile)

/** A data folder that was started once: copies of it start without making a database first. */
export interface DataTemplate {
  /** @param folder becomes a folder with `data` in it; may be there already */
  copyTo(folder: string): Promise<void>
  remove(): Promise<void>
}

export async function createDataTemplate(): Promise<DataTemplate> {
  const folder = temporaryFolder()
  const data = join(folder.path, 'data')
  const server = spawnQuipu(['start', '--data-dir', data, '--port', '0', '--log-level', 'error'])
  await server.url
  server.signal('SIGTERM')
  await server.exit
  return {
    // With owners: Postgres may belong to another user than its folder's parent.
    copyTo: async (target) => void (await run('cp', ['-a', data, target])),
    remove: () => folder.remove(),
  }
}
