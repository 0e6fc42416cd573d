import { realpathSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'
import { parquetStatistics } from '../spi/parquet-statistics.ts'
import {
  READ_ONLY,
  type Connector,
  type ConnectorContext,
  type ConnectorFactory,
  type ConnectorSplit,
  type ConnectorTable,
  type SchemaTableName,
  type TableHandle,
  type TableStatistics,
} from '../spi/connector.ts'
import { joinRowGroups } from '../spi/parquet-scan.ts'
import { tpchDuckdbType, tpchTables } from './tables.ts'
import { checkFile, TpchFolders } from './tpch-folders.ts'

const propertiesSchema = z.strictObject({
  connector: z.literal('tpch'),
  /** Folder of further schemas, made by `etc/tpch/make-tiny.sh`; relative to the catalog file. */
  location: z.string().min(1).optional(),
})
const handleSchema = z.object({ schema: z.string(), table: z.string() })
const splitSchema = z.object({
  schema: z.string(),
  table: z.string(),
  file: z.string(),
  size: z.number(),
  firstRow: z.number(),
  rows: z.number(),
  fileRows: z.number(),
})

const SPLIT_BYTES = 16 * 1024 * 1024

/**
 * TPC-H data with Trino's names, types and values. A schema is a folder of Parquet files with a manifest: `tiny` is
 * shipped with the project, other schemas are in the folder that the property `location` names. The files never change.
 */
export const tpchConnector: ConnectorFactory = {
  connectorName: 'tpch',
  create(catalog, properties, context) {
    const parsed = propertiesSchema.safeParse(properties)
    if (!parsed.success) throw new EngineError('CONFIGURATION_INVALID', z.prettifyError(parsed.error))
    const { location } = parsed.data
    const roots = [join(context.shippedDir, 'tpch')]
    if (location !== undefined) roots.push(resolve(context.catalogDir, location))
    return createTpch(catalog, roots, context.inspect)
  },
}

function createTpch(catalog: string, roots: readonly string[], inspect: ConnectorContext['inspect']): Connector {
  const folders = new TpchFolders(catalog, roots)

  return {
    catalog,
    connectorName: 'tpch',
    abilities: READ_ONLY,

    listSchemas: async () => [...folders.schemas],

    async listTables(schema) {
      const asked = [...folders.schemas].filter((name) => schema === undefined || name === schema)
      return asked.flatMap((name) =>
        Object.keys(tpchTables).map((table): SchemaTableName => ({ schema: name, table, kind: 'TABLE' })),
      )
    },

    async getTable(schema, table): Promise<ConnectorTable | undefined> {
      if (!folders.hasTable(schema, table)) return undefined
      return {
        schema,
        table,
        kind: 'TABLE',
        handle: { schema, table },
        // The benchmark defines the rows: they never change.
        snapshot: schema,
        columns: tpchTables[table]!.columns.map(([name, type]) => ({ name, type, nullable: false })),
      }
    },

    async getStatistics(handle: TableHandle): Promise<TableStatistics> {
      const { schema, table } = handleSchema.parse(handle)
      const folder = folders.madeFolderOf(schema, table)
      if (!folder) return {}
      const files = folder.manifest.tables[table] ?? []
      let rows = 0
      let bytes = 0
      for (const file of files) {
        for (const group of file.rowGroups) {
          rows += group.rows
          for (const columnBytes of Object.values(group.columnBytes)) bytes += columnBytes
        }
      }
      return { rows, bytes }
    },

    async getColumnStatistics(handle) {
      const { schema, table } = handleSchema.parse(handle)
      const made = folders.madeFolderOf(schema, table)
      if (!made) return {}
      const files = made.manifest.tables[table] ?? []
      const { prefix, columns } = tpchTables[table]!
      const stored = columns.map(([name, type]) => ({ name, source: prefix + name, type }))
      const { rows = 0 } = await this.getStatistics(handle)
      const paths = files.map(({ file }) => join(made.folder, file))
      return parquetStatistics(inspect, paths, rows, stored)
    },

    async listSplits(handle): Promise<readonly ConnectorSplit[]> {
      const { schema, table } = handleSchema.parse(handle)
      return (folders.folderOf(schema, table).manifest.tables[table] ?? []).flatMap(({ file, size, rowGroups }) => {
        const fileRows = rowGroups.reduce((sum, group) => sum + group.rows, 0)
        return joinRowGroups(rowGroups, SPLIT_BYTES).map(({ firstRow, rows, bytes, columnBytes }) => ({
          catalog,
          data: { schema, table, file, size, firstRow, rows, fileRows },
          rows,
          bytes,
          columnBytes,
        }))
      })
    },

    async tableSource(splits, columns) {
      const parsed = splits.map(({ data }) => splitSchema.parse(data))
      const first = parsed[0]
      if (!first) throw new EngineError('GENERIC_INTERNAL_ERROR', 'A scan needs at least one split')
      const { folder } = folders.folderOf(first.schema, first.table)
      const { prefix, columns: types } = tpchTables[first.table]!
      const typeOf = new Map(types)
      const list = columns.map((name) => {
        const type = typeOf.get(name)
        if (type === undefined) throw new EngineError('COLUMN_NOT_FOUND', `Column '${name}' does not exist`)
        return { name, source: prefix + name, cast: tpchDuckdbType(type) }
      })
      const ranges = parsed.map(({ file, firstRow, rows, fileRows }) => ({
        path: join(folder, file),
        firstRow,
        rows,
        fileRows,
      }))
      return [{ kind: 'parquet', ranges, columns: list }]
    },

    async verifySplits(splits) {
      const sizes = new Map<string, number>()
      for (const { data } of splits) {
        const { schema, table, file, size } = splitSchema.parse(data)
        sizes.set(join(folders.folderOf(schema, table).folder, file), size)
      }
      for (const [path, size] of sizes) checkFile(path, size)
    },

    allowedDirectories: () =>
      roots.filter((root) => statSync(root, { throwIfNoEntry: false })).map((root) => `${realpathSync(root)}/`),
  }
}
