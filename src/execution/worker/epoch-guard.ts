import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** The highest epoch this worker has seen of any coordinator; kept on disk, so that a restart forgets nothing. */
export interface EpochGuard {
  /** False for an epoch lower than one seen before; a higher one is on disk when this returns. */
  accept(epoch: number): boolean
  seen(): number
}

export function createEpochGuard(file: string): EpochGuard {
  let seen = readEpoch(file)
  return {
    accept(epoch) {
      if (epoch < seen) return false
      if (epoch > seen) {
        writeFileSync(`${file}.tmp`, String(epoch))
        renameSync(`${file}.tmp`, file)
        seen = epoch
      }
      return true
    },
    seen: () => seen,
  }
}

function readEpoch(file: string): number {
  try {
    const epoch = Number(readFileSync(file, 'utf8'))
    return Number.isSafeInteger(epoch) && epoch >= 0 ? epoch : 0
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    mkdirSync(dirname(file), { recursive: true })
    return 0
  }
}
