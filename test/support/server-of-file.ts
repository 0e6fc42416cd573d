import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { createMigratedDatabase } from './event-log/migrated-database.ts'
import { freePort, type TestDatabase } from './postgres.ts'
import { isAlive, spawnQuipu, temporaryFolder, type QuipuProcess } from './quipu-process.ts'

/** A server for all tests of a file, over a separate folder. */
export interface ServerOfFile {
  readonly folder: string
  readonly data: string
  /** Available from the first test on. */
  readonly url: string
  /** The URL of its Postgres, which holds the log and the read models; available from the first test on. */
  readonly database: string
  /** Its supervisor; available from the first test on. */
  readonly process: QuipuProcess
}

/**
 * Starts the server before the tests of the file, on a database of the shared Postgres: a Postgres of its own takes
 * seconds to make. Afterwards it stops the server and removes the folder.
 * @param settingsOf creates what the server needs, and returns its variables
 */
export function serverOfFile(
  logLevel: 'error' | 'warn' = 'error',
  settingsOf: (
    own: ServerOfFile,
  ) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>> = () => ({}),
): ServerOfFile {
  const folder = temporaryFolder()
  const data = join(folder.path, 'data')
  let quipu: QuipuProcess | undefined
  let database: TestDatabase | undefined
  let url: string
  let databaseUrl: string
  const own = {
    folder: folder.path,
    data,
    get url() {
      return url
    },
    get database() {
      return databaseUrl
    },
    get process() {
      return quipu!
    },
  }
  beforeAll(async () => {
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    const settings = await settingsOf(own)
    if (settings['DATABASE_URL'] === undefined) database = await createMigratedDatabase()
    databaseUrl = settings['DATABASE_URL'] ?? database!.url
    const env = { ...settings, DATABASE_URL: databaseUrl }
    quipu = spawnQuipu(['start', '--data-dir', data, '--port', String(port), '--log-level', logLevel], { env })
    url = await quipu.url
  }, 240_000)
  afterAll(async () => {
    if (quipu && isAlive(quipu.pid)) quipu.signal('SIGTERM')
    await quipu?.exit
    await database?.drop()
    await folder.remove()
  }, 240_000)
  return own
}
