import { z } from 'zod'
import type { EngineFileStats } from './engine.ts'

/** A row of `RETURN_STATS`, values as `getRowObjectsJson` gives them. */
const statsSchema = z.object({
  count: z.coerce.number(),
  file_size_bytes: z.coerce.number(),
  column_statistics: z.array(
    z.object({ key: z.string(), value: z.array(z.object({ key: z.string(), value: z.string().nullable() })) }),
  ),
})

/** What a COPY to one file says of it. Nested columns count for the column they are part of. */
export function fileStats(result: readonly unknown[]): EngineFileStats & { readonly rows: number } {
  let rows = 0
  let bytes = 0
  const columnBytes: Record<string, number> = {}
  for (const stats of z.array(statsSchema).parse(result)) {
    rows += stats.count
    bytes += stats.file_size_bytes
    for (const { key, value } of stats.column_statistics) {
      const size = Number(value.find((one) => one.key === 'column_size_bytes')?.value ?? 0)
      const column = columnName(key)
      columnBytes[column] = (columnBytes[column] ?? 0) + size
    }
  }
  return { rows, bytes, columnBytes }
}

/** The first name of `"a b"."element"`. */
function columnName(path: string): string {
  const quoted = /^"((?:[^"]|"")*)"/.exec(path)
  return quoted ? quoted[1]!.replaceAll('""', '"') : path
}
