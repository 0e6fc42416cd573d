import { join } from 'node:path'
import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'
import type { StatisticsByColumn } from '../spi/column-statistics.ts'
import type {
  ConnectorContext,
  ConnectorSplit,
  ConnectorTable,
  TableHandle,
  TableSourceOptions,
  TablePoint,
  TableStatistics,
} from '../spi/connector.ts'
import { parquetStatistics } from '../spi/parquet-statistics.ts'
import { checkReadable } from '../spi/readable-path.ts'
import type { TableSource } from '../spi/table-source.ts'
import { namesOneOf } from './column-search.ts'
import { manifestTable, mayHaveColumn, olderTable, withPartitionKeys } from './described-tables.ts'
import type { FileFactsCache } from './file-facts.ts'
import type { LakeFolders, NamedObject } from './lake-folders.ts'
import { isOfFiles, lakeSplitSchema } from './lake-split.ts'
import { ADOPTED_ID, innerPathSchema, rowsOf, type TableContent } from './manifest.ts'
import { changed, manifestPaths, manifestSplits, manifestStatistics, storedColumns } from './manifest-table.ts'
import { partitionStatistics } from './partition-pruning.ts'
import { factsOf, foundSplits, snapshotId, tableColumns, type FoundFiles, type ReadPart } from './plain-table.ts'
import { filesToRewrite } from './removals.ts'
import { noVersion, type TableHistory, type TableVersion } from './table-history.ts'
import type { TableSettings } from './table-settings.ts'
import { lakeTableSource } from './table-source.ts'
import { readVersion, relativeFolder } from './version-chain.ts'
import { versionSource, versionTable, versionTableOf, versionTables } from './version-tables.ts'

/** The handle of a folder without manifest: `snapshot` names the state of its files. */
const plainHandleSchema = z.object({ schema: z.string(), table: z.string(), snapshot: z.string() })
/** The handle of a table with manifest. `id` tells apart tables that had the same name one after another. */
const versionHandleSchema = z.object({
  schema: z.string(),
  table: z.string(),
  version: z.number(),
  id: z.string(),
  /** Only the files that a rewrite of the table replaces. */
  rewrite: z.boolean().optional(),
  /** For `rewrite`: files below this size are small, bytes. */
  smallBytes: z.number().int().optional(),
  /** The folder of the manifest, relative to the location, if it may differ from the folder of the name. */
  folder: innerPathSchema.optional(),
  /** Reads rows that describe the versions, instead of the rows of the table. */
  history: z.enum(versionTables).optional(),
})
const handleSchema = z.union([plainHandleSchema, versionHandleSchema])
type PlainHandle = z.infer<typeof plainHandleSchema>
type VersionHandle = z.infer<typeof versionHandleSchema>

/**
 * The facts of larger sets of files are not kept with a handle for the time of a statement: they would take much
 * memory, and listing again is a small part of reading so many files.
 */
const MOST_REMEMBERED = 1000

export interface LakeTablesDeps {
  readonly catalog: string
  readonly location: string
  readonly folders: LakeFolders
  readonly cache: FileFactsCache
  readonly history: TableHistory
  readonly context: Pick<ConnectorContext, 'inspect' | 'duckdbType'>
  /** The settings of tables, by `schema.table`. */
  readonly settings: ReadonlyMap<string, TableSettings>
}

/** The tables of a lake, as statements read them. A public method does what the method of `Connector` with its name does. */
export class LakeTables {
  readonly #deps: LakeTablesDeps
  /**
   * The files from which a handle of this process was made. Splits are made from the same files; the worker checks each
   * file.
   */
  readonly #foundFor = new WeakMap<object, FoundFiles>()

  constructor(deps: LakeTablesDeps) {
    this.#deps = deps
  }

  async getTable(schema: string, table: string, at?: TablePoint): Promise<ConnectorTable | undefined> {
    const { folders } = this.#deps
    const object = await folders.find(schema, table)
    if (object)
      return at === undefined ? this.#tableOf(schema, table, object) : this.#versionOf(schema, table, object, at)
    const asked = versionTableOf(table)
    const about = asked && (await folders.find(schema, asked.of))
    if (!asked || about?.kind !== 'TABLE') return undefined
    if (at !== undefined) throw new EngineError('NOT_SUPPORTED', 'This connector does not support versioned tables')
    return versionTable(asked.kind, (await this.#tableOf(schema, asked.of, about))!)
  }

  async describeTables(
    schema: string,
    named: (table: string) => boolean,
    take: (table: ConnectorTable) => void,
    columns?: readonly string[],
  ): Promise<void> {
    const names = columns && new Set(columns)
    const takeObject = async (table: string, object: NamedObject): Promise<void> => {
      if (names && !mayHaveColumn(object, names)) return
      const described = await this.#tableOf(schema, table, object).catch(() => undefined)
      if (described) take(described)
    }
    await this.#deps.folders.each(schema, named, takeObject, columns && namesOneOf(columns))
  }

  async getStatistics(handle: TableHandle): Promise<TableStatistics> {
    const parsed = handleSchema.parse(handle)
    if ('version' in parsed) {
      if (parsed.history) return {}
      const content = await this.#contentOf(parsed)
      if (!content.adopted) return manifestStatistics(content)
    }
    const splits = await this.listSplits(handle, {})
    const rows = splits.every((split) => split.rows !== undefined)
      ? { rows: splits.reduce((sum, split) => sum + split.rows!, 0) }
      : {}
    return { ...rows, bytes: splits.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0) }
  }

  async getColumnStatistics(handle: TableHandle): Promise<StatisticsByColumn> {
    const { location, context } = this.#deps
    const parsed = handleSchema.parse(handle)
    const { rows } = await this.getStatistics(handle)
    if (rows === undefined) return {}
    if ('version' in parsed) {
      const content = await this.#contentOf(parsed)
      const paths = manifestPaths(location, content)
      const known = await parquetStatistics(context.inspect, paths, rows, storedColumns(content))
      return isExact(content) ? known : boundsOnly(known)
    }
    const found = await this.#filesAt(parsed)
    const paths = found.files.map(({ file }) => join(location, file))
    const own = await parquetStatistics(context.inspect, paths, rows, found.columns)
    const rowsOfFiles = found.facts.map(({ rowGroups }) => rowGroups.reduce((sum, group) => sum + group.rows, 0))
    return { ...own, ...partitionStatistics(found.partitioning, rowsOfFiles) }
  }

  async listSplits(handle: TableHandle, read: ReadPart): Promise<readonly ConnectorSplit[]> {
    const { catalog, location, cache, context } = this.#deps
    const parsed = handleSchema.parse(handle)
    if (!('version' in parsed)) {
      return foundSplits(catalog, this.#foundFor.get(handle) ?? (await this.#filesAt(parsed)), read, context.duckdbType)
    }
    if (parsed.history) {
      const folder = relativeFolder({ location, folder: (await this.#folderOf(parsed)) ?? location })
      return [{ catalog, data: { history: parsed.history, folder, version: parsed.version } }]
    }
    const content = await this.#contentOf(parsed)
    const version = { catalog, settings: this.#settingsOf(parsed), location, content }
    const files = parsed.rewrite ? filesToRewrite(content, content.files.length, parsed.smallBytes) : undefined
    return manifestSplits(version, cache, read, context.duckdbType, files)
  }

  async tableSource(
    splits: readonly ConnectorSplit[],
    columns: readonly string[],
    options?: TableSourceOptions,
  ): Promise<TableSource> {
    const { location, history } = this.#deps
    const parsed = splits.map(({ data }) => lakeSplitSchema.parse(data))
    const [about] = parsed.filter((split) => 'history' in split)
    if (!about) return lakeTableSource(location, parsed.filter(isOfFiles), columns, options)
    const folder = join(location, about.folder)
    const manifest = await readVersion({ location, folder }, about.version)
    if (manifest?.content.kind !== 'table') throw changed()
    const version = { folder, manifest: { ...manifest, content: manifest.content } }
    return versionSource(about.history, history, version, columns)
  }

  #settingsOf({ schema, table }: PlainHandle | VersionHandle): TableSettings | undefined {
    return this.#deps.settings.get(`${schema}.${table}`)
  }

  async #folderOf({ schema, table, folder }: VersionHandle): Promise<string | undefined> {
    const { location, folders } = this.#deps
    if (folder !== undefined) return join(location, folder)
    const parent = await folders.schemaFolder(schema)
    return parent && folders.objectFolder(parent, table)
  }

  /** The version that a handle names, even if there are later versions or the table was dropped since. */
  async #contentOf(handle: VersionHandle): Promise<TableContent> {
    const folder = await this.#folderOf(handle)
    const manifest = folder && (await readVersion({ location: this.#deps.location, folder }, handle.version))
    const content = manifest ? rowsOf(manifest.content) : undefined
    if (folder === undefined || content?.id !== handle.id) throw changed()
    checkReadable(folder, `Table '${handle.schema}.${handle.table}'`)
    return content
  }

  /** The files of a folder without manifest, if they are still those of the handle. */
  async #filesAt({ schema, table, snapshot }: PlainHandle): Promise<FoundFiles> {
    const { folders, cache } = this.#deps
    const object = await folders.find(schema, table)
    const listed =
      object && (object.kind === 'PLAIN' ? object.listed : await folders.dataFiles(schema, table, object.folder))
    const found = listed && (await factsOf(listed, cache))
    if (!found || snapshotId(found) !== snapshot) throw changed()
    return found
  }

  async #tableOf(schema: string, table: string, object: NamedObject): Promise<ConnectorTable | undefined> {
    if (object.kind !== 'PLAIN') return manifestTable(schema, table, object.manifest)
    const found = await factsOf(object.listed, this.#deps.cache)
    const snapshot = snapshotId(found)
    const handle = { schema, table, snapshot }
    if (found.files.length <= MOST_REMEMBERED) this.#foundFor.set(handle, found)
    return {
      schema,
      table,
      kind: 'TABLE',
      handle,
      id: ADOPTED_ID,
      snapshot,
      ...withPartitionKeys(
        tableColumns(found).map((column) => ({ ...column, nullable: true })),
        found.partitioning.keys,
        this.#settingsOf(handle)?.properties,
      ),
    }
  }

  async #versionOf(
    schema: string,
    table: string,
    object: NamedObject,
    at: TablePoint,
  ): Promise<ConnectorTable | undefined> {
    const { location, history } = this.#deps
    const current = tableVersionOf(object)
    if (!current) throw noVersion(at, `${schema}.${table}`)
    const { folder, manifest } = await history.versionAt(current, at, `${schema}.${table}`)
    const version = { manifest, folder: relativeFolder({ location, folder }) }
    return olderTable(schema, table, version, current.manifest.content)
  }
}

/** The current version of a table; undefined for a view, and for files without manifest, which have no versions. */
function tableVersionOf(object: NamedObject): TableVersion | undefined {
  if (object.kind === 'PLAIN' || object.manifest.content.kind !== 'table') return undefined
  return { folder: object.folder, manifest: { ...object.manifest, content: object.manifest.content } }
}

/** Whether the files have exactly the rows of the table. */
function isExact({ files, removals }: TableContent): boolean {
  return removals.length === 0 && files.every(({ live }) => live === undefined)
}

/** Bounds stay valid when rows are removed; numbers of NULLs and of different values do not. */
function boundsOnly(columns: StatisticsByColumn): StatisticsByColumn {
  return Object.fromEntries(
    Object.entries(columns).map(([name, { nulls: _nulls, distinct: _distinct, ...rest }]) => [name, rest]),
  )
}
