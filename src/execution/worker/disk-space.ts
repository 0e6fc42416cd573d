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

/** Page store and spill stop here: what else lies on the disk, the event log first of all, must keep its room. */
export function isBelowFloor({ freeBytes, totalBytes }: DiskSpace): boolean {
  return freeBytes < Math.max(0.05 * totalBytes, 2 * 1024 ** 3)
}
