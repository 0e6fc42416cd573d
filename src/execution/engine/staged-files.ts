import { constants, createWriteStream } from 'node:fs'
import { copyFile, open, rmdir, stat, unlink, type FileHandle } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { hasCode } from '../../shared/node-error.ts'
import type { EngineFileStats } from './engine.ts'

const CHUNK_BYTES = 1024 * 1024
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,200}$/

/**
 * Takes over the files that an engine of another user has written into a folder of its own: copies each file into
 * `folder` as this process's user, and removes the original. The other user may have put anything there, and may change
 * it meanwhile. So only the facts of an opened file count, and names are resolved only within the opened folder.
 * @param user the engine's user; files of any other user are refused
 * @param signal aborts the copy: a sparse file can fill a disk, and take years to copy
 * @returns the files at their new paths, with the bytes that were copied
 * @throws Error when an entry there is not a file of that user
 */
export async function takeStaged(
  staged: string,
  folder: string,
  user: number,
  files: readonly EngineFileStats[],
  signal: AbortSignal,
): Promise<readonly EngineFileStats[]> {
  const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
  const from = await open(staged, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  try {
    if ((await from.stat()).uid !== user) throw foreign()
    const taken: EngineFileStats[] = []
    for (const file of files) {
      signal.throwIfAborted()
      const name = basename(file.path)
      if (!NAME.test(name)) throw foreign()
      const source = `/proc/self/fd/${from.fd}/${name}`
      const target = join(folder, name)
      const handle = await open(source, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
      try {
        await checkOwn(handle, user)
        await copyTo(target, handle, signal)
      } finally {
        await handle.close()
      }
      await unlink(source)
      taken.push({ ...file, path: target, bytes: (await stat(target)).size })
    }
    return taken
  } finally {
    await from.close()
    // Other files in the folder are removed with the engine.
    await rmdir(staged).catch(() => undefined)
  }
}

async function checkOwn(handle: FileHandle, user: number): Promise<void> {
  const found = await handle.stat()
  if (!found.isFile() || found.uid !== user || found.nlink !== 1) throw foreign()
}

/** Shares the blocks if the disk can; else copies the bytes that are there now, not bytes that are added meanwhile. */
async function copyTo(target: string, source: FileHandle, signal: AbortSignal): Promise<void> {
  const { COPYFILE_EXCL, COPYFILE_FICLONE_FORCE } = constants
  try {
    return await copyFile(`/proc/self/fd/${source.fd}`, target, COPYFILE_EXCL | COPYFILE_FICLONE_FORCE)
  } catch (error) {
    if (hasCode(error, 'EEXIST', 'ENOSPC', 'EDQUOT')) throw error
  }
  const { size } = await source.stat()
  const to = createWriteStream(target, { flags: 'wx', mode: 0o600, highWaterMark: CHUNK_BYTES })
  if (size === 0) return pipeline([], to)
  await pipeline(
    source.createReadStream({ start: 0, end: size - 1, autoClose: false, highWaterMark: CHUNK_BYTES }),
    to,
    { signal },
  )
}

function foreign(): Error {
  return new Error('An engine named what is no file of its own')
}
