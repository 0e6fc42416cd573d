import { statfs } from 'node:fs/promises'

export interface DiskSpace {
  readonly freeBytes: number
  readonly totalBytes: number
}

/** The file system that a folder lies on. */
export async function diskSpaceOf(folder: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(folder)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

/**
 * Whether the page store and spilling have to stop: other files on the disk, above all the event log, must keep their
 * room.
 */
export function isBelowFloor({ freeBytes, totalBytes }: DiskSpace): boolean {
  return freeBytes < Math.max(0.05 * totalBytes, 2 * 1024 ** 3)
}
