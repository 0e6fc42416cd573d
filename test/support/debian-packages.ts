import { execFile } from 'node:child_process'
import { access, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { testCache, withCached } from './test-cache.ts'

const run = promisify(execFile)

/**
 * Downloads Debian packages and unpacks them into the cache of the tests, once on each machine. It needs no root, because
 * nothing is installed.
 * @param name the folder in the cache
 * @param packages the package of the program, and the libraries that a plain system lacks
 * @param program the path inside the packages, for example `usr/bin/promtool`
 * @returns the folder with the unpacked packages
 * @throws Error when a package cannot be downloaded
 */
export async function unpackedPackages(name: string, packages: readonly string[], program: string): Promise<string> {
  const folder = join(testCache, name)
  await withCached(join(folder, program), name, async () => {
    const work = `${folder}.${process.pid}`
    const download = await mkdtemp(join(tmpdir(), `quipu-${name}-`))
    try {
      await run('apt-get', ['download', ...packages], { cwd: download, timeout: 60_000 })
      for (const file of (await readdir(download)).filter((one) => one.endsWith('.deb')))
        await run('dpkg', ['-x', join(download, file), work])
      await access(join(work, program))
      await rm(folder, { recursive: true, force: true })
      await rename(work, folder)
    } finally {
      await rm(download, { recursive: true, force: true })
      await rm(work, { recursive: true, force: true })
    }
  })
  return folder
}
