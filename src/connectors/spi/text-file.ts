import { z } from 'zod'

/**
 * The types as which texts of CSV and JSON can be read without loss: a bit for each type. The types of a column are
 * those that all its values have in common.
 */
export const fits = {
  boolean: 1,
  bigint: 2,
  /** decimal(38, 0): whole numbers beyond bigint. */
  whole: 4,
  double: 8,
  date: 16,
  time: 32,
  timestamp: 64,
  /** A timestamp with an offset from UTC. */
  zoned: 128,
  uuid: 256,
  text: 512,
  object: 1024,
  list: 2048,
  json: 4096,
  /** All bits: no value has excluded a type. */
  anything: 8191,
} as const

/** Types of scalars, the narrowest first. */
const SCALARS: readonly (readonly [bit: number, duckdbType: string])[] = [
  [fits.boolean, 'BOOLEAN'],
  [fits.bigint, 'BIGINT'],
  [fits.whole, 'DECIMAL(38,0)'],
  [fits.double, 'DOUBLE'],
  [fits.date, 'DATE'],
  [fits.time, 'TIME'],
  [fits.timestamp, 'TIMESTAMP'],
  [fits.zoned, 'TIMESTAMP WITH TIME ZONE'],
  [fits.uuid, 'UUID'],
  [fits.text, 'VARCHAR'],
]

/** DuckDB's scalar type for values with these bits; undefined when only JSON fits them, or no value is known. */
export function scalarType(mask: number): string | undefined {
  if (mask === fits.anything) return undefined
  return SCALARS.find(([bit]) => (mask & bit) !== 0)?.[1]
}

/** The bit of a type that `scalarType` gives; undefined for other types. */
export function scalarBit(duckdbType: string): number | undefined {
  return SCALARS.find(([, type]) => type === duckdbType)?.[0]
}

const character = z.string().regex(/^[\x01-\x7f]$/, 'one ASCII character')

/** The rules by which the lines of a CSV file become fields. */
export const csvDialectSchema = z.object({
  delimiter: character,
  /** Empty: no quoting. */
  quote: z.union([z.literal(''), character]),
  /** The quote itself, or the character before a quote that is part of a value. */
  escape: z.union([z.literal(''), character]),
  header: z.boolean(),
  /** Lines before the header or the first record. */
  skip: z.number().int().min(0),
  /** The text that means NULL when it is not quoted, besides the empty field. */
  nullString: z.string(),
  /** `mixed`: lines end in different ways. */
  lineEnd: z.enum(['lf', 'crlf', 'cr', 'mixed']),
})
export type CsvDialect = z.infer<typeof csvDialectSchema>

/** The settings of a table's files that the administrator has fixed; the others are derived from the files. */
export interface DeclaredText {
  readonly delimiter?: string | undefined
  readonly quote?: string | undefined
  readonly escape?: string | undefined
  readonly header?: boolean | undefined
  readonly skip?: number | undefined
  readonly nullString?: string | undefined
  /** Names of the columns, for files without header. */
  readonly names?: readonly string[] | undefined
}

export const csvShapeSchema = z.object({
  dialect: csvDialectSchema,
  columns: z.array(
    z.object({
      name: z.string(),
      fits: z.number(),
      /** Whether the column has quoted fields without a character. */
      blanks: z.boolean(),
    }),
  ),
  /** Whether every line was examined. */
  complete: z.boolean(),
})
export type CsvShape = z.infer<typeof csvShapeSchema>

/** The common shape of JSON values. */
export interface JsonShape {
  readonly fits: number
  readonly fields?: readonly { readonly name: string; readonly shape: JsonShape }[] | undefined
  readonly element?: JsonShape | undefined
}
const jsonShapeSchema: z.ZodType<JsonShape> = z.lazy(() =>
  z.object({
    fits: z.number(),
    fields: z.array(z.object({ name: z.string(), shape: jsonShapeSchema })).optional(),
    element: jsonShapeSchema.optional(),
  }),
)

/** The arrangement of values in a JSON file, in DuckDB's words. */
export const jsonLayoutSchema = z.enum(['newline_delimited', 'array', 'unstructured'])
export type JsonLayout = z.infer<typeof jsonLayoutSchema>

export const jsonFileSchema = z.object({
  layout: jsonLayoutSchema,
  /** The common shape of the records; undefined for a file without records. */
  record: jsonShapeSchema.optional(),
  complete: z.boolean(),
})
export type JsonFile = z.infer<typeof jsonFileSchema>
