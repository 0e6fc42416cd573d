import { z } from 'zod'
import { csvDialectSchema, jsonLayoutSchema } from '../spi/text-file.ts'
import { fileFormats } from './lake-files.ts'

/** How a text file is read. */
const splitTextSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('csv'),
    dialect: csvDialectSchema,
    /** How many fields each line has. */
    fields: z.number(),
    /** Every line is looked at: the types are those of its beginning. */
    checked: z.boolean(),
  }),
  z.object({
    kind: z.literal('json'),
    layout: jsonLayoutSchema,
    /** Each value is an object of the columns; else it is the only column. */
    isRecord: z.boolean(),
    checked: z.boolean(),
  }),
])

/** Rows of a file that lay in the folder: which version of it, and how its columns become the table's. */
const foundSplitSchema = z.object({
  format: z.enum(fileFormats),
  file: z.string(),
  size: z.number(),
  mtime: z.string(),
  footer: z.string(),
  firstRow: z.number(),
  rows: z.number(),
  fileRows: z.number(),
  /** The table's files differ in their columns: read by name. */
  unionByName: z.boolean(),
  columns: z.array(
    z.object({
      name: z.string(),
      source: z.string(),
      duckdbType: z.string(),
      /** False when this file has no such column. */
      present: z.boolean(),
      /** Of a text file: its administrator has fixed the type. */
      declared: z.boolean().optional(),
      /** Of a text file: quoted fields without a character are NULL. */
      blanks: z.boolean().optional(),
      /** Why its values would be read as others. */
      misread: z.string().optional(),
      /** Its timestamps may be finer than microseconds, as which they are read: each is looked at. */
      finer: z.boolean().optional(),
      /** See `FileColumn.checkedByRow`. */
      byRow: z.boolean().optional(),
    }),
  ),
  /** Absent for Parquet. */
  text: splitTextSchema.optional(),
  /** Columns that are read and have one value in all rows, that of the file's folder: a text that is cast, null for NULL. */
  partition: z.array(z.object({ name: z.string(), duckdbType: z.string(), value: z.string().nullable() })).optional(),
})
export type FoundSplit = z.infer<typeof foundSplitSchema>

/** Rows of a Parquet file that Quipu wrote: its columns are the table's, held as their types are. */
const writtenSplitSchema = z.object({
  written: z.literal(true),
  /** Relative to the catalog's location. */
  file: z.string(),
  size: z.number(),
  footer: z.string(),
  firstRow: z.number(),
  rows: z.number(),
  fileRows: z.number(),
  /** Columns that are checked row by row (`FileColumn`). */
  byRow: z.array(z.string()).optional(),
})
export type WrittenSplit = z.infer<typeof writtenSplitSchema>

/** The one split of a table without files: of which types the no rows are. */
const emptySplitSchema = z.object({
  empty: z.literal(true),
  columns: z.array(z.object({ name: z.string(), duckdbType: z.string() })),
})
export type EmptySplit = z.infer<typeof emptySplitSchema>

export const lakeSplitSchema = z.union([writtenSplitSchema, emptySplitSchema, foundSplitSchema])
export type LakeSplit = z.infer<typeof lakeSplitSchema>
