import type { LikePattern } from '../../shared/like-pattern.ts'

/**
 * A condition on rows of a scan, as a tree over columns by their names in the table. Values are texts: varchar
 * unchanged, whole numbers as digits, dates as days since 1970, timestamps without zone as picoseconds since 1970.
 */
export type ScanPredicate =
  | { readonly all: readonly ScanPredicate[] }
  | { readonly any: readonly ScanPredicate[] }
  | { readonly not: ScanPredicate }
  | { readonly column: string; readonly compare: '=' | '<>' | '<' | '<=' | '>' | '>='; readonly value: string }
  | { readonly column: string; readonly in: readonly string[] }
  | { readonly column: string; readonly like: LikePattern }
  | { readonly column: string; readonly isNull: true }
  /** A condition that is unknown before the rows are read. */
  | { readonly unknown: true }

/** SQL's three truth values, and `unknown` when it may be any of them. */
export type Truth = 'true' | 'false' | 'null' | 'unknown'

/** The known facts about one column in rows that all have the same value. */
export interface KnownValue {
  readonly isNull: boolean
  /**
   * Compares the value with a constant of the predicate: negative, 0 or positive; undefined when unknown. Not called
   * for NULL.
   */
  compare(value: string): number | undefined
  /** Whether the value is one of the predicate's constants; undefined when unknown. Not called for NULL. */
  isAmong(values: readonly string[]): boolean | undefined
  /** Whether the value is like a pattern; undefined when unknown. Not called for NULL. */
  isLike(pattern: LikePattern): boolean | undefined
}

/** The truth of a predicate for rows with these values. @param known gives undefined for an unknown column */
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

/** @param decisive the truth of one term that decides the whole, @param neutral the result without terms */
function combined(terms: readonly Truth[], decisive: Truth, neutral: Truth): Truth {
  for (const one of [decisive, 'unknown', 'null'] as const) if (terms.includes(one)) return one
  return neutral
}
