import { readdirSync, realpathSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { stat } from 'node:fs/promises'
import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'
import type {
  Connector,
  ConnectorFactory,
  ConnectorSplit,
  ConnectorTable,
  SchemaTableName,
  TableHandle,
  TableStatistics,
} from '../spi/connector.ts'
import { joinRowGroups } from '../spi/parquet-scan.ts'
import { readManifest, type TpchManifest } from './manifest.ts'
import { duckdbType, tpchTables } from './tables.ts'

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

const SCHEMA_NAME = /^(tiny|sf[1-9]\d*)$/
/** Trino's own schemas: they can be described whether or not their data was made. */
const STANDARD_SCHEMAS = ['sf1', 'sf100', 'sf300', 'sf1000', 'sf3000', 'sf10000', 'sf30000', 'sf100000']
/** Nations and regions do not depend on the scale (TPC-H 4.2.5): any schema has them. */
const FIXED_TABLES: ReadonlySet<string> = new Set(['nation', 'region'])
const SPLIT_BYTES = 16 * 1024 * 1024

/**
 * TPC-H data with Trino's names, types and values. A schema is a folder of Parquet files with a manifest: `tiny` is
 * shipped with the project, others lie in the folder that the property `location` names. The files never change.
 */
export const tpchConnector: ConnectorFactory = {
  connectorName: 'tpch',
  create(catalog, properties, context) {
    const parsed = propertiesSchema.safeParse(properties)
    if (!parsed.success) throw new EngineError('CONFIGURATION_INVALID', z.prettifyError(parsed.error))
    const { location } = parsed.data
    const roots = [join(context.shippedDir, 'tpch')]
    if (location !== undefined) roots.push(resolve(context.catalogDir, location))
    return createTpch(catalog, roots)
  },
}

interface SchemaFolder {
  readonly folder: string
  readonly manifest: TpchManifest
}

function createTpch(catalog: string, roots: readonly string[]): Connector {
  const made = findSchemas(roots)
  const schemas: ReadonlySet<string> = new Set([...made.keys(), ...STANDARD_SCHEMAS])

  /** Where the files of a table are; undefined when the data of its scale was not made. */
  function madeFolderOf(schema: string, table: string): SchemaFolder | undefined {
    if (!schemas.has(schema) || !Object.hasOwn(tpchTables, table)) {
      throw new EngineError('TABLE_NOT_FOUND', `Table '${catalog}.${schema}.${table}' does not exist`)
    }
    return made.get(schema) ?? (FIXED_TABLES.has(table) ? made.get('tiny') : undefined)
  }

  function folderOf(schema: string, table: string): SchemaFolder {
    const found = madeFolderOf(schema, table)
    if (found) return found
    throw new EngineError(
      'NOT_SUPPORTED',
      `The data of '${catalog}.${schema}' was not made here: make it with etc/tpch/make-tiny.sh and name its folder as "location" of the catalog`,
    )
  }

  async function checkFile(path: string, size: number): Promise<void> {
    const found = await stat(path).catch(() => undefined)
    if (found?.size !== size) {
      throw new EngineError('GENERIC_INTERNAL_ERROR', 'A file of the tpch catalog is missing or was changed')
    }
  }

  return {
    catalog,
    connectorName: 'tpch',
    abilities: { createSchema: false, createTable: false, insert: false, views: false, snapshots: true },

    listSchemas: async () => [...schemas],

    async listTables(schema) {
      const asked = schema === undefined ? [...schemas] : schemas.has(schema) ? [schema] : []
      return asked.flatMap((name) =>
        Object.keys(tpchTables).map((table): SchemaTableName => ({ schema: name, table, kind: 'TABLE' })),
      )
    },

    async getTable(schema, table): Promise<ConnectorTable | undefined> {
      if (!schemas.has(schema) || !Object.hasOwn(tpchTables, table)) return undefined
      return {
        schema,
        table,
        kind: 'TABLE',
        handle: { schema, table },
        columns: tpchTables[table]!.columns.map(([name, type]) => ({ name, type, nullable: false })),
      }
    },

    async getStatistics(handle: TableHandle): Promise<TableStatistics> {
      const { schema, table } = handleSchema.parse(handle)
      const folder = madeFolderOf(schema, table)
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

    async listSplits(handle): Promise<readonly ConnectorSplit[]> {
      const { schema, table } = handleSchema.parse(handle)
      return (folderOf(schema, table).manifest.tables[table] ?? []).flatMap(({ file, size, rowGroups }) => {
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
      const { folder } = folderOf(first.schema, first.table)
      const { prefix, columns: types } = tpchTables[first.table]!
      const typeOf = new Map(types)
      const list = columns.map((name) => {
        const type = typeOf.get(name)
        if (type === undefined) throw new EngineError('COLUMN_NOT_FOUND', `Column '${name}' does not exist`)
        return { name, source: prefix + name, cast: duckdbType(type) }
      })
      await this.verifySplits(splits)
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
        sizes.set(join(folderOf(schema, table).folder, file), size)
      }
      await Promise.all([...sizes].map(([path, size]) => checkFile(path, size)))
    },

    allowedDirectories: () =>
      roots.filter((root) => statSync(root, { throwIfNoEntry: false })).map((root) => `${realpathSync(root)}/`),
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
  // tiny first, then by scale, as people look for them.
  return new Map([...found].sort(([, a], [, b]) => a.manifest.scale - b.manifest.scale))
}
