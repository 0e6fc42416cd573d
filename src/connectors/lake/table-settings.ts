import { z } from 'zod'
import type { DeclaredText } from '../spi/text-file.ts'
import { fileFormats, type FileFormat } from './file-format.ts'
import type { DeclaredTypes } from './text-facts.ts'

/** The settings of a table that the catalog file fixes; the others are derived from the files. */
export interface TableSettings {
  readonly format?: FileFormat | undefined
  readonly text: DeclaredText
  readonly types: DeclaredTypes
  /** A text that differs for different settings. */
  readonly key: string
  /** The fixed settings besides types, as SHOW CREATE TABLE shows them. */
  readonly properties: Readonly<Record<string, string | number | boolean>>
}

export const NOTHING_DECLARED: TableSettings = { text: {}, types: new Map(), key: '', properties: {} }

const character = z.string().regex(/^[\x01-\x7f]$/, 'must be one ASCII character')

/** DuckDB's types for columns in files, by Trino's types. */
const SCALARS: Readonly<Record<string, string>> = {
  boolean: 'BOOLEAN',
  tinyint: 'TINYINT',
  smallint: 'SMALLINT',
  integer: 'INTEGER',
  bigint: 'BIGINT',
  real: 'FLOAT',
  double: 'DOUBLE',
  varchar: 'VARCHAR',
  date: 'DATE',
  uuid: 'UUID',
  json: 'JSON',
  time: 'TIME',
  'time(6)': 'TIME',
  'timestamp(0)': 'TIMESTAMP_S',
  timestamp: 'TIMESTAMP_MS',
  'timestamp(3)': 'TIMESTAMP_MS',
  'timestamp(6)': 'TIMESTAMP',
  'timestamp(9)': 'TIMESTAMP_NS',
  'timestamp(6) with time zone': 'TIMESTAMP WITH TIME ZONE',
}

const typeSchema = z.string().transform((text, context) => {
  const type = text.trim().toLowerCase().replaceAll(/\s+/g, ' ')
  const decimal = /^decimal ?\( ?(\d+) ?(?:, ?(\d+) ?)?\)$/.exec(type)
  const [precision, scale] = [Number(decimal?.[1]), Number(decimal?.[2] ?? 0)]
  if (decimal && precision >= 1 && precision <= 38 && scale <= precision) return `DECIMAL(${precision},${scale})`
  const known = SCALARS[type]
  if (known !== undefined) return known
  context.addIssue(
    `'${text}' is not a type of a column in a file; types are ${Object.keys(SCALARS).join(', ')}, decimal(p, s)`,
  )
  return z.NEVER
})

const tableSchema = z.strictObject({
  format: z.enum(fileFormats).optional(),
  delimiter: character.optional(),
  quote: z.union([z.literal(''), character]).optional(),
  escape: character.optional(),
  header: z.boolean().optional(),
  skip: z.number().int().min(0).optional(),
  nullString: z.string().min(1).optional(),
  columns: z.record(z.string(), typeSchema).optional(),
})

/** Settings by `schema.table`, lower case. */
export const tableSettingsSchema = z
  .record(z.string().regex(/^[^.]+\..+$/, 'must be schema.table'), tableSchema)
  .transform((tables): ReadonlyMap<string, TableSettings> => {
    return new Map(
      Object.entries(tables).map(([name, { format, columns = {}, ...text }]) => {
        const names = Object.keys(columns)
        const settings: TableSettings = {
          format,
          text: text.header === false && names.length > 0 ? { ...text, names } : text,
          types: new Map(Object.entries(columns).map(([column, type]) => [column.toLowerCase(), type])),
          key: JSON.stringify([text, text.header === false ? names : []]),
          properties: propertiesOf({ format, ...text }),
        }
        return [name.toLowerCase(), settings]
      }),
    )
  })

/**
 * Settings without the columns of these names (lower case): they are not in the files, but in the names of their
 * folders.
 */
export function settingsWithout(settings: TableSettings, names: ReadonlySet<string>): TableSettings {
  if (![...settings.types.keys()].some((name) => names.has(name))) return settings
  const kept = settings.text.names?.filter((name) => !names.has(name.toLowerCase()))
  return {
    ...settings,
    text: { ...settings.text, names: kept && kept.length > 0 ? kept : undefined },
    types: new Map([...settings.types].filter(([name]) => !names.has(name))),
    key: JSON.stringify([settings.key, ...names]),
  }
}

/** Settings under the names that Trino's table properties have. */
function propertiesOf(settings: Readonly<Record<string, unknown>>): TableSettings['properties'] {
  return Object.fromEntries(
    Object.entries(settings).flatMap(([name, value]) =>
      typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
        ? [[name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value] as const]
        : [],
    ),
  )
}
