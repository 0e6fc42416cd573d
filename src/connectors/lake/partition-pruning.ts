import { likeTest, type LikePattern } from '../../shared/like-pattern.ts'
import type { ColumnStatistics, StatisticsByColumn } from '../spi/column-statistics.ts'
import { truthOf, type KnownValue, type ScanPredicate } from '../spi/scan-predicate.ts'
import type { PartitionKey, Partitioning } from './partition-keys.ts'

/** The event loop waits while a predicate is evaluated. Above this product of terms and folders no file is pruned. */
const MOST_EVALUATIONS = 500_000

/**
 * Whether a file may have rows that meet a predicate, by its index in the list.
 * @param predicate absent: all files may
 */
export function filesThatMayHold(
  { keys, values }: Partitioning,
  predicate: ScanPredicate | undefined,
): (index: number) => boolean {
  if (!predicate || keys.length === 0) return () => true
  if (costOf(predicate) * new Set(values).size > MOST_EVALUATIONS) return () => true
  const columns = new Map(keys.map((key, index) => [key.name, { index, asked: createQuestions(key) }]))
  const verdicts = new Map<readonly (string | null)[], boolean>()
  return (file) => {
    const own = values[file]!
    let verdict = verdicts.get(own)
    if (verdict === undefined) {
      verdict = mayHold(predicate, (column) => {
        const found = columns.get(column)
        return found && found.asked(own[found.index]!)
      })
      verdicts.set(own, verdict)
    }
    return verdict
  }
}

/** The number of terms of a predicate. A pattern counts as many terms as it has characters. */
function costOf(predicate: ScanPredicate): number {
  if ('all' in predicate) return predicate.all.reduce((sum, one) => sum + costOf(one), 0)
  if ('any' in predicate) return predicate.any.reduce((sum, one) => sum + costOf(one), 0)
  if ('not' in predicate) return costOf(predicate.not)
  return 'like' in predicate ? 1 + predicate.like.pattern.length : 1
}

/** Terms of a conjunction are tested one by one: if one is unknown and may be NULL, another may still be false. */
function mayHold(predicate: ScanPredicate, known: (column: string) => KnownValue | undefined): boolean {
  if ('all' in predicate) return predicate.all.every((one) => mayHold(one, known))
  const truth = truthOf(predicate, known)
  return truth === 'true' || truth === 'unknown'
}

/** The statistics of partition keys, without reading a row. @param rows of each file, in the order of the files */
export function partitionStatistics({ keys, values }: Partitioning, rows: readonly number[]): StatisticsByColumn {
  return Object.fromEntries(keys.map(({ name, duckdbType }, index) => [name, statisticsOf(duckdbType, values.map((own) => own[index]!), rows)])) // prettier-ignore
}

function statisticsOf(
  duckdbType: string,
  values: readonly (string | null)[],
  rows: readonly number[],
): ColumnStatistics {
  let nulls = 0
  const texts = new Set<string>()
  for (const [file, count] of rows.entries()) {
    const value = values[file]!
    if (value === null) nulls += count
    else if (count > 0) texts.add(value)
  }
  const found = [...texts].map((text) => ofFolder(duckdbType, text))
  if (!found.every((value) => value !== undefined)) return { nulls }
  const distinct = new Set(found.map(textOf)).size
  const numbers = found.flatMap((value) => (typeof value === 'bigint' && !TIMESTAMPS.has(duckdbType) ? [Number(value)] : [])) // prettier-ignore
  if (numbers.length === 0) return { nulls, distinct }
  const [low, high] = numbers.reduce(([least, most], one) => [Math.min(least, one), Math.max(most, one)], [Infinity, -Infinity]) // prettier-ignore
  return { nulls, distinct, low: low!, high: high! }
}

/** A value that compares like a key's values. */
type Comparable = bigint | Buffer

/** Makes tests of a key's values. Constants of a predicate are parsed once for all files. */
function createQuestions({ duckdbType }: PartitionKey): (value: string | null) => KnownValue {
  const parsed = remembered((value: string) => ofPredicate(duckdbType, value))
  const sets = remembered((values: readonly string[]) => {
    const all = values.map((value) => textOf(parsed(value)))
    return all.every((text) => text !== undefined) ? new Set(all) : undefined
  })
  const patterns = remembered((pattern: LikePattern) => likeTest(pattern))
  return (value) => {
    const own = value === null ? undefined : ofFolder(duckdbType, value)
    return {
      isNull: value === null,
      compare: (other) => compared(own, parsed(other)),
      isAmong(values) {
        const text = textOf(own)
        return text === undefined ? undefined : sets(values)?.has(text)
      },
      isLike: (pattern) => (duckdbType === 'VARCHAR' ? patterns(pattern)(value!) : undefined),
    }
  }
}

function compared(one: Comparable | undefined, other: Comparable | undefined): number | undefined {
  if (one === undefined || other === undefined) return undefined
  if (typeof one === 'bigint') return typeof other === 'bigint' ? (one < other ? -1 : one > other ? 1 : 0) : undefined
  return typeof other === 'bigint' ? undefined : Buffer.compare(one, other)
}

function textOf(value: Comparable | undefined): string | undefined {
  return typeof value === 'bigint' ? String(value) : value?.toString('latin1')
}

const INTEGERS = new Set(['TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT'])
const TIMESTAMPS = new Set(['TIMESTAMP', 'TIMESTAMP_S', 'TIMESTAMP_MS', 'TIMESTAMP_NS'])
const MILLIS_PER_DAY = 86_400_000
const PICOS_PER_MILLI = 1_000_000_000n

/** Parses a predicate's constant; undefined for types that are not compared here. */
function ofPredicate(duckdbType: string, value: string): Comparable | undefined {
  if (duckdbType === 'VARCHAR') return Buffer.from(value)
  const isNumber = INTEGERS.has(duckdbType) || TIMESTAMPS.has(duckdbType) || duckdbType === 'DATE'
  return isNumber && /^-?\d+$/.test(value) ? BigInt(value) : undefined
}

/** Parses a folder's value, which has the type, into the same unit as a predicate's constant. */
function ofFolder(duckdbType: string, value: string): Comparable | undefined {
  if (duckdbType === 'VARCHAR') return Buffer.from(value)
  if (INTEGERS.has(duckdbType)) return BigInt(value)
  const [, day, time] = /^(\d{4}-\d\d-\d\d)(?:[ T](.+))?$/.exec(value) ?? []
  if (day === undefined) return undefined
  const millis = Date.parse(`${day}T00:00:00Z`)
  if (duckdbType === 'DATE') return BigInt(millis / MILLIS_PER_DAY)
  if (!TIMESTAMPS.has(duckdbType) || time === undefined) return undefined
  const [, hours, minutes, seconds = '0', fraction = ''] = /^(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?$/.exec(time) ?? []
  if (hours === undefined || minutes === undefined) return undefined
  const ofDay = (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)
  return BigInt(millis + ofDay * 1000) * PICOS_PER_MILLI + BigInt(fraction.padEnd(12, '0'))
}

function remembered<K, V>(make: (key: K) => V): (key: K) => V {
  const known = new Map<K, V>()
  return (key) => {
    if (!known.has(key)) known.set(key, make(key))
    return known.get(key)!
  }
}
