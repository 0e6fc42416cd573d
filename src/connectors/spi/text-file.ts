import { z } from 'zod'

/**
 * What texts of CSV and JSON can be read as without a change: a bit for each type. The types of a column are those that
 * all its values have in common.
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
  /** What no value has said anything about. */
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

/** DuckDB's type of a scalar for values that have these bits; undefined where only JSON has them all, or none is known. */
export function scalarType(mask: number): string | undefined {
  if (mask === fits.anything) return undefined
  return SCALARS.find(([bit]) => (mask & bit) !== 0)?.[1]
}

/** The bit of a type that `scalarType` gives; undefined for other types. */
export function scalarBit(duckdbType: string): number | undefined {
  return SCALARS.find(([, type]) => type === duckdbType)?.[0]
}

const character = z.string().regex(/^[\x01-\x7f]$/, 'one ASCII character')

/** How the lines of a CSV file become fields. */
export const csvDialectSchema = z.object({
  delimiter: character,
  /** Empty: no character quotes. */
  quote: z.union([z.literal(''), character]),
  /** The quote itself, or what stands before a quote that is part of a value. */
  escape: z.union([z.literal(''), character]),
  header: z.boolean(),
  /** Lines before the header or the first record. */
  skip: z.number().int().min(0),
  /** Besides the empty field, what stands for NULL where it is not quoted. */
  nullString: z.string(),
  /** `mixed`: lines end in different ways. */
  lineEnd: z.enum(['lf', 'crlf', 'cr', 'mixed']),
})
export type CsvDialect = z.infer<typeof csvDialectSchema>

/** What the administrator has fixed of a table's files; the rest is found out. */
export interface DeclaredText {
  readonly delimiter?: string | undefined
  readonly quote?: string | undefined
  readonly escape?: string | undefined
  readonly header?: boolean | undefined
  readonly skip?: number | undefined
  readonly nullString?: string | undefined
  /** Of the columns, where the files have no header. */
  readonly names?: readonly string[] | undefined
}

export const csvShapeSchema = z.object({
  dialect: csvDialectSchema,
  columns: z.array(
    z.object({
      name: z.string(),
      fits: z.number(),
      /** Quoted fields without a character are among its values. */
      blanks: z.boolean(),
    }),
  ),
  /** Was every line looked at? */
  complete: z.boolean(),
})
export type CsvShape = z.infer<typeof csvShapeSchema>

/** What values of JSON have in common. */
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

/** How values follow each other in a file of JSON, by DuckDB's names. */
export const jsonLayoutSchema = z.enum(['newline_delimited', 'array', 'unstructured'])
export type JsonLayout = z.infer<typeof jsonLayoutSchema>

export const jsonFileSchema = z.object({
  layout: jsonLayoutSchema,
  /** What the records have in common; undefined for a file without records. */
  record: jsonShapeSchema.optional(),
  complete: z.boolean(),
})
export type JsonFile = z.infer<typeof jsonFileSchema>
