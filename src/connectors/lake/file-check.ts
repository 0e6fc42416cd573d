import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hashFooter, resolveInside } from './lake-files.ts'
import type { LakeSplit } from './lake-split.ts'
import { changed } from './manifest-table.ts'
import { hasCode } from '../../shared/node-error.ts'

/** Whether the files of splits are still those that were listed. */
export interface FileCheck {
  /** @throws EngineError TRANSACTION_CONFLICT when one is not */
  verify(splits: readonly LakeSplit[]): Promise<void>
}

const MAX_KNOWN = 50_000

function isGone(error: Error): never {
  // Or a link to itself, or below what is no folder any more.
  throw hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP') ? changed() : error
}

export function createFileCheck(location: string): FileCheck {
  /** Size and time are asked every time; the footer is read again only for a file seen with another size or time. */
  const footers = new Map<string, { readonly key: string; readonly footer: string }>()

  async function checkFile(split: Exclude<LakeSplit, { empty: true }>): Promise<void> {
    const named = join(location, split.file)
    const stats = await stat(named, { bigint: true }).catch(isGone)
    // An empty file and a pipe are of one size.
    if (!stats.isFile() || Number(stats.size) !== split.size) throw changed()
    // What Quipu wrote may have been copied since (a backup that was restored): its bytes count, not their time.
    if ('mtime' in split && String(stats.mtimeNs) !== split.mtime) throw changed()
    const key = `${stats.dev} ${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`
    let known = footers.get(named)
    if (known?.key !== key) {
      // What is the same file is within the location still.
      const path = await resolveInside(location, named).catch(isGone)
      known = { key, footer: await hashFooter(path, split.size) }
      if (footers.size > MAX_KNOWN) footers.clear()
      footers.set(named, known)
    }
    if (known.footer !== split.footer) throw changed()
  }

  return {
    async verify(splits) {
      const byFile = new Map<string, Exclude<LakeSplit, { empty: true }>>()
      for (const split of splits) if (!('empty' in split)) byFile.set(split.file, split)
      await Promise.all([...byFile.values()].map(checkFile))
    },
  }
}
