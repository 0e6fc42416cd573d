import { existsSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { withCached } from './test-cache.ts'

/** Options for a short run of Java: little compilation and garbage collection. */
export const shortLived = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'] as const

/** Java prints warnings about archives on standard output. */
const QUIET = '-Xlog:disable'

/**
 * Options of Java that load the classes of a program from an archive, which halves the CPU of a start. The archive is
 * made once on each machine. Java ignores an archive of another version of Java or of other jars.
 * @param path the archive, in the cache
 * @param run runs the program with these options until it ends by itself, with any exit code
 */
export async function archivedClasses(
  path: string,
  run: (options: readonly string[]) => Promise<unknown>,
): Promise<readonly string[]> {
  await withCached(path, basename(path), async () => {
    const fresh = `${path}.${process.pid}`
    await run([`-XX:ArchiveClassesAtExit=${fresh}`, QUIET])
    // A Java without archives writes none. It ignores an empty archive.
    if (!existsSync(fresh)) await writeFile(fresh, '')
    await rename(fresh, path)
  })
  return [`-XX:SharedArchiveFile=${path}`, QUIET]
}
