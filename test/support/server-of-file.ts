import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { spawnQuipu, temporaryFolder, type QuipuProcess } from './quipu-process.ts'

/** One server for all tests of a file, over a folder of its own. */
export interface ServerOfFile {
  readonly folder: string
  readonly data: string
  /** From the first test on. */
  readonly url: string
}

/** Starts it before the file's tests, and ends it and removes its folder after them. */
export function serverOfFile(logLevel: 'error' | 'warn' = 'error'): ServerOfFile {
  const folder = temporaryFolder()
  const data = join(folder.path, 'data')
  let quipu: QuipuProcess
  let url: string
  beforeAll(async () => {
    quipu = spawnQuipu(['start', '--data-dir', data, '--port', '0', '--log-level', logLevel])
    url = await quipu.url
  }, 240_000)
  afterAll(async () => {
    quipu.signal('SIGTERM')
    await quipu.exit
    await folder.remove()
  }, 240_000)
  return {
    folder: folder.path,
    data,
    get url() {
      return url
    },
  }
}
