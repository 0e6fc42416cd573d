import { EngineError } from '../../shared/engine-error.ts'
import { isBelowFloor, type DiskSpace } from './disk-space.ts'
import { hasCode } from '../../shared/node-error.ts'

/** Watches a disk while an engine writes a table to it, so that everything else on the disk keeps its room. */
export interface DiskWatch {
  /** @throws EngineError OUT_OF_SPILL_SPACE when there is too little room now */
  check(): Promise<void>
  /** Whether a check found too little room. */
  isFull(): boolean
  stop(): void
}

const LOOK_MS = 500

/** @param folders one folder on each disk that is written to */
export function watchDisk(
  folders: readonly string[],
  diskSpace: (folder: string) => Promise<DiskSpace>,
  onFull: () => void,
): DiskWatch {
  let full = false
  const measure = async (): Promise<void> => {
    for (const folder of folders) {
      // If the file system gives no figures, the disk does not count as full: the write itself will fail.
      const space = await diskSpace(folder).catch(() => undefined)
      if (space && isBelowFloor(space)) full = true
    }
  }
  const timer = setInterval(() => void measure().then(() => full && onFull()), LOOK_MS)
  timer.unref()
  return {
    async check() {
      await measure()
      if (full) throw diskFull()
    },
    isFull: () => full,
    stop: () => clearInterval(timer),
  }
}

export function diskFull(): EngineError {
  return new EngineError('OUT_OF_SPILL_SPACE', 'The disk has too little space left for the rows to write')
}

/** Whether the error of the file system says that there is no room or no quota left. */
export function isDiskFull(error: unknown): boolean {
  return hasCode(error, 'ENOSPC', 'EDQUOT')
}
