import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../src/config/load-config.ts'
import { fromText } from '../../src/config/setting.ts'
import { settingList, type Setting } from '../../src/config/setting-list.ts'
import type { sections } from '../../src/config/schema.ts'

type SectionName = keyof typeof sections

/** The key of every setting in the file, without its section. */
export type SettingName = Exclude<keyof Config, SectionName> | { [S in SectionName]: keyof Config[S] }[SectionName]

/** The texts of settings in flags and variables. */
export type SettingTexts = Readonly<Partial<Record<SettingName, string>>>

export function settingOf(name: string): Setting {
  const found = settingList.find((setting) => setting.path.at(-1) === name)
  if (!found) throw new Error(`There is no setting ${name}`)
  return found
}

/** The three sources of a setting. */
export const settingSources = ['flags', 'variables', 'file'] as const
export type SettingSource = (typeof settingSources)[number]

/** The arguments and variables that give a program these settings. */
export function given(
  source: SettingSource,
  texts: SettingTexts,
  folder: string,
): { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> } {
  const all = Object.entries(texts).map(([name, text]) => ({ ...settingOf(name), text }))
  switch (source) {
    case 'flags':
      return {
        args: all.flatMap(({ flag, kind, text }) =>
          kind === 'flag' ? [text === 'true' ? `--${flag}` : `--no-${flag}`] : [`--${flag}`, text],
        ),
        env: {},
      }
    case 'variables':
      return { args: [], env: Object.fromEntries(all.map(({ env, text }) => [env, text])) }
    case 'file': {
      const tree: Record<string, Record<string, unknown>> = { top: {} }
      for (const { path, kind, text } of all) {
        const section = path.length === 1 ? 'top' : path[0]!
        ;(tree[section] ??= {})[path.at(-1)!] = fromText(kind, text)
      }
      const { top, ...sectionsGiven } = tree
      const file = join(folder, `settings-${counter++}.json`)
      writeFileSync(file, JSON.stringify({ ...top, ...sectionsGiven }), { mode: 0o644 })
      return { args: ['--config', file], env: {} }
    }
  }
}

let counter = 0
