import { mkdirSync, realpathSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'
import { durationMillis } from '../../shared/quantities.ts'
import type { Connector, ConnectorContext, ConnectorFactory } from '../spi/connector.ts'
import { createFileCheck } from './file-check.ts'
import { createFileFactsCache } from './file-facts.ts'
import { createLakeFolders } from './lake-folders.ts'
import { isOfFiles, lakeSplitSchema } from './lake-split.ts'
import { LakeTables } from './lake-tables.ts'
import { createLakeWriter } from './lake-writer.ts'
import { withNamedRefusals } from './refusals.ts'
import { TableHistory } from './table-history.ts'
import { tableSettingsSchema, type TableSettings } from './table-settings.ts'

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
  { readOnly, tables: settings = new Map(), keptMillis, leastRetentionMillis }: LakeOptions,
): Connector {
  const { inspect, duckdbType } = context
  const cache = createFileFactsCache(location, inspect)
  const folders = createLakeFolders(location, settings)
  const check = createFileCheck(location, inspect)
  const history = new TableHistory({ location, folders, keptMillis, now: () => Date.now() })
  const tables = new LakeTables({ catalog, location, folders, cache, history, context, settings })
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
        inspect,
        duckdbType,
        keptMillis,
        leastRetentionMillis,
      }),
    }),
    listSchemas: () => folders.listSchemas(),
    async listTables(schema, named) {
      const schemas = schema === undefined ? await folders.listSchemas() : [schema]
      return (await Promise.all(schemas.map((name) => folders.list(name, named)))).flat()
    },
    getTable: (schema, table, at) => tables.getTable(schema, table, at),
    describeTables: (schema, named, take, columns) => tables.describeTables(schema, named, take, columns),
    getStatistics: (handle) => tables.getStatistics(handle),
    getColumnStatistics: (handle) => tables.getColumnStatistics(handle),
    listSplits: (handle, _where, _question, columns, partitions) => tables.listSplits(handle, { columns, partitions }),
    tableSource: (splits, columns, options) => tables.tableSource(splits, columns, options),
    async verifySplits(splits) {
      await check.verify(splits.map(({ data }) => lakeSplitSchema.parse(data)).filter(isOfFiles))
    },
    allowedDirectories: () => [`${location}/`],
  })
}
