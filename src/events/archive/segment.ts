import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { formatHeader, parseHeader } from '../fold.ts'
import type { StoredRecord } from '../record-store.ts'

const pack = promisify(gzip)
const unpack = promisify(gunzip)

/** Limit of an unpacked segment or block of an index. */
const MAX_UNPACKED_BYTES = 256 << 20

export function sha256Of(bytes: Buffer): string {
  return hash('sha256', bytes)
}

/** Packs records into a file: their header as in the log, and their text byte for byte. */
export function packRecords(records: readonly StoredRecord[]): Promise<Buffer> {
  return packLines(
    records.map(({ offset, header, stream, sequence, text }) => [
      String(offset),
      header ? formatHeader(header) : null,
      stream,
      sequence ?? null,
      text,
    ]),
  )
}

type RecordLine = readonly [string, string | null, string, number | null, string]

export async function unpackRecords(bytes: Buffer): Promise<StoredRecord[]> {
  const lines = (await unpackLines(bytes)) as RecordLine[]
  return lines.map(([offset, header, stream, sequence, text]) => ({
    offset: BigInt(offset),
    header: header === null ? undefined : parseHeader(header),
    stream,
    ...(sequence === null ? {} : { sequence }),
    text,
  }))
}

/** Packs one JSON line for each value. */
export function packLines(lines: readonly unknown[]): Promise<Buffer> {
  return pack(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
}

export async function unpackLines(bytes: Buffer): Promise<unknown[]> {
  const text = (await unpack(bytes, { maxOutputLength: MAX_UNPACKED_BYTES })).toString()
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown)
}
