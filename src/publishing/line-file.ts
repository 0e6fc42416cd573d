import { open, rename, type FileHandle } from 'node:fs/promises'
import { hasCode } from '../shared/node-error.ts'
import type { Delivery, Destination, Message } from './publication.ts'

export interface LineFileOptions {
  readonly path: string
  /** A file of this size is renamed to `<path>.1`. @default 64 MiB */
  readonly mostBytes?: number
  /** How many renamed files are kept; the oldest is removed. @default 4 */
  readonly kept?: number
}

const MOST_BYTES = 64 << 20
const KEPT = 4
const TAIL_BYTES = 64 * 1024
const NEWLINE = 10

/**
 * Appends each message as a line to a file that only its owner can read. Lines are on the disk when they count as
 * accepted.
 */
export function lineFile({ path, mostBytes = MOST_BYTES, kept = KEPT }: LineFileOptions): Destination {
  async function append(text: string): Promise<void> {
    const file = await open(path, 'a+', 0o600)
    try {
      await cutTornLine(file)
      await file.appendFile(text)
      await file.datasync()
    } finally {
      await file.close()
    }
  }

  async function makeRoom(bytes: number): Promise<void> {
    const size = await sizeOf(path)
    if (size === 0 || size + bytes <= mostBytes) return
    for (let number = kept; number > 0; number--)
      await rename(number === 1 ? path : `${path}.${number - 1}`, `${path}.${number}`).catch((error: unknown) => {
        if (!hasCode(error, 'ENOENT')) throw error
      })
  }

  return {
    async deliver(messages: readonly Message[]): Promise<Delivery> {
      const text = messages.map((message) => `${message.text}\n`).join('')
      try {
        await makeRoom(Buffer.byteLength(text))
        await append(text)
        return { taken: messages.length, refused: [] }
      } catch (error) {
        return { taken: 0, refused: [], trouble: (error as Error).message }
      }
    },
    close: () => Promise.resolve(),
  }
}

async function sizeOf(path: string): Promise<number> {
  const file = await open(path, 'a+', 0o600)
  try {
    return (await file.stat()).size
  } finally {
    await file.close()
  }
}

/** Cuts an incomplete last line, left by a power failure or a full disk. It is written again. */
async function cutTornLine(file: FileHandle): Promise<void> {
  const { size } = await file.stat()
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - TAIL_BYTES)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(end - start), 0, end - start, start)
    const last = buffer.subarray(0, bytesRead).lastIndexOf(NEWLINE)
    if (last >= 0) {
      const whole = start + last + 1
      return whole < size ? file.truncate(whole) : undefined
    }
    end = start
    if (end === 0) return file.truncate(0)
  }
}
