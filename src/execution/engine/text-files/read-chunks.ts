import { constants, createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createGunzip } from 'node:zlib'
import type { Readable } from 'node:stream'
import { TextFault } from './text-fault.ts'

const CHUNK_BYTES = 256 * 1024

/**
 * The bytes of a file, decompressed when its name ends with `.gz`.
 * @throws Error in DuckDB's words, for a file that does not exist or is not compressed as its name says
 */
export async function* readChunks(path: string): AsyncGenerator<Buffer> {
  // Opening a pipe must not block.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`IO Error: Cannot open file "${path}": ${reasonOf(error)}`)
  })
  if (!(await file.stat()).isFile()) {
    await file.close()
    throw new TextFault(path, 1, 'it is not a file')
  }
  const bytes: Readable = createReadStream('', { fd: file, highWaterMark: CHUNK_BYTES })
  if (!/\.gz$/i.test(path)) {
    yield* bytes as AsyncIterable<Buffer>
    return
  }
  const inflated = createGunzip({ chunkSize: CHUNK_BYTES })
  bytes.on('error', (error) => inflated.destroy(error))
  bytes.pipe(inflated)
  let line = 1
  try {
    for await (const chunk of inflated as AsyncIterable<Buffer>) {
      yield chunk
      line += linesIn(chunk)
    }
  } catch {
    throw line === 1
      ? new Error(`IO Error: Input is not a GZIP stream: ${path}`)
      : new TextFault(path, line, 'the compressed data is damaged there, or ends')
  } finally {
    bytes.destroy()
  }
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  switch (code) {
    case 'ENOENT':
      return 'No such file or directory'
    case 'EACCES':
    case 'EPERM':
      return 'Permission denied'
    default:
      return message
  }
}

function linesIn(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) lines++
  return lines
}
