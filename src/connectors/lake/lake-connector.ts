import { mkdirSync, realpathSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'
import { durationMillis } from '../../shared/quantities.ts'
import type { StatisticsByColumn } from '../spi/column-statistics.ts'
import { parquetStatistics } from '../spi/parquet-statistics.ts'
import type { Connector, ConnectorContext, ConnectorFactory, ConnectorTable, TablePoint } from '../spi/connector.ts'
import { checkReadable } from '../spi/readable-path.ts'
import { createFileCheck } from './file-check.ts'
import { namesOneOf } from './column-search.ts'
import { createFileFactsCache } from './file-facts.ts'
import { manifestTable, mayHaveColumn, olderTable, withPartitionKeys } from './described-tables.ts'
import { versionSource, versionTable, versionTableOf, versionTables } from './version-tables.ts'
import { createLakeFolders, type NamedObject } from './lake-folders.ts'
import { isOfFiles, lakeSplitSchema } from './lake-split.ts'
import { createLakeWriter } from './lake-writer.ts'
import { ADOPTED_ID, innerPathSchema, rowsOf, type TableContent } from './manifest.ts'
import { changed, manifestPaths, manifestSplits, manifestStatistics, storedColumns } from './manifest-table.ts'
import { partitionStatistics } from './partition-pruning.ts'
import { factsOf, foundSplits, snapshotId, tableColumns, type FoundFiles } from './plain-table.ts'
import { withNamedRefusals } from './refusals.ts'
import { tableSettingsSchema, type TableSettings } from './table-settings.ts'
import { lakeTableSource } from './table-source.ts'
import { filesToRewrite } from './removals.ts'
import { noVersion, TableHistory, type TableVersion } from './table-history.ts'
import { readVersion, relativeFolder } from './version-chain.ts'

const HOUR_MS = 3_600_000
/** How long versions of tables are kept after the next version was made. */
const keepVersions = z
  .string()
  .default('1d')
  .transform((text) => durationMillis(text) ?? 0)
  .refine((millis) => millis >= HOUR_MS, 'must be a duration of at least one hour, such as 7d')

/** The shortest retention that EXECUTE expire_snapshots takes. */
const expireSnapshotsMinRetention = z
  .string()
  .refine((text) => durationMillis(text) !== undefined, 'must be a duration such as 7d')
  .transform((text) => durationMillis(text)!)
  .optional()

const lakeSchema = z.strictObject({
  connector: z.literal('lake'),
  location: z.string().min(1),
  readOnly: z.boolean().default(false),
  /** Formats, dialects and types of tables whose files do not state them, by `schema.table`. */
  tables: tableSettingsSchema.optional(),
  keepVersions,
  expireSnapshotsMinRetention,
})
const memorySchema = z.strictObject({
  connector: z.literal('memory'),
  location: z.string().min(1).optional(),
  keepVersions,
  expireSnapshotsMinRetention,
})
/** The handle of a folder without manifest: `snapshot` names the state of its files. */
const plainHandleSchema = z.object({ schema: z.string(), table: z.string(), snapshot: z.string() })
/** The handle of a table with manifest: `id` says which table of that name, `version` which of its versions. */
const versionHandleSchema = z.object({
  schema: z.string(),
  table: z.string(),
  version: z.number(),
  id: z.string(),
  /** Only the files that a rewrite of the table replaces. */
  rewrite: z.boolean().optional(),
  /** For `rewrite`: files below this size are small, bytes. */
  smallBytes: z.number().int().optional(),
  /** The folder of the manifest, relative to the location, if it may be another than that of the name. */
  folder: innerPathSchema.optional(),
  /** Reads rows that describe the versions, instead of the rows of the table. */
  history: z.enum(versionTables).optional(),
})
/**
 * The facts of larger sets of files are not kept with a handle for the time of a statement: they would take much
 * memory, and listing again is a small part of reading so many files.
 */
const MOST_REMEMBERED = 1000
type VersionHandle = z.infer<typeof versionHandleSchema>
const handleSchema = z.union([plainHandleSchema, versionHandleSchema])

/**
 * Shows folders `<location>/<schema>/<table>/` as schemas and tables, named by SQL names (`folder-names.ts`). A table
 * that Quipu wrote to has a manifest, which names its files; a query reads one version of it. A folder without manifest
 * is a table of the Parquet, CSV or JSON files in it: splits carry their size, time and footer hash, and a query fails
 * when a file changes while the query reads it.
 */
export const lakeConnector: ConnectorFactory = {
  connectorName: 'lake',
  create(catalog, properties, context) {
    const parsed = lakeSchema.safeParse(properties)
    if (!parsed.success) throw new EngineError('CONFIGURATION_INVALID', z.prettifyError(parsed.error))
    const location = resolve(context.catalogDir, parsed.data.location)
    if (!statSync(location, { throwIfNoEntry: false })?.isDirectory()) {
      throw new EngineError('CONFIGURATION_INVALID', `location '${location}' is not a folder`)
    }
    return createLake(catalog, 'lake', realpathSync(location), context, {
      readOnly: parsed.data.readOnly,
      tables: parsed.data.tables,
      keptMillis: parsed.data.keepVersions,
      leastRetentionMillis: parsed.data.expireSnapshotsMinRetention,
    })
  },
}

/** A lake in the installation's own folder of all `memory` catalogs; a new lake has the schema `default`. */
export const memoryConnector: ConnectorFactory = {
  connectorName: 'memory',
  create(catalog, properties, context) {
    const parsed = memorySchema.safeParse(properties)
    if (!parsed.success) throw new EngineError('CONFIGURATION_INVALID', z.prettifyError(parsed.error))
    const { location, keepVersions: keptMillis, expireSnapshotsMinRetention: leastRetentionMillis } = parsed.data
    const folder = location === undefined ? join(context.tablesDir, catalog) : resolve(context.catalogDir, location)
    // Only for a new folder: a schema `default` that was dropped does not come back. Coordinator and workers may start
    // at the same time. Mode 700, because the tables are read through Quipu only: other users of the machine have no
    // access.
    if (!statSync(folder, { throwIfNoEntry: false })) {
      mkdirSync(join(folder, 'default'), { recursive: true, mode: 0o700 })
    }
    return createLake(catalog, 'memory', realpathSync(folder), context, {
      readOnly: false,
      keptMillis,
      leastRetentionMillis,
    })
  },
}

interface LakeOptions {
  readonly readOnly: boolean
  readonly tables?: ReadonlyMap<string, TableSettings> | undefined
  readonly keptMillis: number
  readonly leastRetentionMillis: number | undefined
}

function createLake(
  catalog: string,
  connectorName: string,
  location: string,
  context: ConnectorContext,
  { readOnly, tables = new Map(), keptMillis, leastRetentionMillis }: LakeOptions,
): Connector {
  const cache = createFileFactsCache(location, context.inspect)
  const folders = createLakeFolders(location, tables)
  const check = createFileCheck(location, context.inspect)
  const history = new TableHistory({ location, folders, keptMillis, now: () => Date.now() })
  const settingsOf = ({
    schema,
    table,
  }: {
    readonly schema: string
    readonly table: string
  }): TableSettings | undefined => tables.get(`${schema}.${table}`)
  /**
   * The files from which a handle of this process was made. Splits are made from the same files; the worker checks each
   * file.
   */
  const foundFor = new WeakMap<object, FoundFiles>()

  async function folderOf({ schema, table, folder }: VersionHandle): Promise<string | undefined> {
    if (folder !== undefined) return join(location, folder)
    const parent = await folders.schemaFolder(schema)
    return parent && folders.objectFolder(parent, table)
  }

  /** The version that a handle names, even if there are later versions or the table was dropped since. */
  async function contentOf(handle: VersionHandle): Promise<TableContent> {
    const folder = await folderOf(handle)
    const manifest = folder && (await readVersion({ location, folder }, handle.version))
    const content = manifest ? rowsOf(manifest.content) : undefined
    if (folder === undefined || content?.id !== handle.id) throw changed()
    checkReadable(folder, `Table '${handle.schema}.${handle.table}'`)
    return content
  }

  /** The files of a folder without manifest, if they are still those of the handle. */
  async function filesAt({ schema, table, snapshot }: z.infer<typeof plainHandleSchema>): Promise<FoundFiles> {
    const object = await folders.find(schema, table)
    const listed =
      object && (object.kind === 'PLAIN' ? object.listed : await folders.dataFiles(schema, table, object.folder))
    const found = listed && (await factsOf(listed, cache))
    if (!found || snapshotId(found) !== snapshot) throw changed()
    return found
  }

  const tableOf = async (schema: string, table: string, object: NamedObject): Promise<ConnectorTable | undefined> => {
    if (object.kind !== 'PLAIN') return manifestTable(schema, table, object.manifest)
    const found = await factsOf(object.listed, cache)
    const snapshot = snapshotId(found)
    const handle = { schema, table, snapshot }
    if (found.files.length <= MOST_REMEMBERED) foundFor.set(handle, found)
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
        settingsOf(handle)?.properties,
      ),
    }
  }

  async function versionOf(
    schema: string,
    table: string,
    object: NamedObject,
    at: TablePoint,
  ): Promise<ConnectorTable | undefined> {
    const today = tableVersionOf(object)
    if (!today) throw noVersion(at, `${schema}.${table}`)
    const { folder, manifest } = await history.versionAt(today, at, `${schema}.${table}`)
    return olderTable(schema, table, { manifest, folder: relativeFolder({ location, folder }) }, today.manifest.content)
  }

  return withNamedRefusals({
    catalog,
    connectorName,
    abilities: {
      createSchema: !readOnly,
      createTable: !readOnly,
      insert: !readOnly,
      views: !readOnly,
      rowChanges: !readOnly,
      alterTable: !readOnly,
      comments: !readOnly,
      materializedViews: !readOnly,
      snapshots: true,
    },
    ...(!readOnly && {
      writer: createLakeWriter({
        catalog,
        location,
        folders,
        cache,
        inspect: context.inspect,
        duckdbType: context.duckdbType,
        keptMillis,
        leastRetentionMillis,
      }),
    }),

    listSchemas: () => folders.listSchemas(),

    async listTables(schema, named) {
      const schemas = schema === undefined ? await folders.listSchemas() : [schema]
      return (await Promise.all(schemas.map((name) => folders.list(name, named)))).flat()
    },

    async getTable(schema, table, at) {
      const object = await folders.find(schema, table)
      if (object) return at === undefined ? tableOf(schema, table, object) : versionOf(schema, table, object, at)
      const asked = versionTableOf(table)
      const about = asked && (await folders.find(schema, asked.of))
      if (!asked || about?.kind !== 'TABLE') return undefined
      if (at !== undefined) throw new EngineError('NOT_SUPPORTED', 'This connector does not support versioned tables')
      return versionTable(asked.kind, (await tableOf(schema, asked.of, about))!)
    },

    async describeTables(schema, named, take, columns) {
      const names = columns && new Set(columns)
      const takeObject = async (table: string, object: NamedObject): Promise<void> => {
        if (names && !mayHaveColumn(object, names)) return
        const described = await tableOf(schema, table, object).catch(() => undefined)
        if (described) take(described)
      }
      await folders.each(schema, named, takeObject, columns && namesOneOf(columns))
    },

    async getStatistics(handle) {
      const parsed = handleSchema.parse(handle)
      if ('version' in parsed) {
        if (parsed.history) return {}
        const content = await contentOf(parsed)
        if (!content.adopted) return manifestStatistics(content)
      }
      const splits = await this.listSplits(handle)
      const rows = splits.every((split) => split.rows !== undefined)
        ? { rows: splits.reduce((sum, split) => sum + split.rows!, 0) }
        : {}
      return { ...rows, bytes: splits.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0) }
    },

    async getColumnStatistics(handle) {
      const parsed = handleSchema.parse(handle)
      const { rows } = await this.getStatistics(handle)
      if (rows === undefined) return {}
      if ('version' in parsed) {
        const content = await contentOf(parsed)
        const paths = manifestPaths(location, content)
        const known = await parquetStatistics(context.inspect, paths, rows, storedColumns(content))
        return isExact(content) ? known : boundsOnly(known)
      }
      const found = await filesAt(parsed)
      const paths = found.files.map(({ file }) => join(location, file))
      const own = await parquetStatistics(context.inspect, paths, rows, found.columns)
      const rowsOfFiles = found.facts.map(({ rowGroups }) => rowGroups.reduce((sum, group) => sum + group.rows, 0))
      return { ...own, ...partitionStatistics(found.partitioning, rowsOfFiles) }
    },

    async listSplits(handle, _where, _question, columns, partitions) {
      const read = { columns, partitions }
      const parsed = handleSchema.parse(handle)
      if ('version' in parsed) {
        if (parsed.history) {
          const folder = relativeFolder({ location, folder: (await folderOf(parsed)) ?? location })
          return [{ catalog, data: { history: parsed.history, folder, version: parsed.version } }]
        }
        const content = await contentOf(parsed)
        const version = { catalog, settings: settingsOf(parsed), location, content }
        const files = parsed.rewrite ? filesToRewrite(content, content.files.length, parsed.smallBytes) : undefined
        return manifestSplits(version, cache, read, context.duckdbType, files)
      }
      return foundSplits(catalog, foundFor.get(handle) ?? (await filesAt(parsed)), read, context.duckdbType)
    },

    async tableSource(splits, columns, options) {
      const parsed = splits.map(({ data }) => lakeSplitSchema.parse(data))
      const [about] = parsed.filter((split) => 'history' in split)
      if (about) {
        const folder = join(location, about.folder)
        const manifest = await readVersion({ location, folder }, about.version)
        if (manifest?.content.kind !== 'table') throw changed()
        return versionSource(
          about.history,
          history,
          { folder, manifest: { ...manifest, content: manifest.content } },
          columns,
        )
      }
      return lakeTableSource(location, parsed.filter(isOfFiles), columns, options)
    },

    async verifySplits(splits) {
      await check.verify(splits.map(({ data }) => lakeSplitSchema.parse(data)).filter(isOfFiles))
    },

    allowedDirectories: () => [`${location}/`],
  })
}

/** The table of today; undefined for a view, and for files without manifest, which have no versions. */
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
