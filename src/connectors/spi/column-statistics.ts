import { z } from 'zod'
import type { ConnectorContext } from './connector.ts'

/** What is known of a column's values, as of a table's snapshot; what is absent is not known. */
export interface ColumnStatistics {
  /** Rows in which it is NULL. */
  readonly nulls?: number
  /** The least and the largest value, as Trino's estimates have them: numbers, and days since 1970 of dates. */
  readonly low?: number
  readonly high?: number
  /** Different values that are not NULL. */
  readonly distinct?: number
  /** That its values take in files, compressed. */
  readonly storedBytes?: number
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
  /** Of one row group alone they are told. */
  different: z.coerce.number().nullable(),
  least_different: z.coerce.number().nullable(),
  bytes: z.coerce.number(),
  bounded: z.boolean(),
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
  const known: ColumnStatistics = {
    ...(nulls !== undefined && { nulls }),
    storedBytes: sum(found.map(({ bytes }) => bytes))!,
  }
  const [only] = found
  const counted = found.length === 1 && only!.different !== null ? { distinct: only!.different } : {}
  const isDate = type === 'date'
  if (!isDate && !NUMBER.test(type)) return { ...known, ...counted }
  if (!found.every(({ bounded }) => bounded)) return known
  const lows = found.map((each) => (isDate ? each.low_day : each.low)).filter((bound) => bound !== null)
  const highs = found.map((each) => (isDate ? each.high_day : each.high)).filter((bound) => bound !== null)
  if (lows.length === 0 || highs.length === 0) return known
  const [low, high] = [Math.min(...lows), Math.max(...highs)]
  const least = Math.max(...found.map(({ least_different }) => least_different ?? 0))
  // Files have two zeros, SQL one. Of whole numbers there are no more than fit between the bounds.
  const countable = !FLOATING.test(type) || low > 0 || high < 0
  const all = (isDate || WHOLE.test(type)) && least === high - low + 1 ? { distinct: least } : {}
  return { ...known, low, high, ...(countable ? counted : {}), ...all }
}

/** Undefined as soon as one is unknown. */
function sum(numbers: readonly (number | null)[]): number | undefined {
  return numbers.reduce<number | undefined>(
    (total, each) => (total === undefined || each === null ? undefined : total + each),
    0,
  )
}
