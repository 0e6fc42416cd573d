/**
 * Number of rows whose widths are measured. Later rows use the same widths, so that a long answer need not be kept in
 * memory.
 */
export const ROWS_MEASURED = 1_000

export interface PrintedColumn {
  readonly name: string
  readonly type: string
}

/** Formats rows in aligned columns: numbers to the right, all others to the left. */
export interface TableFormat {
  header(): string
  row(values: readonly unknown[]): string
}

const NUMBER = /^(tinyint|smallint|integer|bigint|real|double|decimal)/

/** Makes a format. The widths of columns are those of the names and of the first rows. */
export function tableFormat(
  columns: readonly PrintedColumn[],
  firstRows: readonly (readonly unknown[])[],
): TableFormat {
  const widths = columns.map((column, i) =>
    Math.max(widthOf(column.name), ...firstRows.map((row) => widthOf(valueText(row[i])))),
  )
  const pad = (text: string, i: number) => {
    const space = ' '.repeat(Math.max(0, widths[i]! - widthOf(text)))
    return NUMBER.test(columns[i]!.type) ? space + text : text + space
  }
  const line = (texts: readonly string[]) => texts.map(pad).join(' | ').trimEnd()
  return {
    header: () => `${line(columns.map((one) => one.name))}\n${widths.map((width) => '-'.repeat(width)).join('-+-')}`,
    row: (values) => line(columns.map((_, i) => valueText(values[i]))),
  }
}

/** A value in readable form: NULL, text without quotes, nested values as JSON. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  // Control characters would break the table, and could control the terminal.
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (char) =>
    char === '\n' ? '\\n' : char === '\t' ? '\\t' : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Terminal cells: two for wide East Asian characters and emoji, none for combining marks. */
function widthOf(text: string): number {
  let width = 0
  for (const char of text) {
    if (/\p{M}/u.test(char)) continue
    width +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u.test(
        char,
      )
        ? 2
        : 1
  }
  return width
}
