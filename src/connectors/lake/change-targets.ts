import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { EngineError } from '../../shared/engine-error.ts'
import { checkReadable } from '../spi/readable-path.ts'
import { changeColumns, type AnalyzedTable, type TableChange, type WriteTarget } from '../spi/table-writer.ts'
import { DATA_FOLDER } from './attempts.ts'
import { checkRetention } from './expired-versions.ts'
import type { FileFactsCache } from './file-facts.ts'
import type { LakeFolders, NamedObject } from './lake-folders.ts'
import { alterColumns } from './alter-columns.ts'
import { tableOfFolder } from './folder-names.ts'
import { ADOPTED_ID, type TableColumn, type TableContent } from './manifest.ts'
import { adoptedContent } from './manifest-table.ts'
import { hidesRowIds, newColumns, takesFiles } from './table-columns.ts'
import { factsOf, tableColumns } from './plain-table.ts'
import { checkWritable } from './refusals.ts'
import { MANIFEST_FOLDER, readNewest, readVersion } from './version-chain.ts'

const WEEK_MS = 7 * 24 * 3_600_000

export interface ChangeTargetsDeps {
  readonly catalog: string
  readonly location: string
  readonly folders: LakeFolders
  readonly cache: FileFactsCache
  /** The shortest retention that EXECUTE expire_snapshots takes, milliseconds. @default a week, as Trino's */
  readonly leastRetentionMillis?: number | undefined
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

  /**
   * @param begun what `begin` answered; absent in `begin`
   * @throws EngineError when the object does not exist, or exists already; TRANSACTION_CONFLICT when it no longer takes
   *   the rows of `begun`
   */
  async resolve(change: TableChange, begun?: WriteTarget): Promise<ResolvedTarget> {
    if (!('table' in change)) return { resolved: await this.#resolveSchema(change) }
    // At the same time, so that the two calls share one listing of each folder.
    const [isSchema, object] = await Promise.all([
      this.#folders.isSchema(change.schema),
      this.#folders.find(change.schema, change.table),
    ])
    if (!isSchema) throw missingSchema(`${this.#deps.catalog}.${change.schema}`)
    const folder = object?.folder ?? (await this.#objectFolder(change))
    const newest = object && 'manifest' in object ? object.manifest.version : await this.#newestVersion(folder)
    if (change.kind === 'createTable' || writesRows(change))
      checkReadable(folder ?? '', `Table '${change.schema}.${change.table}'`)
    return { resolved: await this.#resolveObject(change, { object, newest }, begun), folder }
  }

  /** @param newest the newest version in the folder that has the name of the object; 0 without a version */
  async #resolveObject(
    change: Extract<TableChange, { table: string }>,
    { object, newest }: { readonly object: NamedObject | undefined; readonly newest: number },
    begun: WriteTarget | undefined,
  ): Promise<Resolved> {
    switch (change.kind) {
      case 'createTable':
        if (object && !(isTable(object) && change.replace)) throw this.#taken(change, object.kind)
        return { baseVersion: newest, columns: newColumns(change.columns, this.#deps.duckdbType).map(targetColumn) }
      case 'createView':
        if (object && !(object.kind === 'VIEW' && change.replace)) throw this.#taken(change, object.kind)
        return { baseVersion: newest, columns: [] }
      case 'createMaterializedView':
        if (object && !(object.kind === 'MATERIALIZED_VIEW' && change.replace)) throw this.#taken(change, object.kind)
        return { baseVersion: newest, columns: [] }
      case 'dropView':
        if (object?.kind !== 'VIEW') throw missingTable(this.nameOf(change))
        return { baseVersion: newest, columns: [] }
      case 'dropMaterializedView':
        if (object?.kind !== 'MATERIALIZED_VIEW') throw missingTable(this.nameOf(change))
        return { baseVersion: newest, ...tableId(object), columns: [] }
      case 'refreshMaterializedView':
        return this.#resolveRefresh(change, object, begun)
      case 'renameTable':
      case 'renameView':
      case 'renameMaterializedView':
        if (!object || changedKind(object) !== KINDS[change.kind]) throw missingTable(this.nameOf(change))
        await this.#checkNewName(change.to)
        return { baseVersion: newest, ...tableId(object), columns: [] }
      case 'comment': {
        if (!object || changedKind(object) !== change.object) throw missingTable(this.nameOf(change))
        const columns = await this.#columnsOf(object)
        if (change.column !== undefined && !columns.some(({ name }) => name === change.column))
          throw new EngineError('COLUMN_NOT_FOUND', `Column '${change.column}' does not exist`)
        return { baseVersion: newest, ...tableId(object), columns: [] }
      }
      default:
        if (!object || !isTable(object)) throw missingTable(this.nameOf(change))
        return this.#resolveTable(change, object, newest, begun)
    }
  }

  /**
   * @throws EngineError TRANSACTION_CONFLICT when the rows were analyzed for another table of that name, or for other
   *   columns of it. Versions and columns of a change of rows are compared in `resolve`.
   */
  checkAnalyzed(change: TableChange, { tableId: id, columns }: Resolved, analyzed: AnalyzedTable): void {
    const sameColumns = change.kind !== 'insert' || isDeepStrictEqual(shapeOf(columns), shapeOf(analyzed.columns))
    if (id !== analyzed.id || !sameColumns) throw changedMeanwhile(this.nameOf(change))
  }

  async #resolveSchema(change: Exclude<TableChange, { table: string }>): Promise<Resolved> {
    const there = await this.#folders.isSchema(change.schema)
    if (change.kind === 'createSchema' && there)
      throw exists('SCHEMA_ALREADY_EXISTS', `Schema '${this.nameOf(change)}'`)
    if (change.kind !== 'createSchema' && !there) throw missingSchema(this.nameOf(change))
    if (change.kind === 'renameSchema' && (await this.#folders.isSchema(change.to)))
      throw exists('SCHEMA_ALREADY_EXISTS', `Schema '${this.#deps.catalog}.${change.to}'`)
    if (change.kind === 'dropSchema' && !change.cascade && (await this.#folders.list(change.schema)).length > 0) {
      throw new EngineError('SCHEMA_NOT_EMPTY', `Cannot drop non-empty schema '${change.schema}'`)
    }
    const folder = await this.#folders.schemaFolder(change.schema)
    return { baseVersion: await this.#newestVersion(folder), columns: [] }
  }

  /** Resolves a change of a table that exists. @param newest the newest version of its folder; 0 without one */
  async #resolveTable(
    change: ChangeOfTable,
    object: NamedObject,
    newest: number,
    begun: WriteTarget | undefined,
  ): Promise<Resolved> {
    const content =
      'manifest' in object && object.manifest.content.kind === 'table' ? object.manifest.content : undefined
    const id = tableId(object)
    const schema = content && { fileSchema: content.fileSchema }
    switch (change.kind) {
      case 'insert': {
        // A folder without manifest gets its first one, with these columns, when the change is committed.
        const { columns, schemas, fileSchema } = content ?? (await this.#adopted(object))
        const fits = begun?.fileSchema === undefined || takesFiles({ columns, schemas }, begun.fileSchema)
        if (!fits) throw changedMeanwhile(this.nameOf(change))
        return { baseVersion: newest, ...id, columns: columns.map(targetColumn), fileSchema }
      }
      case 'dropTable':
      case 'truncateTable':
        return { baseVersion: newest, ...id, columns: [] }
      case 'alterColumns':
        // Also checks the alteration.
        alterColumns(content ?? (await this.#adopted(object)), change, this.#deps.duckdbType)
        return { baseVersion: newest, ...id, columns: [] }
      case 'expireVersions':
        checkRetention(change, this.#deps.leastRetentionMillis ?? WEEK_MS)
        // The first manifest of a table fixes the list of its files, so this change must not write it.
        if (!content) throw new EngineError('NOT_SUPPORTED', `Table '${this.nameOf(change)}' has no versions: Quipu has not changed it`) // prettier-ignore
        return { baseVersion: newest, ...id, columns: [] }
      case 'changeRows':
      case 'rewriteTable': {
        if (!content || content.adopted) throw notOwnFiles(this.nameOf(change))
        const version = begun?.baseVersion ?? change.version ?? newest
        if (content.changedAt > version) throw changedMeanwhile(this.nameOf(change))
        const columns = await this.#columnsOf(object)
        if (change.kind === 'rewriteTable') {
          return { baseVersion: version, ...id, columns, ...schema, baseFiles: await this.#countFiles(object, version) }
        }
        if (hidesRowIds(content) || columns.some(({ name }) => name === '$file' || name === '$row')) {
          const message = `Rows of table '${this.nameOf(change)}' cannot be changed: a column has a name that the engine needs; create the table anew`
          throw new EngineError('NOT_SUPPORTED', message)
        }
        return { baseVersion: version, ...id, columns: [...changeColumns, ...columns], ...schema }
      }
    }
  }

  /** The rows of a refresh must not replace newer rows. */
  #resolveRefresh(
    change: Extract<TableChange, { kind: 'refreshMaterializedView' }>,
    object: NamedObject | undefined,
    begun: WriteTarget | undefined,
  ): Resolved {
    if (object?.kind !== 'MATERIALIZED_VIEW' || object.manifest.content.kind !== 'materializedView')
      throw missingTable(this.nameOf(change))
    const { version, content } = object.manifest
    const storedAt = content.stored?.table.changedAt ?? 0
    const isOlder = begun ? storedAt > begun.baseVersion : version !== change.version
    if (isOlder) throw changedMeanwhile(this.nameOf(change))
    const columns = newColumns(content.definition.columns, this.#deps.duckdbType).map(targetColumn)
    return { baseVersion: version, tableId: content.id, columns }
  }

  /** The number of files of a version of a table. */
  async #countFiles({ folder }: NamedObject, version: number): Promise<number> {
    const manifest = await readVersion({ location: this.#deps.location, folder }, version)
    if (manifest?.content.kind !== 'table') throw changedMeanwhile(tableOfFolder(folder))
    return manifest.content.files.length
  }

  async #adopted(object: NamedObject): Promise<TableContent> {
    if (object.kind !== 'PLAIN') throw new Error('the table has a manifest')
    return adoptedContent(await factsOf(object.listed, this.#deps.cache), this.#deps.duckdbType)
  }

  async #checkNewName(to: { readonly schema: string; readonly table: string }): Promise<void> {
    if (!(await this.#folders.isSchema(to.schema))) throw missingSchema(`${this.#deps.catalog}.${to.schema}`)
    const object = await this.#folders.find(to.schema, to.table)
    if (object) throw this.#taken(to, object.kind)
  }

  #taken(
    { schema, table }: { readonly schema: string; readonly table: string },
    kind: NamedObject['kind'],
  ): EngineError {
    return exists('TABLE_ALREADY_EXISTS', `${SHOWN[kind]} '${this.#deps.catalog}.${schema}.${table}'`)
  }

  /** The newest version of a folder, even if its object was dropped; 0 without one. */
  async #newestVersion(folder: string | undefined): Promise<number> {
    return folder === undefined ? 0 : ((await readNewest({ location: this.#deps.location, folder }))?.version ?? 0)
  }

  async #objectFolder({ schema, table }: { schema: string; table: string }): Promise<string | undefined> {
    const parent = await this.#folders.schemaFolder(schema)
    return parent && this.#folders.objectFolder(parent, table)
  }

  /**
   * Refuses a change that the operating system would refuse, because a decided change has to be carried out.
   * @param known the folder of the name, as far as `resolve` found it
   */
  async checkFolders(change: { readonly schema: string; readonly table?: string }, known?: string): Promise<void> {
    const folder = known ?? (await this.#folderOf(change))
    await Promise.all(
      [MANIFEST_FOLDER, DATA_FOLDER].map((part) => checkWritable(this.#deps.catalog, join(folder, part))),
    )
  }

  async #folderOf({ schema, table }: { readonly schema: string; readonly table?: string }): Promise<string> {
    const parent = await this.#folders.newSchemaFolder(schema)
    return table === undefined ? parent : this.#folders.objectFolder(parent, table)
  }

  /**
   * Also refuses a change of a table without manifest whose files cannot be read: the change first makes a manifest for
   * them.
   */
  async checkObject(change: { readonly schema: string; readonly table: string }): Promise<void> {
    await this.checkFolders(change)
    const object = await this.#folders.find(change.schema, change.table)
    if (object?.kind === 'PLAIN') await factsOf(object.listed, this.#deps.cache)
  }

  async #columnsOf(object: NamedObject): Promise<WriteTarget['columns']> {
    if (object.kind === 'PLAIN') {
      const found = await factsOf(object.listed, this.#deps.cache)
      return tableColumns(found).map((column) => ({ ...column, nullable: true }))
    }
    const { content } = object.manifest
    if (content.kind === 'view' || content.kind === 'materializedView') return content.definition.columns
    return content.kind === 'table' ? content.columns.map(targetColumn) : []
  }
}

type Resolved = Omit<WriteTarget, 'catalog' | 'queryId' | 'change'>

interface ResolvedTarget {
  readonly resolved: Resolved
  /** The folder of the changed object, absolute, if the schema has it or will get it under that name. */
  readonly folder?: string | undefined
}

/** Changes of a table, not a view, that exists. */
type ChangeOfTable = Extract<
  TableChange,
  { kind: 'insert' | 'changeRows' | 'rewriteTable' | 'expireVersions' | 'alterColumns' | 'truncateTable' | 'dropTable' }
>

/** Comments on columns stay in the table's manifest: the events of a write are kept forever. */
function targetColumn({ name, type, nullable, physical }: TableColumn): WriteTarget['columns'][number] {
  return { name, type, nullable, ...(physical !== name && { physical }) }
}

function shapeOf(columns: AnalyzedTable['columns']): AnalyzedTable['columns'] {
  return columns.map(({ name, type, nullable }) => ({ name, type, nullable }))
}

/** How messages name the kinds of objects. */
const SHOWN = { TABLE: 'Table', PLAIN: 'Table', VIEW: 'View', MATERIALIZED_VIEW: 'Materialized view' } as const

/** The objects that get another name. */
const KINDS = { renameTable: 'table', renameView: 'view', renameMaterializedView: 'materializedView' } as const

function isTable({ kind }: NamedObject): boolean {
  return kind === 'TABLE' || kind === 'PLAIN'
}

function changedKind(object: NamedObject): 'table' | 'view' | 'materializedView' {
  if (isTable(object)) return 'table'
  return object.kind === 'VIEW' ? 'view' : 'materializedView'
}

function writesRows({ kind }: TableChange): boolean {
  return kind === 'refreshMaterializedView' || kind === 'insert' || kind === 'changeRows' || kind === 'rewriteTable'
}

/** Whether the change first makes a manifest for the files in a folder without one. */
export function mayAdopt(change: TableChange): boolean {
  switch (change.kind) {
    case 'createTable':
      return change.replace
    case 'insert':
    case 'dropTable':
    case 'renameTable':
    case 'renameSchema':
    case 'comment':
    case 'truncateTable':
      return true
    default:
      return false
  }
}

function tableId(object: NamedObject): { readonly tableId?: string } {
  if (object.kind === 'PLAIN') return { tableId: ADOPTED_ID }
  const { content } = object.manifest
  return content.kind === 'table' || content.kind === 'materializedView' ? { tableId: content.id } : {}
}

function notOwnFiles(table: string): EngineError {
  const message = `Rows of table '${table}' cannot be changed: it has files that Quipu did not write; create it anew with CREATE OR REPLACE TABLE … AS SELECT`
  return new EngineError('NOT_SUPPORTED', message)
}

function changedMeanwhile(table: string): EngineError {
  const message = `Rows or columns of table '${table}' were changed while the query ran; run it again`
  return new EngineError('TRANSACTION_CONFLICT', message, { retry: 'anew' })
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
