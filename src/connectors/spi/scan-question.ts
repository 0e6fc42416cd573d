/**
 * What a scan is asked of a table whose connector can answer it (`ConnectorTable.answers`): only some rows, the first of an
 * order, or groups in the place of rows. Plain JSON, so that it fits an event. Values are texts: of numbers their digits, of
 * times ISO UTC with milliseconds, `true` and `false`.
 */
export interface ScanQuestion {
  /**
   * What every row that is used fulfils. Rows that do not may be given where there is neither `top` nor `groups`: they are
   * looked at again.
   */
  readonly terms: readonly ScanTerm[]
  /** Of the rows that fulfil all terms so many suffice, the first in this order, in whatever order they are given. */
  readonly top?: { readonly order: readonly ScanOrder[]; readonly count: number }
  /** In the place of rows: one row a group, of all rows that fulfil the terms, and one of all where there are no keys. */
  readonly groups?: { readonly keys: readonly ScanKey[]; readonly measures: readonly ScanMeasure[] }
}

/** A condition that is not fulfilled by NULL, but for `isNull`. */
export type ScanTerm =
  | { readonly column: string; readonly in: readonly string[] }
  | { readonly column: string; readonly compare: '<' | '<=' | '>' | '>=' | '<>'; readonly value: string }
  /** SQL's LIKE: no character escapes others unless it is named. */
  | { readonly column: string; readonly like: string; readonly escape?: string | undefined }
  | { readonly column: string; readonly isNull: boolean }
  /** One of the values that another table of the schema answers with; only where rows are looked at again. */
  | { readonly column: string; readonly among: ScanValues }

/** Values of one column of an answer. */
export interface ScanValues {
  readonly table: string
  readonly column: string
  readonly question: ScanQuestion
}

export interface ScanOrder {
  readonly column: string
  readonly descending: boolean
  readonly nullsFirst: boolean
}

/** Beginnings of which times are made groups, in UTC. */
export const timeUnits = ['minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'] as const
export type TimeUnit = (typeof timeUnits)[number]

/** `name` is the column of the answer, `type` Trino's text of its type. */
interface Answered {
  readonly name: string
  readonly type: string
}

/** `cut`: the beginning of the unit that the time lies in, or its day as a date. */
export interface ScanKey extends Answered {
  readonly column: string
  readonly cut?: TimeUnit | 'date'
}

/** `count` without column counts rows, else what is not NULL; the others leave NULL out and are NULL of nothing. */
export interface ScanMeasure extends Answered {
  readonly of: 'count' | 'min' | 'max' | 'sum'
  readonly column?: string
}
