import type { Readable } from 'node:stream'

/** These processes never write longer lines. */
const LONGEST = 64 * 1024

/**
 * Calls back with the value of each line of JSON. Skips lines that are not JSON: a process that died may have left half
 * a line.
 */
export function onLines(stream: Readable, take: (value: unknown) => void): void {
  let rest = ''
  stream.setEncoding('latin1').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!.slice(-LONGEST)
    for (const line of lines) {
      const value = valueOf(line)
      if (typeof value === 'object' && value !== null) take(value)
    }
  })
}

function valueOf(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
