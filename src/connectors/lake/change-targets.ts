import { join } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { checkReadable } from '../spi/readable-path.ts'
import type { StoredColumn, TableChange, WriteTarget } from '../spi/table-writer.ts'
import { DATA_FOLDER } from './attempts.ts'
import type { FileFactsCache } from './file-facts.ts'
import type { LakeFolders, NamedObject } from './lake-folders.ts'
import { ADOPTED_ID } from './manifest.ts'
import { factsOf, tableColumns } from './plain-table.ts'
import { checkWritable } from './refusals.ts'
import { MANIFEST_FOLDER, readNewest } from './version-chain.ts'

export interface ChangeTargetsDeps {
  readonly catalog: string
  readonly location: string
  readonly folders: LakeFolders
  readonly cache: FileFactsCache
  duckdbType(type: string): string
}

/** Resolves the target of a change, and checks before the decision whether the change may be made. */
export class ChangeTargets {
  readonly #deps: ChangeTargetsDeps
  readonly #folders: LakeFolders

  constructor(deps: ChangeTargetsDeps) {
    this.#deps = deps
    this.#folders = deps.folders
  }

  nameOf(change: TableChange): string {
    const { catalog } = this.#deps
    return 'table' in change ? `${catalog}.${change.schema}.${change.table}` : `${catalog}.${change.schema}`
  }

  /** @throws EngineError when the object does not exist, or exists already */
  async resolve(change: TableChange): Promise<Pick<WriteTarget, 'baseVersion' | 'tableId' | 'columns'>> {
    if (change.kind === 'createSchema' || change.kind === 'dropSchema') {
      const there = await this.#folders.isSchema(change.schema)
      if (change.kind === 'createSchema' && there)
        throw exists('SCHEMA_ALREADY_EXISTS', `Schema '${this.nameOf(change)}'`)
      if (change.kind === 'dropSchema' && !there) throw missingSchema(this.nameOf(change))
      if (change.kind === 'dropSchema' && !change.cascade && (await this.#folders.list(change.schema)).length > 0) {
        throw new EngineError('SCHEMA_NOT_EMPTY', `Cannot drop non-empty schema '${change.schema}'`)
      }
      const folder = await this.#folders.schemaFolder(change.schema)
      return { baseVersion: await this.#newestVersion(folder), columns: [] }
    }
    if (!(await this.#folders.isSchema(change.schema))) throw missingSchema(`${this.#deps.catalog}.${change.schema}`)
    const object = await this.#folders.find(change.schema, change.table)
    const baseVersion =
      object && 'manifest' in object
        ? object.manifest.version
        : await this.#newestVersion(await this.#objectFolder(change))
    if (change.kind === 'createTable' || change.kind === 'insert')
      checkReadable((await this.#objectFolder(change)) ?? '', `Table '${change.schema}.${change.table}'`)
    switch (change.kind) {
      case 'createTable':
        if (object?.kind === 'VIEW' || (object && !change.replace)) {
          throw exists('TABLE_ALREADY_EXISTS', `${object.kind === 'VIEW' ? 'View' : 'Table'} '${this.nameOf(change)}'`)
        }
        for (const { type } of change.columns) this.#deps.duckdbType(type)
        return { baseVersion, columns: change.columns }
      case 'insert':
      case 'dropTable':
        if (!object || object.kind === 'VIEW') throw missingTable(this.nameOf(change))
        return {
          baseVersion,
          ...tableId(object),
          columns: change.kind === 'insert' ? await this.#columnsOf(object) : [],
        }
      case 'createView':
        if (object && !(object.kind === 'VIEW' && change.replace)) {
          throw exists('TABLE_ALREADY_EXISTS', `${object.kind === 'VIEW' ? 'View' : 'Table'} '${this.nameOf(change)}'`)
        }
        return { baseVersion, columns: [] }
      case 'dropView':
        if (object?.kind !== 'VIEW') throw missingTable(this.nameOf(change))
        return { baseVersion, columns: [] }
    }
  }

  /** The newest version of a folder, even if its object was dropped; 0 without one. */
  async #newestVersion(folder: string | undefined): Promise<number> {
    return folder === undefined ? 0 : ((await readNewest(folder))?.version ?? 0)
  }

  async #objectFolder({ schema, table }: { schema: string; table: string }): Promise<string | undefined> {
    const parent = await this.#folders.schemaFolder(schema)
    return parent && this.#folders.objectFolder(parent, table)
  }

  /** Refuses a change that the operating system would refuse, because a decided change has to be carried out. */
  async checkPlace(change: { readonly schema: string; readonly table?: string }): Promise<void> {
    const { schema, table } = change
    const parent = await this.#folders.newSchemaFolder(schema)
    const folder = table === undefined ? parent : await this.#folders.objectFolder(parent, table)
    for (const part of [MANIFEST_FOLDER, DATA_FOLDER]) await checkWritable(this.#deps.catalog, join(folder, part))
  }

  /**
   * Also refuses a change of a table without manifest whose files cannot be read: the change first makes a manifest for
   * them.
   */
  async checkObject(change: { readonly schema: string; readonly table: string }): Promise<void> {
    await this.checkPlace(change)
    const object = await this.#folders.find(change.schema, change.table)
    if (object?.kind === 'PLAIN') await factsOf(object.listed, this.#deps.cache)
  }

  async #columnsOf(object: NamedObject): Promise<StoredColumn[]> {
    if (object.kind === 'PLAIN') {
      const found = await factsOf(object.listed, this.#deps.cache)
      return tableColumns(found).map((column) => ({ ...column, nullable: true }))
    }
    const { content } = object.manifest
    // Comments on columns stay in the table's manifest: the events of a write are kept forever.
    return content.kind === 'table' ? content.columns.map(({ name, type, nullable }) => ({ name, type, nullable })) : []
  }
}

/** Whether the change first makes a manifest for the files in a folder without one. */
export function mayAdopt(change: TableChange): boolean {
  return change.kind === 'insert' || change.kind === 'dropTable' || (change.kind === 'createTable' && change.replace)
}

function tableId(object: NamedObject): { readonly tableId?: string } {
  if (object.kind === 'PLAIN') return { tableId: ADOPTED_ID }
  return object.manifest.content.kind === 'table' ? { tableId: object.manifest.content.id } : {}
}

function exists(errorName: 'SCHEMA_ALREADY_EXISTS' | 'TABLE_ALREADY_EXISTS', what: string): EngineError {
  return new EngineError(errorName, `${what} already exists`)
}

function missingSchema(schema: string): EngineError {
  return new EngineError('SCHEMA_NOT_FOUND', `Schema '${schema}' does not exist`)
}

function missingTable(table: string): EngineError {
  return new EngineError('TABLE_NOT_FOUND', `Table '${table}' does not exist`)
}
