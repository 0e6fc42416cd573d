import type { LikePattern } from '../../shared/like-pattern.ts'

/**
 * A condition on rows of a scan, as a tree over columns by their names in the table. Values are texts: of varchar as they are,
 * of whole numbers their digits, of dates the days since 1970, of timestamps without zone the picoseconds since 1970.
 */
export type ScanPredicate =
  | { readonly all: readonly ScanPredicate[] }
  | { readonly any: readonly ScanPredicate[] }
  | { readonly not: ScanPredicate }
  | { readonly column: string; readonly compare: '=' | '<>' | '<' | '<=' | '>' | '>='; readonly value: string }
  | { readonly column: string; readonly in: readonly string[] }
  | { readonly column: string; readonly like: LikePattern }
  | { readonly column: string; readonly isNull: true }
  /** Nobody knows before the rows are read. */
  | { readonly unknown: true }

/** SQL's three truth values, and `unknown` where it may be any of them. */
export type Truth = 'true' | 'false' | 'null' | 'unknown'

/** What is known of the values of one column in some rows that all have the same. */
export interface KnownValue {
  readonly isNull: boolean
  /**
   * How the value compares with one of the predicate's: negative, 0 or positive; undefined where that is not known. Not asked
   * of NULL.
   */
  compare(value: string): number | undefined
  /** Whether it is one of the predicate's values; undefined where that is not known. Not asked of NULL. */
  isAmong(values: readonly string[]): boolean | undefined
  /** Whether the value is like a pattern; undefined where that is not known. Not asked of NULL. */
  isLike(pattern: LikePattern): boolean | undefined
}

/** The truth of a predicate for rows with these values. @param known undefined for a column of which nothing is known */
export function truthOf(predicate: ScanPredicate, known: (column: string) => KnownValue | undefined): Truth {
  if ('all' in predicate) return combined(predicate.all.map((one) => truthOf(one, known)), 'false', 'true') // prettier-ignore
  if ('any' in predicate) return combined(predicate.any.map((one) => truthOf(one, known)), 'true', 'false') // prettier-ignore
  if ('not' in predicate) {
    const truth = truthOf(predicate.not, known)
    return truth === 'true' ? 'false' : truth === 'false' ? 'true' : truth
  }
  if ('unknown' in predicate) return 'unknown'
  const value = known(predicate.column)
  if (!value) return 'unknown'
  if ('isNull' in predicate) return truth(value.isNull)
  if (value.isNull) return 'null'
  if ('like' in predicate) return truth(value.isLike(predicate.like))
  if ('in' in predicate) return truth(value.isAmong(predicate.in))
  const order = value.compare(predicate.value)
  return order === undefined ? 'unknown' : truth(HOLDS[predicate.compare](order))
}

const HOLDS = {
  '=': (order: number) => order === 0,
  '<>': (order: number) => order !== 0,
  '<': (order: number) => order < 0,
  '<=': (order: number) => order <= 0,
  '>': (order: number) => order > 0,
  '>=': (order: number) => order >= 0,
} as const

function truth(value: boolean | undefined): Truth {
  return value === undefined ? 'unknown' : value ? 'true' : 'false'
}

/** @param decisive what one term makes the whole, @param neutral what it is of no terms */
function combined(terms: readonly Truth[], decisive: Truth, neutral: Truth): Truth {
  for (const one of [decisive, 'unknown', 'null'] as const) if (terms.includes(one)) return one
  return neutral
}
