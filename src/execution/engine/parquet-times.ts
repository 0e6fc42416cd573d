import { open } from 'node:fs/promises'
import { ColumnFault } from './text-files/text-fault.ts'

/** Rows that are decoded at a time: between two parts the process handles other work. */
const ROWS_AT_ONCE = 500_000
const NANOS_PER_MICRO = 1000n

/**
 * Checks every timestamp in columns of a Parquet file that has nanoseconds, which DuckDB reads as microseconds.
 * @param path absolute
 * @param columns as the file names them
 * @throws ColumnFault for a value that is finer than microseconds; Error for a file that cannot be decoded
 */
export async function checkTimes(path: string, columns: readonly string[]): Promise<void> {
  // Loaded only here: they would make the start of every engine a third slower, and few files have such columns.
  const [{ parquetMetadataAsync, parquetRead }, { compressors }] = await Promise.all([
    import('hyparquet'),
    import('hyparquet-compressors'),
  ])
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const buffer = {
      byteLength: size,
      async slice(start: number, end = size): Promise<ArrayBuffer> {
        const bytes = new Uint8Array(Math.max(0, end - start))
        for (let read = 0; read < bytes.length;) {
          const { bytesRead } = await file.read(bytes, read, bytes.length - read, start + read)
          if (bytesRead === 0) throw new Error('a file that ends before its data')
          read += bytesRead
        }
        return bytes.buffer
      },
    }
    const metadata = await parquetMetadataAsync(buffer)
    for (const column of columns) {
      const timestampFromNanoseconds = (nanos: unknown): null => {
        if (typeof nanos === 'bigint' && nanos % NANOS_PER_MICRO !== 0n)
          throw new ColumnFault(path, column, 'has a timestamp finer than microseconds, which would be cut')
        return null
      }
      const rows = Number(metadata.num_rows)
      for (let rowStart = 0; rowStart < rows; rowStart += ROWS_AT_ONCE) {
        const rowEnd = Math.min(rows, rowStart + ROWS_AT_ONCE)
        await parquetRead({ file: buffer, metadata, columns: [column], rowStart, rowEnd, compressors, parsers: { timestampFromNanoseconds } }) // prettier-ignore
      }
    }
  } finally {
    await file.close()
  }
}
