import { rm } from 'node:fs/promises'
import { stopSharedKafka } from './kafka.ts'
import { stopSharedPostgres } from './postgres.ts'
import { createRunFolder } from './run-folder.ts'

/** Runs once before all test files. The first file that needs a shared server starts it, and this set-up ends it. */
export default async function globalSetup(): Promise<() => Promise<void>> {
  const folder = await createRunFolder()
  return async () => {
    await Promise.all([stopSharedPostgres(), stopSharedKafka()])
    await rm(folder, { recursive: true, force: true })
  }
}
