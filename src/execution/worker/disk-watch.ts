import { EngineError } from '../../shared/engine-error.ts'
import { isBelowFloor, type DiskSpace } from './disk-space.ts'
import { hasCode } from '../../shared/node-error.ts'

/** Keeps the room that everything else on the disk needs while an engine writes a table to it. */
export interface DiskWatch {
  /** @throws EngineError OUT_OF_SPILL_SPACE when there is too little room now */
  check(): Promise<void>
  /** Whether it has told `onFull` that the room is gone. */
  isFull(): boolean
  stop(): void
}

const LOOK_MS = 500

/** @param folders one of each disk that is written to */
export function watchDisk(
  folders: readonly string[],
  diskSpace: (folder: string) => Promise<DiskSpace>,
  onFull: () => void,
): DiskWatch {
  let full = false
  const measure = async (): Promise<void> => {
    for (const folder of folders) {
      // A disk that cannot be asked is not full: the write itself will tell.
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
  return new EngineError('OUT_OF_SPILL_SPACE', 'The disk has too little room left for the rows to write')
}

/** What the file system says when there is no room or no quota left. */
export function isDiskFull(error: unknown): boolean {
  return hasCode(error, 'ENOSPC', 'EDQUOT')
}
