import { closeSync, openSync, readFileSync, readSync } from 'node:fs'

/** Reads the resident size of another process. */
export interface ResidentMemory {
  /** Bytes, or undefined when the operating system does not say (macOS: the engine's beat carries the size instead). */
  read(): number | undefined
  close(): void
}

const scratch = Buffer.allocUnsafe(128)
let pageBytes: number | undefined

export function openResidentMemory(pid: number): ResidentMemory {
  let file: number | undefined
  try {
    // Kept open: a read costs a few microseconds, opening every engine's file every 50 ms some hundred.
    file = openSync(`/proc/${pid}/statm`, 'r')
  } catch {
    file = undefined
  }
  return {
    read() {
      if (file === undefined) return undefined
      try {
        const length = readSync(file, scratch, 0, scratch.length, 0)
        return residentPages(scratch.toString('latin1', 0, length)) * pageSize()
      } catch {
        return undefined
      }
    },
    close() {
      if (file !== undefined) closeSync(file)
      file = undefined
    },
  }
}

function residentPages(statm: string): number {
  return Number(statm.split(' ', 2)[1] ?? 0)
}

/**
 * Bytes of a memory page, derived from this process's own size: 4 kB on x64 and up to 64 kB on arm64. Node does not say
 * it.
 */
function pageSize(): number {
  pageBytes ??=
    2 ** Math.round(Math.log2(process.memoryUsage.rss() / residentPages(readFileSync('/proc/self/statm', 'latin1'))))
  return pageBytes
}
