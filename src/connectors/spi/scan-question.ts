/**
 * A question of a scan to a table whose connector can answer it (`ConnectorTable.answers`): only some rows, the first
 * rows of an order, or groups instead of rows. Plain JSON, so that it fits an event. Values are texts: numbers as
 * digits, times as ISO UTC with milliseconds, `true` and `false`.
 */
export interface ScanQuestion {
  /**
   * Conditions that all used rows meet. Without `top` and `groups` the answer may have other rows too: they are
   * filtered again.
   */
  readonly terms: readonly ScanTerm[]
  /**
   * At most `count` of the rows that meet all terms are needed, the first in this order; the answer may have them in
   * any order.
   */
  readonly top?: { readonly order: readonly ScanOrder[]; readonly count: number }
  /** Instead of rows: one row for each group of all rows that meet the terms; without keys one row for all. */
  readonly groups?: { readonly keys: readonly ScanKey[]; readonly measures: readonly ScanMeasure[] }
}

/** A condition that NULL does not meet, except for `isNull`. */
export type ScanTerm =
  | { readonly column: string; readonly in: readonly string[] }
  | { readonly column: string; readonly compare: '<' | '<=' | '>' | '>=' | '<>'; readonly value: string }
  /** SQL's LIKE: there is no escape character unless it is named. */
  | { readonly column: string; readonly like: string; readonly escape?: string | undefined }
  | { readonly column: string; readonly isNull: boolean }
  /** One of the values in another table's answer; only where rows are filtered again. */
  | { readonly column: string; readonly among: ScanValues }

/** The values of one column in the answer to a question. */
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

/** Units to which times are cut to make groups, in UTC. */
export const timeUnits = ['minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'] as const
export type TimeUnit = (typeof timeUnits)[number]

/** `name` is the column of the answer, `type` Trino's text of its type. */
interface Answered {
  readonly name: string
  readonly type: string
}

/** `cut`: groups by the beginning of the unit that contains the time, or by its day as a date. */
export interface ScanKey extends Answered {
  readonly column: string
  readonly cut?: TimeUnit | 'date'
}

/**
 * `count` without column counts rows, else values that are not NULL; the others ignore NULL, and are NULL without
 * values.
 */
export interface ScanMeasure extends Answered {
  readonly of: 'count' | 'min' | 'max' | 'sum'
  readonly column?: string
}
