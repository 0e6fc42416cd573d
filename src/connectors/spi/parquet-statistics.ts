import { z } from 'zod'
import type { ColumnStatistics, StatisticsByColumn } from './column-statistics.ts'
import type { ConnectorContext } from './connector.ts'

/** A column of a table and its name in the files. */
export interface FiledColumn {
  readonly name: string
  readonly source: string
  /** Trino's type text. */
  readonly type: string
}

const foundSchema = z.object({
  name: z.string(),
  rows: z.coerce.number(),
  single: z.boolean(),
  nulls: z.coerce.number().nullable(),
  /** Present only when there is a single row group. */
  different: z.coerce.number().nullable(),
  least_different: z.coerce.number().nullable(),
  bytes: z.coerce.number(),
  low: z.coerce.number().nullable(),
  high: z.coerce.number().nullable(),
  low_day: z.coerce.number().nullable(),
  high_day: z.coerce.number().nullable(),
})

type Found = z.infer<typeof foundSchema>

const NUMBER = /^(tinyint|smallint|integer|bigint|real|double|decimal\()/
const FLOATING = /^(real|double)$/
const WHOLE = /^(tinyint|smallint|integer|bigint)$/
const NESTED = /^(array|map|row)\(/
/**
 * Separates the names of a column and its part in a path: a column with this text in its name may share it with a part.
 */
const PART = ', '

/**
 * Statistics of columns from the footers of Parquet files, by name; no row is read.
 * @param paths absolute
 * @param rows of all files
 */
export async function parquetStatistics(
  inspect: ConnectorContext['inspect'],
  paths: readonly string[],
  rows: number,
  columns: readonly FiledColumn[],
): Promise<StatisticsByColumn> {
  if (paths.length === 0) return {}
  const answer = await inspect({ kind: 'columnStatistics', paths })
  const byName = new Map<string, Found[]>()
  for (const found of answer.map((row) => foundSchema.parse(row))) {
    const key = found.name.toLowerCase()
    byName.set(key, [...(byName.get(key) ?? []), found])
  }
  return Object.fromEntries(
    columns
      .filter(({ source, type }) => !NESTED.test(type) && !source.includes(PART))
      .map(({ name, source, type }) => [name, statisticsOf(byName.get(source.toLowerCase()) ?? [], rows, type)]),
  )
}

/** @param found an entry for each way in which the files write the column's name */
function statisticsOf(found: readonly Found[], rows: number, type: string): ColumnStatistics {
  const [only] = found
  // A nested value has no leaf with the column's name. If two columns of a file share a name, their figures are
  // useless.
  if (rows > 0 && (only === undefined || found.length > 1 || !only.single)) return {}
  if (only === undefined) return { nulls: 0, storedBytes: 0 }
  const known: ColumnStatistics = {
    // The column is NULL in files that do not have it.
    ...(only.nulls !== null && { nulls: only.nulls + rows - only.rows }),
    storedBytes: only.bytes,
  }
  const isDate = type === 'date'
  // The same JSON value can be written in several ways.
  if (type === 'json') return known
  const counted = only.different === null ? {} : { distinct: only.different }
  if (!isDate && !NUMBER.test(type)) return { ...known, ...counted }
  const [low, high] = isDate ? [only.low_day, only.high_day] : [only.low, only.high]
  const bounds = { ...(low !== null && { low }), ...(high !== null && { high }) }
  if (low === null || high === null) return { ...known, ...bounds }
  // Files distinguish 0.0 and -0.0, SQL does not.
  const countable = !FLOATING.test(type) || low > 0 || high < 0
  // There are at most as many whole numbers as fit between the bounds; beyond 2^53 the bounds are rounded.
  const exact = (isDate || WHOLE.test(type)) && Number.isSafeInteger(low) && Number.isSafeInteger(high)
  const all = exact && only.least_different === high - low + 1 ? { distinct: only.least_different } : {}
  return { ...known, ...bounds, ...(countable ? counted : {}), ...all }
}
