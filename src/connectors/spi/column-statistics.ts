import { z } from 'zod'
import type { ConnectorContext } from './connector.ts'

/** What is known of a column's values, as of a table's snapshot; what is absent is not known. */
export interface ColumnStatistics {
  /** Rows in which it is NULL. */
  readonly nulls?: number
  /** The least and the largest value, as Trino's estimates have them: numbers, and days since 1970 of dates. */
  readonly low?: number
  readonly high?: number
}

export type StatisticsByColumn = Readonly<Record<string, ColumnStatistics>>

/** A column of a table and how its files name it. */
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
  bounded: z.boolean(),
  low: z.coerce.number().nullable(),
  high: z.coerce.number().nullable(),
  low_day: z.coerce.number().nullable(),
  high_day: z.coerce.number().nullable(),
})
type Found = z.infer<typeof foundSchema>

const NUMBER = /^(tinyint|smallint|integer|bigint|real|double|decimal\()/
const NESTED = /^(array|map|row)\(/

/**
 * What the footers of Parquet files tell of these columns, by name; no row is read.
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
      .filter(({ type }) => !NESTED.test(type))
      .map(({ name, source, type }) => [name, statisticsOf(byName.get(source.toLowerCase()) ?? [], rows, type)]),
  )
}

/** @param found of each way in which the files write the column's name */
function statisticsOf(found: readonly Found[], rows: number, type: string): ColumnStatistics {
  // Values that are held in parts have no leaf of the name, and a name of two columns of a file tells nothing.
  if (rows > 0 && (found.length === 0 || !found.every(({ single }) => single))) return {}
  const nulls = sum([...found.map((each) => each.nulls), rows - sum(found.map((each) => each.rows))!])
  const known = nulls === undefined ? {} : { nulls }
  if (!found.every(({ bounded }) => bounded)) return known
  const isDate = type === 'date'
  if (!isDate && !NUMBER.test(type)) return known
  const lows = found.map((each) => (isDate ? each.low_day : each.low)).filter((bound) => bound !== null)
  const highs = found.map((each) => (isDate ? each.high_day : each.high)).filter((bound) => bound !== null)
  if (lows.length === 0 || highs.length === 0) return known
  return { ...known, low: Math.min(...lows), high: Math.max(...highs) }
}

/** Undefined as soon as one is unknown. */
function sum(numbers: readonly (number | null)[]): number | undefined {
  return numbers.reduce<number | undefined>(
    (total, each) => (total === undefined || each === null ? undefined : total + each),
    0,
  )
}
