import { access } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { withLock } from './run-folder.ts'

/** What tests fetch once a machine lies here. */
export const testCache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'quipu')

/**
 * Has a path made that is not there yet, by one process at a time for each tool: package managers do not like company in
 * their own caches.
 * @param make leaves the path whole or not at all
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
