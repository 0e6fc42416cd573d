import { chmod, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { makeFoldersLike } from '../../../src/connectors/lake/inherited-modes.ts'

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
