import { z } from 'zod'
import type { EngineFileStats } from './engine.ts'

/** A row of `RETURN_STATS`, values as `getRowObjectsJson` gives them. */
const statsSchema = z.object({
  filename: z.string(),
  count: z.coerce.number(),
  file_size_bytes: z.coerce.number(),
  column_statistics: z.array(
    z.object({ key: z.string(), value: z.array(z.object({ key: z.string(), value: z.string().nullable() })) }),
  ),
})

/**
 * The figures of the files that a COPY to Parquet wrote. The bytes of nested columns count for their top-level column.
 */
export function fileStats(result: readonly unknown[]): readonly EngineFileStats[] {
  return z
    .array(statsSchema)
    .parse(result)
    .map((stats) => {
      const columnBytes = new Map<string, number>()
      for (const { key, value } of stats.column_statistics) {
        const size = Number(value.find((one) => one.key === 'column_size_bytes')?.value ?? 0)
        const column = columnName(key)
        columnBytes.set(column, (columnBytes.get(column) ?? 0) + size)
      }
      const { filename: path, count: rows, file_size_bytes: bytes } = stats
      return { path, rows, bytes, columnBytes: Object.fromEntries(columnBytes) }
    })
}

/** The first name of `"a b"."element"`. */
function columnName(path: string): string {
  const quoted = /^"((?:[^"]|"")*)"/.exec(path)
  return quoted ? quoted[1]!.replaceAll('""', '"') : path
}
