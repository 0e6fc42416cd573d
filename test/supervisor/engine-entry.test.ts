import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { repository } from '../support/repository.ts'

const ENTRY = join(repository, 'dist', 'supervisor', 'engine-entry.js')
/** No account has this user id. */
const USER = 64_999

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'quipu-entry-'))
  await chmod(folder, 0o777)
  writeFileSync(
    join(folder, 'program.mjs'),
    `import { writeFileSync } from 'node:fs'; writeFileSync(process.argv[2], String(process.getuid()))`,
  )
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** @returns exit code, and whether the engine's program ran */
async function enter(name: string, launcher: number): Promise<readonly [code: number, ran: boolean]> {
  const written = join(folder, name)
  const args = [ENTRY, String(USER), '[]', String(launcher), join(folder, 'program.mjs'), written]
  const child = spawn(process.execPath, args, { stdio: 'inherit' })
  const [code] = (await once(child, 'exit')) as [number]
  return [code, existsSync(written)]
}

describe.runIf(process.getuid?.() === 0)('The entry of an engine', () => {
  it('loads the engine as the given user while its launcher lives', async () => {
    expect(await enter('child', process.pid)).toEqual([0, true])
  })

  it('exits without loading the engine if its launcher is gone', async () => {
    expect(await enter('orphan', process.ppid)).toEqual([1, false])
  })
})
