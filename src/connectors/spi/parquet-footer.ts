import { z } from 'zod'

const nonNegative = z.number().int()

/** An element of a Parquet file's schema, with types by their numbers in `parquet.thrift`. */
const schemaElementSchema = z.object({
  name: z.string(),
  /** Absent for a leaf, which holds values. */
  children: nonNegative.optional(),
  physical: z.number().optional(),
  converted: z.number().optional(),
  /** Digits of a decimal. */
  precision: z.number().optional(),
  scale: z.number().optional(),
  /** Bytes of each value, if all values have the same length. */
  length: z.number().optional(),
  /** Thrift's bytes, as hexadecimal digits. */
  logical: z.string().optional(),
})
export type SchemaElement = z.infer<typeof schemaElementSchema>

/** The facts of a Parquet file for a connector; leaves are counted from 0, in the order of the schema. */
export const parquetFooterSchema = z.object({
  /** A tree, written depth first, the root first. */
  elements: z.array(schemaElementSchema),
  /** Row groups with the compressed bytes of the leaves. */
  rowGroups: z.array(z.object({ rows: z.number(), bytes: z.array(z.number()) })),
  /** Leaves with a bloom filter in some row group. */
  bloomFilters: z.array(z.number()),
  /**
   * Leaves whose bounds in some row group are only in the fields `min` and `max`, not in `min_value` and `max_value`.
   */
  oldBounds: z.array(z.number()),
  /** The program that wrote it. */
  createdBy: z.string(),
  /** Keys of the notes that it added. */
  keys: z.array(z.string()),
})
export type ParquetFooter = z.infer<typeof parquetFooterSchema>
