/** The known facts about a column's values, as of a table's snapshot; unknown figures are absent. */
export interface ColumnStatistics {
  /** Rows in which the column is NULL. */
  readonly nulls?: number
  /** The least and the largest value in the form of Trino's estimates: numbers, and days since 1970 for dates. */
  readonly low?: number
  readonly high?: number
  /** Number of different values that are not NULL. */
  readonly distinct?: number
  /** Compressed bytes of its values in files. */
  readonly storedBytes?: number
}

export type StatisticsByColumn = Readonly<Record<string, ColumnStatistics>>
