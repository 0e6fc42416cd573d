import { chmod, mkdir, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { makeFolderLikeParent, makeFoldersLike } from '../../../src/connectors/lake/inherited-modes.ts'

it('`makeFoldersLike` gives folders that are made concurrently the mode of their parent', async () => {
  const table = await mkdtemp(join(tmpdir(), 'quipu-modes-'))
  try {
    // More permissions than the umask of a process allows.
    await chmod(table, 0o777)
    for (let round = 0; round < 30; round++) {
      const folders = Array.from({ length: 4 }, (_, writer) => join(table, `${round}`, `${writer}`, 'attempt'))
      await Promise.all(folders.map((folder) => makeFoldersLike(table, folder)))
      for (const folder of folders)
        for (let path = folder; path !== table; path = dirname(path))
          expect([path, (await stat(path)).mode & 0o777]).toEqual([path, 0o777])
    }
  } finally {
    await rm(table, { recursive: true, force: true })
  }
})

it('a folder gets the mode of its parent if a killed process made it and did not set the mode', async () => {
  const table = await mkdtemp(join(tmpdir(), 'quipu-modes-'))
  const modeOf = async (name: string): Promise<number> => (await stat(join(table, name))).mode & 0o777
  try {
    await chmod(table, 0o755)
    for (const name of ['_data', '_data/query', '_manifest']) await mkdir(join(table, name), { mode: 0o700 })
    await makeFoldersLike(table, join(table, '_data', 'query', 'attempt'))
    await makeFolderLikeParent(join(table, '_manifest'))
    for (const name of ['_data', '_data/query', '_data/query/attempt', '_manifest'])
      expect([name, await modeOf(name)]).toEqual([name, 0o755])
    // A folder with content keeps the mode that its owner gave it.
    await chmod(join(table, '_data'), 0o700)
    await makeFolderLikeParent(join(table, '_data'))
    expect(await modeOf('_data')).toBe(0o700)
  } finally {
    await rm(table, { recursive: true, force: true })
  }
})
