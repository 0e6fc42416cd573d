import { z } from 'zod'
import { csvDialectSchema, jsonLayoutSchema } from '../spi/text-file.ts'
import { fileFormats } from './file-format.ts'
import { versionTables } from './version-tables.ts'

/** The rules for reading a text file. */
const splitTextSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('csv'),
    dialect: csvDialectSchema,
    /** How many fields each line has. */
    fields: z.number(),
    /** Whether every line is checked: the types were derived from the file's beginning. */
    checked: z.boolean(),
  }),
  z.object({
    kind: z.literal('json'),
    layout: jsonLayoutSchema,
    /** Whether each value is an object with the columns; else the value is the only column. */
    isRecord: z.boolean(),
    checked: z.boolean(),
  }),
])

/** Rows of a file that Quipu did not write: the version of the file, and how its columns become the table's. */
const foundSplitSchema = z.object({
  format: z.enum(fileFormats),
  file: z.string(),
  size: z.number(),
  mtime: z.string(),
  footer: z.string(),
  firstRow: z.number(),
  rows: z.number(),
  fileRows: z.number(),
  /** Whether the table's files have different columns, so that they are read by name. */
  unionByName: z.boolean(),
  columns: z.array(
    z.object({
      name: z.string(),
      source: z.string(),
      duckdbType: z.string(),
      /** False when this file has no such column. */
      present: z.boolean(),
      /** For a text file: whether the administrator has fixed the type. */
      declared: z.boolean().optional(),
      /** For a text file: whether quoted fields without a character are NULL. */
      blanks: z.boolean().optional(),
      /** Why its values would be read as other values. */
      misread: z.string().optional(),
      /** Whether its timestamps may be finer than microseconds, as which they are read: then each is checked. */
      finer: z.boolean().optional(),
      /** See `FileColumn.checkedByRow`. */
      byRow: z.boolean().optional(),
    }),
  ),
  /** Absent for Parquet. */
  text: splitTextSchema.optional(),
  /**
   * Columns that are read and have one value in all rows, from the file's folder: a text that is cast, null for NULL.
   */
  partition: z.array(z.object({ name: z.string(), duckdbType: z.string(), value: z.string().nullable() })).optional(),
})
export type FoundSplit = z.infer<typeof foundSplitSchema>

/** Rows of a Parquet file that Quipu wrote: it has the table's columns, in the form that holds their types. */
const writtenSplitSchema = z.object({
  /** 2: a reader must know `live`, `removedBy` and `columns`. Workers of earlier versions refuse such a split. */
  written: z.union([z.literal(true), z.literal(2)]),
  /** Relative to the catalog's location. */
  file: z.string(),
  /** The position in the table's list of files; absent in splits of earlier versions. */
  index: z.number().optional(),
  size: z.number(),
  footer: z.string(),
  firstRow: z.number(),
  rows: z.number(),
  fileRows: z.number(),
  /** Columns that are checked row by row (`FileColumn`). */
  byRow: z.array(z.string()).optional(),
  /** For a file of changed rows: only its rows with `$live` are rows of the table. */
  live: z.literal(true).optional(),
  /** The files of changed rows that remove rows of this file: their rows with `$file` equal to `index`. */
  removedBy: z
    .array(z.object({ file: z.string(), size: z.number(), footer: z.string(), index: z.number() }))
    .optional(),
  /**
   * The columns that the file has under another name or with another type, or not at all: then they have no source, and
   * are NULL.
   */
  columns: z
    .array(z.object({ name: z.string(), source: z.string().optional(), cast: z.string().optional() }))
    .optional(),
})
export type WrittenSplit = z.infer<typeof writtenSplitSchema>

/** The only split of a table without files; it carries the column types. */
const emptySplitSchema = z.object({
  empty: z.literal(true),
  columns: z.array(z.object({ name: z.string(), duckdbType: z.string() })),
})
export type EmptySplit = z.infer<typeof emptySplitSchema>

/** A split with rows that describe the versions of a table, up to one version. */
const historySplitSchema = z.object({
  history: z.enum(versionTables),
  /** The folder of its manifest, relative to the location. */
  folder: z.string(),
  version: z.number(),
})

export const lakeSplitSchema = z.union([writtenSplitSchema, emptySplitSchema, foundSplitSchema, historySplitSchema])
/** A split with rows of files. */
export type LakeSplit = Exclude<z.infer<typeof lakeSplitSchema>, { history: unknown }>

export function isOfFiles(split: z.infer<typeof lakeSplitSchema>): split is LakeSplit {
  return !('history' in split)
}
