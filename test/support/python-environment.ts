import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { testCache, withCached } from './test-cache.ts'

const run = promisify(execFile)

/**
 * Programs of a separate Python environment with published packages, created once on each machine.
 * @param name the name of its folder in the cache
 * @returns the folder of the programs
 */
export async function pythonEnvironment(name: string, packages: readonly string[]): Promise<string> {
  const folder = join(testCache, name)
  const programs = join(folder, 'bin')
  const done = join(folder, packages.join('+'))
  await withCached(done, 'python', async () => {
    await run('python3', ['-m', 'venv', folder], { timeout: 120_000 })
    const install = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', ...packages]
    await run(join(programs, 'python'), install, { timeout: 300_000 })
    await writeFile(done, '')
  })
  return programs
}
