import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerOfFile } from './server-of-file.ts'

/** Writes the catalogs of a server. @returns its variables */
export function catalogsOf(
  { folder }: ServerOfFile,
  catalogs: Readonly<Record<string, object>>,
): Record<string, string> {
  const path = join(folder, 'catalogs')
  mkdirSync(path, { recursive: true })
  for (const [name, catalog] of Object.entries(catalogs))
    writeFileSync(join(path, `${name}.json`), JSON.stringify(catalog), { mode: 0o644 })
  return { QUIPU_CATALOG_DIR: path }
}
