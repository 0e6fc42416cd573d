/** A table or view by its full name, as the catalogs write it. */
export interface QualifiedTable {
  readonly catalog: string
  readonly schema: string
  readonly table: string
}

/**
 * Reads `catalog.schema.table`. A name with a dot or with upper-case letters is in double quotes; other names are
 * lowered.
 * @returns undefined if the text is no such name
 */
export function parseTableName(text: string): QualifiedTable | undefined {
  const parts = [...text.matchAll(/(?:^|(?!^)\.)(?:"((?:[^"]|"")*)"|([^".]+))/gy)]
  const names = parts.map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain!.toLowerCase())
  const length = parts.reduce((sum, [part]) => sum + part.length, 0)
  const [catalog, schema, table] = names
  if (names.length !== 3 || length !== text.length) return undefined
  if (catalog === undefined || schema === undefined || table === undefined) return undefined
  return { catalog, schema, table }
}
