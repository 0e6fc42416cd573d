import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Writes a file that only its owner can read; resolves when it is on the disk. */
export async function writeDurably(path: string, bytes: Buffer | string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Renames a file; resolves when the new name is on the disk. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to)
  await syncNames(dirname(to))
}

export async function syncNames(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
