import { settingList, type Setting } from './setting-list.ts'

/** All settings as a Markdown table, for `docs/configuration.md`. */
export function settingsMarkdown(): string {
  const rows = settingList.map((setting) =>
    [
      `\`--${setting.flag}\``,
      `\`${setting.env}\``,
      `\`${setting.path.join('.')}\``,
      setting.shownDefault === '' ? '' : `\`${setting.shownDefault}\``,
      setting.doc,
    ].join(' | '),
  )
  return [
    '| flag | variable | key in the file | default | meaning |',
    '|---|---|---|---|---|',
    ...rows.map((row) => `| ${row} |`),
  ].join('\n')
}

/** The settings of the first level, for `--help`. Time-outs and limits are only named. */
export function settingsHelp(): string {
  const [main, deeper] = [settingList.filter(isMain), settingList.filter((setting) => !isMain(setting))]
  const names = main.map((setting) => `  --${setting.flag}${setting.kind === 'flag' ? '' : ` <${setting.kind}>`}`)
  const width = Math.max(...names.map((name) => name.length)) + 2
  const lines = main.map((setting, i) => {
    const fallback = setting.shownDefault === '' || setting.kind === 'flag' ? '' : ` (${setting.shownDefault})`
    return `${names[i]!.padEnd(width)}${setting.doc}${fallback}; ${setting.env}`
  })
  return [
    ...lines,
    '',
    'Time-outs, limits, OpenTelemetry and publishing to other systems:',
    ...wrap(deeper.map((setting) => `--${setting.flag}`)),
  ].join('\n')
}

function isMain(setting: Setting): boolean {
  return setting.path.length === 1
}

function wrap(words: readonly string[]): string[] {
  const lines: string[] = []
  for (const word of words) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < 110) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(`  ${word}`)
  }
  return lines
}
