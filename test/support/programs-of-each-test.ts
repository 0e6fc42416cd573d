import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { isAlive, spawnQuipu, temporaryFolder, type QuipuOptions, type QuipuProcess } from './quipu-process.ts'
import { run } from './statement-client.ts'

/** A separate folder for each test of a file, and the programs of the test, which end before the folder is removed. */
export interface ProgramsOfEachTest {
  readonly folder: string
  readonly data: string
  spawn(args: readonly string[], options?: QuipuOptions): QuipuProcess
}

export function programsOfEachTest(): ProgramsOfEachTest {
  let folder: ReturnType<typeof temporaryFolder>
  let running: QuipuProcess[] = []
  beforeEach(() => {
    folder = temporaryFolder()
  })
  afterEach(async () => {
    for (const quipu of running) {
      if (isAlive(quipu.pid)) quipu.signal('SIGTERM')
      await quipu.exit
    }
    running = []
    await folder.remove()
  }, 240_000)
  return {
    get folder() {
      return folder.path
    },
    get data() {
      return join(folder.path, 'data')
    },
    spawn(args, options) {
      const quipu = spawnQuipu(args, options)
      running.push(quipu)
      return quipu
    },
  }
}

/** The rows of a statement that must succeed. */
export async function rowsOf(url: string, sql: string): Promise<unknown> {
  const { error, rows } = await run(url, sql)
  expect(error, sql).toBeUndefined()
  return rows
}
