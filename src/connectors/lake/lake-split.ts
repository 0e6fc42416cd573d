import { z } from 'zod'
import { fileFormats } from './lake-files.ts'

/** A split's own data: which rows of which version of a file, and how its columns become the table's. */
export const lakeSplitSchema = z.object({
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
    }),
  ),
})
export type LakeSplit = z.infer<typeof lakeSplitSchema>
