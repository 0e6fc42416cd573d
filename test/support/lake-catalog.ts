import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerOfFile } from './server-of-file.ts'

/** Settings for `serverOfFile`: the catalogs `memory`, `tpch` and `lake`. The lake has an empty schema `default`. */
export function withLake({ folder }: Pick<ServerOfFile, 'folder'>): Readonly<Record<string, string>> {
  const catalogs = join(folder, 'catalogs')
  const lake = join(folder, 'lake')
  mkdirSync(catalogs)
  mkdirSync(join(lake, 'default'), { recursive: true })
  // A server of root runs as another user.
  for (const path of [lake, join(lake, 'default')]) chmodSync(path, 0o777)
  chmodSync(folder, 0o711)
  writeFileSync(join(catalogs, 'memory.json'), '{ "connector": "memory" }')
  writeFileSync(join(catalogs, 'tpch.json'), '{ "connector": "tpch" }')
  writeFileSync(join(catalogs, 'lake.json'), JSON.stringify({ connector: 'lake', location: lake }))
  return { QUIPU_CATALOG_DIR: catalogs }
}
