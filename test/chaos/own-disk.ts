import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ROOMY = '16g'
const RESIZE_TRIES = 50

/** A file system in memory with an adjustable size, so that a full one needs no memory. */
export interface OwnDisk {
  /** Sets the size so that this many bytes are free. */
  leave(bytes: number): Promise<void>
  makeRoom(): Promise<void>
  remove(): Promise<void>
}

/** Creates the folder and mounts a disk there. Needs the right to mount. */
export async function mountDisk(folder: string): Promise<OwnDisk> {
  mkdirSync(folder, { recursive: true })
  await run('mount', ['-t', 'tmpfs', '-o', `size=${ROOMY},mode=0711`, 'quipu-chaos', folder])
  const resize = (size: string) => run('mount', ['-o', `remount,size=${size}`, folder])
  return {
    async leave(bytes) {
      for (let tries = 1; ; tries++) {
        const { blocks, bfree, bsize } = await statfs(folder)
        try {
          await resize(String((blocks - bfree) * bsize + bytes))
          return
        } catch (error) {
          // The server wrote more in the meantime, and a disk cannot be smaller than its contents.
          if (tries === RESIZE_TRIES) throw error
        }
      }
    },
    async makeRoom() {
      await resize(ROOMY)
    },
    async remove() {
      await run('umount', ['-l', folder])
    },
  }
}

/** Whether this machine allows to mount a disk. */
export async function canMount(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'quipu-chaos-disk-'))
  try {
    await (await mountDisk(folder)).remove()
    return true
  } catch {
    return false
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
