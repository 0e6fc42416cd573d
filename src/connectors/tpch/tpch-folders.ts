import { readdirSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { checkReadable } from '../spi/readable-path.ts'
import { readManifest, type TpchManifest } from './manifest.ts'
import { tpchTables } from './tables.ts'

const SCHEMA_NAME = /^(tiny|sf[1-9]\d*)$/
/** Trino's own schemas: they can be described even if their data was not made. */
const STANDARD_SCHEMAS = ['sf1', 'sf100', 'sf300', 'sf1000', 'sf3000', 'sf10000', 'sf30000', 'sf100000']
/** Nations and regions do not depend on the scale (TPC-H 4.2.5): every schema has them. */
const FIXED_TABLES: ReadonlySet<string> = new Set(['nation', 'region'])

export interface SchemaFolder {
  readonly folder: string
  readonly manifest: TpchManifest
}

/** The schemas, and the folders of the schemas whose data was made. */
export class TpchFolders {
  readonly schemas: ReadonlySet<string>
  readonly #catalog: string
  readonly #made: ReadonlyMap<string, SchemaFolder>

  /** @param roots folders of schemas; for each name the first root that has it is used */
  constructor(catalog: string, roots: readonly string[]) {
    this.#catalog = catalog
    this.#made = findSchemas(roots)
    this.schemas = new Set([...this.#made.keys(), ...STANDARD_SCHEMAS])
  }

  hasTable(schema: string, table: string): boolean {
    return this.schemas.has(schema) && Object.hasOwn(tpchTables, table)
  }

  /** The folder with the files of a table; undefined when the data of its scale was not made. */
  madeFolderOf(schema: string, table: string): SchemaFolder | undefined {
    if (!this.hasTable(schema, table)) {
      throw new EngineError('TABLE_NOT_FOUND', `Table '${this.#catalog}.${schema}.${table}' does not exist`)
    }
    return this.#made.get(schema) ?? (FIXED_TABLES.has(table) ? this.#made.get('tiny') : undefined)
  }

  /** @throws EngineError NOT_SUPPORTED when the data was not made, or its path cannot be read */
  folderOf(schema: string, table: string): SchemaFolder {
    const found = this.madeFolderOf(schema, table)
    if (!found) {
      throw new EngineError(
        'NOT_SUPPORTED',
        `The data of '${this.#catalog}.${schema}' was not made here: make it with etc/tpch/make-tiny.sh and name its folder as "location" of the catalog`,
      )
    }
    checkReadable(found.folder, `Table '${schema}.${table}'`)
    return found
  }
}

/**
 * Checks a file synchronously: these files are on a local disk, where a call to the thread pool costs ten times as
 * much.
 * @throws EngineError GENERIC_INTERNAL_ERROR when the file differs from the manifest
 */
export function checkFile(path: string, size: number): void {
  if (sizeOf(path) !== size) {
    throw new EngineError('GENERIC_INTERNAL_ERROR', 'A file of the tpch catalog is missing or was changed')
  }
}

function sizeOf(path: string): number | undefined {
  try {
    return statSync(path).size
  } catch {
    return undefined
  }
}

function findSchemas(roots: readonly string[]): ReadonlyMap<string, SchemaFolder> {
  const found = new Map<string, SchemaFolder>()
  for (const root of roots) {
    if (!statSync(root, { throwIfNoEntry: false })) continue
    for (const name of readdirSync(root)) {
      if (!SCHEMA_NAME.test(name) || found.has(name)) continue
      const folder = join(realpathSync(root), name)
      const manifest = readManifest(folder)
      if (manifest) found.set(name, { folder, manifest })
    }
  }
  // tiny first, then by scale, as users expect.
  return new Map([...found].sort(([, a], [, b]) => a.manifest.scale - b.manifest.scale))
}
