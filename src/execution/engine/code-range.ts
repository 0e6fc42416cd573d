import { readFileSync } from 'node:fs'

/** The largest range that V8 reserves for compiled code, for each of its isolates. */
const LONGEST_BYTES = 512 * 1024 * 1024
/** The isolates of an engine: its main thread and its worker thread. */
const ISOLATES = 2

let known: number | undefined

/**
 * Bytes that an engine's isolates reserve for compiled code. They count as data memory although nearly none of them is
 * used: 1 GB with Node 24, which maps them writable, nothing with Node 20 and 22. Measured on this process, which runs
 * the same Node; 0 when the operating system does not say.
 */
export function reservedCodeBytes(): number {
  known ??= measure()
  return known
}

function measure(): number {
  let maps: string
  try {
    maps = readFileSync('/proc/self/maps', 'latin1')
  } catch {
    return 0
  }
  let longest = 0
  for (const line of maps.split('\n')) {
    const match = /^([0-9a-f]+)-([0-9a-f]+) rwxp/.exec(line)
    if (match) longest = Math.max(longest, Number.parseInt(match[2]!, 16) - Number.parseInt(match[1]!, 16))
  }
  return longest >= LONGEST_BYTES / 4 ? LONGEST_BYTES * ISOLATES : 0
}
