import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Written and on the disk when it resolves; readable by its owner alone. */
export async function writeDurably(path: string, bytes: Buffer | string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** The new name is on the disk when it resolves. */
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
