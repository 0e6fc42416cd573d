import { configSchema, sections } from './schema.ts'
import { settings, type SettingKind } from './setting.ts'

/** One setting with all its names. */
export interface Setting {
  /** Path in the configuration and in the file: `['limits', 'joins']`. */
  readonly path: readonly string[]
  /** The flag without the dashes: `joins`. */
  readonly flag: string
  readonly env: string
  readonly kind: SettingKind
  readonly doc: string
  readonly secret: boolean
  /** The default as the documentation writes it; empty if there is none. */
  readonly shownDefault: string
}

/** All settings, in the order of the schema. */
export const settingList: readonly Setting[] = [
  ...settingsOf([], configSchema.shape),
  ...Object.entries(sections).flatMap(([name, section]) => settingsOf([name], section.shape)),
]

function settingsOf(parent: readonly string[], shape: Readonly<Record<string, SettingSchema>>): Setting[] {
  return Object.entries(shape).flatMap(([key, schema]) => {
    const meta = settings.get(schema as never)
    if (!meta) return []
    return [
      {
        path: [...parent, key],
        flag: words(key).join('-').toLowerCase(),
        env: meta.env ?? `QUIPU_${words(key).join('_').toUpperCase()}`,
        kind: meta.kind,
        doc: meta.doc,
        secret: meta.secret ?? false,
        shownDefault: meta.shownDefault ?? defaultOf(schema),
      },
    ]
  })
}

interface SettingSchema {
  safeParse(value: unknown): { success: boolean; data?: unknown }
}

function defaultOf(schema: SettingSchema): string {
  const { data } = schema.safeParse(undefined)
  return data === undefined || (Array.isArray(data) && data.length === 0) ? '' : String(data)
}

/** The words of a key: `otlpEndpoint` → `otlp`, `Endpoint`. */
function words(key: string): string[] {
  return key.split(/(?=[A-Z])/)
}
