import type { ScanMeasure, ScanQuestion } from '../../connectors/spi/scan-question.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import type { HistoryValue } from './read-history.ts'

/** A sum of whole numbers does not fit into 64 bits. */
export class SumTooLarge extends QuipuError {
  readonly retry = 'never'
}

/** The groups would take too much memory. */
export class TooManyGroups extends QuipuError {
  readonly retry = 'never'
}

/** Limit of all groups' keys together, in characters; a scan of as many rows is refused, too. */
const LONGEST_KEYS = 32 * 1024 * 1024

type Row = readonly HistoryValue[]
type Merge = (a: HistoryValue, b: HistoryValue) => HistoryValue

const LARGEST = 2n ** 63n

/**
 * Merges the answers of parts that have no row in common: groups with equal keys become one.
 * @param columns by position
 * @throws SumTooLarge | TooManyGroups
 */
export async function mergedGroups(
  groups: NonNullable<ScanQuestion['groups']>,
  columns: readonly string[],
  parts: readonly AsyncIterable<readonly Row[]>[],
): Promise<Row[]> {
  const measures = new Map(groups.measures.map((measure) => [measure.name, measure]))
  const merges = columns.map((name) => {
    const measure = measures.get(name)
    return measure && mergeOf(measure)
  })
  const found = new Map<string, Row>()
  let length = 0
  for (const part of parts)
    for await (const page of part)
      for (const row of page) {
        const key = JSON.stringify(row.filter((_, i) => !merges[i]))
        const before = found.get(key)
        if (!before) length += key.length
        if (length > LONGEST_KEYS) throw new TooManyGroups(`Groups of more than ${LONGEST_KEYS} characters`)
        found.set(key, before ? row.map((value, i) => merges[i]?.(before[i]!, value) ?? value) : row)
      }
  return [...found.values()].map((row) => row.map((value, i) => fitting(value, measures.get(columns[i]!))))
}

/** The function that merges two values; NULL adds nothing. */
function mergeOf({ of, type }: ScanMeasure): Merge {
  const merge = (both: (a: NonNullable<HistoryValue>, b: NonNullable<HistoryValue>) => HistoryValue): Merge => {
    return (a, b) => (a === null ? b : b === null ? a : both(a, b))
  }
  const isLess = (a: NonNullable<HistoryValue>, b: NonNullable<HistoryValue>): boolean =>
    type === 'bigint' ? BigInt(String(a)) < BigInt(String(b)) : typeof a === 'string' ? isBefore(a, String(b)) : a < b
  switch (of) {
    case 'count':
    case 'sum':
      return merge((a, b) => (type === 'double' ? Number(a) + Number(b) : whole(BigInt(String(a)) + BigInt(String(b)))))
    case 'min':
      return merge((a, b) => (isLess(b, a) ? b : a))
    case 'max':
      return merge((a, b) => (isLess(a, b) ? b : a))
  }
}

/** Compares by code points. */
function isBefore(a: string, b: string): boolean {
  return Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0
}

function fitting(value: HistoryValue, measure: ScanMeasure | undefined): HistoryValue {
  if (measure?.of !== 'sum' || measure.type !== 'bigint' || value === null) return value
  const sum = BigInt(String(value))
  if (sum >= LARGEST || sum < -LARGEST) throw new SumTooLarge('bigint addition overflow')
  return value
}

function whole(value: bigint): HistoryValue {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}
