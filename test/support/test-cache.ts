import { access } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { withLock } from './run-folder.ts'

/** The folder for downloads of tests, once on each machine. */
export const testCache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'quipu')

/**
 * Creates a missing path, one process at a time for each tool, because package managers do not share their caches well.
 * @param make creates the path completely or not at all
 */
export async function withCached(path: string, tool: string, make: () => Promise<void>): Promise<void> {
  const isThere = (): Promise<boolean> =>
    access(path).then(
      () => true,
      () => false,
    )
  if (await isThere()) return
  await withLock(join(testCache, `${tool}.lock`), async () => {
    if (!(await isThere())) await make()
  })
}
