import { realpathSync, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'
import type {
  Connector,
  ConnectorContext,
  ConnectorFactory,
  ConnectorSplit,
  SchemaTableName,
} from '../spi/connector.ts'
import { joinRowGroups } from '../spi/parquet-scan.ts'
import { createFileFactsCache, type FileFacts, type TableColumn } from './file-facts.ts'
import {
  hashFooter,
  listDataFiles,
  listFolders,
  pickName,
  resolveInside,
  type FileFormat,
  type LakeFile,
} from './lake-files.ts'
import { lakeSplitSchema, type LakeSplit } from './lake-split.ts'
import { lakeTableExpression } from './table-expression.ts'

const propertiesSchema = z.strictObject({ connector: z.literal('lake'), location: z.string().min(1) })
const handleSchema = z.object({ schema: z.string(), table: z.string(), snapshot: z.string() })

const SPLIT_BYTES = 16 * 1024 * 1024

/**
 * Folders `<location>/<schema>/<table>/*` of Parquet, CSV or JSON files as schemas and tables. SQL names are the
 * folders' names in lower case. A folder has no manifest, so splits carry size, time and footer hash of their files, and
 * a query fails when one changes under it.
 */
export const lakeConnector: ConnectorFactory = {
  connectorName: 'lake',
  create(catalog, properties, context) {
    const parsed = propertiesSchema.safeParse(properties)
    if (!parsed.success) throw new EngineError('CONFIGURATION_INVALID', z.prettifyError(parsed.error))
    const location = resolve(context.catalogDir, parsed.data.location)
    if (!statSync(location, { throwIfNoEntry: false })?.isDirectory()) {
      throw new EngineError('CONFIGURATION_INVALID', `location '${location}' is not a folder`)
    }
    return createLake(catalog, realpathSync(location), context)
  },
}

interface Snapshot {
  readonly id: string
  readonly format: FileFormat
  readonly files: readonly LakeFile[]
  readonly facts: readonly FileFacts[]
  readonly columns: readonly TableColumn[]
  readonly shapesDiffer: boolean
}

function createLake(catalog: string, location: string, context: ConnectorContext): Connector {
  const cache = createFileFactsCache(location, context.query)

  async function schemaFolder(schema: string): Promise<string | undefined> {
    const name = pickName(await listFolders(location), schema, 'Schema')
    return name === undefined ? undefined : resolveInside(location, join(location, name))
  }

  async function snapshotOf(schema: string, table: string): Promise<Snapshot | undefined> {
    const folder = await schemaFolder(schema)
    const name = folder && pickName(await listFolders(folder), table, 'Table')
    if (!name) return undefined
    const listed = await listDataFiles(location, await resolveInside(location, join(folder, name)))
    if (!listed) return undefined
    const { format, files } = listed
    const facts = await cache.facts(format, files)
    const shapesDiffer = facts.some(({ shape }) => shape !== facts[0]!.shape)
    const columns = await cache.columns(format, files, shapesDiffer)
    const id = createHash('sha256')
    for (const [index, { file, size, mtime }] of files.entries()) {
      id.update(`${size} ${mtime} ${facts[index]!.footer} ${file}\n`)
    }
    return { id: id.digest('hex'), format, files, facts, columns, shapesDiffer }
  }

  /** Size and time are asked every time; the footer is read again only for a file seen with another size or time. */
  const footers = new Map<string, { readonly key: string; readonly footer: string }>()
  async function checkFile(split: LakeSplit): Promise<void> {
    const path = await resolveInside(location, join(location, split.file)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') throw changed()
      throw error
    })
    const stats = await stat(path, { bigint: true })
    if (Number(stats.size) !== split.size || String(stats.mtimeNs) !== split.mtime) throw changed()
    const key = `${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`
    let known = footers.get(path)
    if (known?.key !== key) {
      known = { key, footer: await hashFooter(path, split.size) }
      if (footers.size > 50_000) footers.clear()
      footers.set(path, known)
    }
    if (known.footer !== split.footer) throw changed()
  }

  async function verify(splits: readonly LakeSplit[]): Promise<void> {
    const byFile = new Map(splits.map((split) => [split.file, split]))
    await Promise.all([...byFile.values()].map(checkFile))
  }

  return {
    catalog,
    connectorName: 'lake',
    abilities: { createSchema: false, createTable: false, insert: false, views: false, snapshots: false },

    async listSchemas() {
      return [...(await listFolders(location))]
        .filter(([, found]) => found.length === 1)
        .map(([name]) => name)
        .sort()
    },

    async listTables(schema) {
      const schemas = schema === undefined ? await this.listSchemas() : [schema]
      const tables: SchemaTableName[] = []
      for (const name of schemas) {
        const folder = await schemaFolder(name)
        if (folder === undefined) continue
        for (const [table, found] of [...(await listFolders(folder))].sort()) {
          if (found.length > 1) continue
          const inside = await resolveInside(location, join(folder, found[0]!)).catch(() => undefined)
          const listed = inside && (await listDataFiles(location, inside).catch(() => undefined))
          if (listed) tables.push({ schema: name, table, kind: 'TABLE' })
        }
      }
      return tables
    },

    async getTable(schema, table) {
      const snapshot = await snapshotOf(schema, table)
      if (!snapshot) return undefined
      return {
        schema,
        table,
        kind: 'TABLE',
        handle: { schema, table, snapshot: snapshot.id },
        columns: snapshot.columns.map(({ name, type }) => ({ name, type, nullable: true })),
      }
    },

    async getStatistics(handle) {
      const splits = await this.listSplits(handle)
      const rows = splits.every((split) => split.rows !== undefined)
        ? { rows: splits.reduce((sum, split) => sum + split.rows!, 0) }
        : {}
      return { ...rows, bytes: splits.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0) }
    },

    async listSplits(handle) {
      const { schema, table, snapshot: id } = handleSchema.parse(handle)
      const snapshot = await snapshotOf(schema, table)
      if (snapshot?.id !== id) throw changed()
      return snapshot.files.flatMap((file, index) => splitsOf(catalog, snapshot, file, snapshot.facts[index]!))
    },

    async tableExpression(splits, columns) {
      const parsed = splits.map(({ data }) => lakeSplitSchema.parse(data))
      await verify(parsed)
      return lakeTableExpression(location, parsed, columns)
    },

    async verifySplits(splits) {
      await verify(splits.map(({ data }) => lakeSplitSchema.parse(data)))
    },

    allowedDirectories: () => [`${location}/`],
  }
}

function splitsOf(catalog: string, snapshot: Snapshot, file: LakeFile, facts: FileFacts): ConnectorSplit[] {
  const { format, shapesDiffer: unionByName } = snapshot
  const own = snapshot.columns.map(({ name, source, duckdbType }) => ({
    name,
    source,
    duckdbType,
    present: facts.names.has(name),
  }))
  const data = { ...file, format, footer: facts.footer, unionByName, columns: own }
  if (format !== 'parquet') {
    return [{ catalog, data: { ...data, firstRow: 0, rows: 0, fileRows: 0 }, bytes: file.size }]
  }
  // A table has at least one split: an empty one says of which types the no rows are.
  if (facts.rowGroups.length === 0) {
    return [{ catalog, data: { ...data, firstRow: 0, rows: 0, fileRows: 0 }, rows: 0, bytes: 0 }]
  }
  const fileRows = facts.rowGroups.reduce((sum, { rows }) => sum + rows, 0)
  return joinRowGroups(facts.rowGroups, SPLIT_BYTES).map(({ firstRow, rows, bytes, columnBytes }) => ({
    catalog,
    data: { ...data, firstRow, rows, fileRows },
    rows,
    bytes,
    columnBytes,
  }))
}

function changed(): EngineError {
  return new EngineError('TRANSACTION_CONFLICT', 'A file of the table was changed while the query ran; run it again')
}
