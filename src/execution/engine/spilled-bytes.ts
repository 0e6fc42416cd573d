import { lstatSync, opendirSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The largest number of files that are counted. DuckDB makes few and large files; the limit keeps the repeated count
 * cheap in any folder.
 */
const MOST_FILES = 512

/**
 * Bytes of the first files in DuckDB's folder of temporary files; the folder exists only while something is spilled.
 */
export function spilledBytes(folder: string): number {
  if (!lstatSync(folder, { throwIfNoEntry: false })) return 0
  const files = opendirSync(folder)
  try {
    let bytes = 0
    for (let count = 0; count < MOST_FILES; count++) {
      const file = files.readSync()
      if (file === null) break
      bytes += lstatSync(join(folder, file.name), { throwIfNoEntry: false })?.size ?? 0
    }
    return bytes
  } finally {
    files.closeSync()
  }
}
