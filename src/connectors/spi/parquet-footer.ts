import { z } from 'zod'

const nonNegative = z.number().int()

/** An element of a Parquet file's schema, by the numbers that `parquet.thrift` gives to types. */
const schemaElementSchema = z.object({
  name: z.string(),
  /** None for a leaf, which holds values. */
  children: nonNegative.optional(),
  physical: z.number().optional(),
  converted: z.number().optional(),
  /** Digits of a decimal. */
  precision: z.number().optional(),
  scale: z.number().optional(),
  /** Bytes of each value, where all have as many. */
  length: z.number().optional(),
  /** Thrift's bytes, as hexadecimal digits. */
  logical: z.string().optional(),
})
export type SchemaElement = z.infer<typeof schemaElementSchema>

/** What a connector learns of a Parquet file; leaves are counted from 0, in the order of the schema. */
export const parquetFooterSchema = z.object({
  /** A tree, written depth first, the root first. */
  elements: z.array(schemaElementSchema),
  /** Each with the compressed bytes of the leaves. */
  rowGroups: z.array(z.object({ rows: z.number(), bytes: z.array(z.number()) })),
  /** Leaves of which a row group has a bloom filter. */
  bloomFilters: z.array(z.number()),
  /** Leaves of which a row group tells bounds by the fields `min` and `max` alone, not by `min_value` and `max_value`. */
  oldBounds: z.array(z.number()),
  /** The program that wrote it. */
  createdBy: z.string(),
  /** Keys of what it noted besides. */
  keys: z.array(z.string()),
})
export type ParquetFooter = z.infer<typeof parquetFooterSchema>
