import { z } from 'zod'
import { writeTargetSchema } from '../../connectors/spi/table-writer.ts'

/**
 * One SELECT over `"$s0"`, `"$s1"` …: the scans. The worker asks its own connector for the data of a batch's splits,
 * and its engine puts that into `sql` in place of each scan's name; so no path or credential ever travels.
 */
export const scanSchema = z.object({
  catalog: z.string(),
  schema: z.string(),
  table: z.string(),
  /** The connector's table handle: names a snapshot. */
  handle: z.record(z.string(), z.unknown()),
  /** Columns the fragment reads, by their names in the table; the scan has exactly these. */
  columns: z.array(z.string()),
  /**
   * True when only a filter or a mask of the access rules reads the table. The client may have no right to it, so its
   * splits have no rows and bytes, and the task is not profiled.
   */
  ofRule: z.boolean().optional(),
  /** The scan has two more columns behind `columns`: `$file` and `$row`, which identify a row of the table's version. */
  rowIds: z.boolean().optional(),
})

export const outputColumnSchema = z.object({
  name: z.string(),
  /** Trino's display text of the type, as the client sees it. */
  type: z.string(),
  /** Wire typeSignature, ready to send. */
  typeSignature: z.unknown(),
  /** DuckDB expression over the columns of `sql` (named `c0`, `c1` …) for use as an argument of `json_array(…)`. */
  wire: z.string(),
})

export const fragmentSchema = z.object({
  /** One DuckDB SELECT whose output columns are named `c0`, `c1` …, in order. */
  sql: z.string(),
  scans: z.array(scanSchema),
  output: z.array(outputColumnSchema),
  /** True when the union of the results over disjoint sets of scan 0's splits is the result: it may run in batches. */
  streams: z.boolean(),
  /** True when a top-level ORDER BY fixes the order of the rows. */
  ordered: z.boolean(),
  /** The estimate for the scheduler; unknown sizes count as large. */
  estimate: z.object({
    small: z.boolean(),
    rows: z.number().optional(),
    bytes: z.number().optional(),
  }),
  /**
   * Whether DuckDB may fail on the statement while it only prepares it. Such a statement is prepared in an engine of
   * its own.
   */
  risky: z.boolean(),
  /**
   * The rows are written, not returned: they become files of the target, reported in `TaskStatus.written`, and there
   * are no pages (the coordinator makes the one row with the count, once the write is committed). The task has one
   * batch, whatever `streams` says; `output` is ignored.
   */
  write: z
    .object({
      target: writeTargetSchema,
      /** DuckDB's type of each of the target's columns (`sql/types/duckdb-representation.ts`): `c0` … are cast to it. */
      duckdbTypes: z.array(z.string()),
    })
    .optional(),
})
export type Fragment = z.infer<typeof fragmentSchema>

/** Whether operators of a fragment would show figures of tables that only the access rules read. */
export function readsForRules({ scans }: Pick<Fragment, 'scans'>): boolean {
  return scans.some(({ ofRule }) => ofRule)
}

/**
 * The splits whose number users may see: those of tables that the statement itself reads. Without a fragment, all.
 */
export function splitsOfStatement<T extends { readonly scan: number }>(
  fragment: Pick<Fragment, 'scans'> | undefined,
  splits: readonly T[],
): readonly T[] {
  return fragment ? splits.filter(({ scan }) => !fragment.scans[scan]?.ofRule) : splits
}

export const splitSchema = z.object({
  /** Index of the scan this split belongs to. */
  scan: z.number().int().min(0),
  catalog: z.string(),
  data: z.record(z.string(), z.unknown()),
  rows: z.number().optional(),
  bytes: z.number().optional(),
  columnBytes: z.record(z.string(), z.number()).optional(),
})
export type Split = z.infer<typeof splitSchema>

/** Compressed bytes of a column, whatever its name; undefined when unknown. */
export function bytesOfColumn({ columnBytes }: Pick<Split, 'columnBytes'>, column: string): number | undefined {
  return columnBytes !== undefined && Object.hasOwn(columnBytes, column) ? columnBytes[column] : undefined
}
