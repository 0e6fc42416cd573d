/** A DuckDB string literal; NUL cannot be written in one and never is part of a path or name. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** A DuckDB identifier, quoted. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
