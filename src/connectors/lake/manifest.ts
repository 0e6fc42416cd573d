import { sep } from 'node:path'
import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'
import { storedColumnSchema, viewDefinitionSchema, writtenFileSchema } from '../spi/table-writer.ts'
import type { PreparedWrite, WrittenFile } from '../spi/table-writer.ts'
import { fileFormats } from './file-format.ts'
import { queryIdSchema } from '../../shared/id-schemas.ts'
import type { QueryId } from '../../shared/ids.ts'

/** A column with the type its values have in the table's Parquet files. */
const manifestColumnSchema = storedColumnSchema.extend({ duckdbType: z.string() })

/** A path that does not lead out of its starting folder. */
const innerPathSchema = z.string().refine((path) => {
  return path !== '' && path.split('/').every((part) => !['', '.', '..'].includes(part)) && !path.includes('\0')
}, 'must be a path below its folder')

/** Files that were in the folder before its first manifest: read unchanged, by the facts found at that time. */
const adoptedSchema = z.object({
  format: z.enum(fileFormats),
  shapesDiffer: z.boolean(),
  columns: z.array(z.object({ name: z.string(), source: z.string(), duckdbType: z.string() })),
  files: z.array(
    z.object({
      /** Relative to the catalog's location. */
      file: innerPathSchema,
      size: z.number(),
      mtime: z.string(),
      footer: z.string(),
      /** Values of the partition keys, in their order: a text that is cast, or null for NULL. */
      values: z.array(z.string().nullable()).optional(),
    }),
  ),
  /** Columns with values from the files' folders. */
  keys: z.array(z.object({ name: z.string(), duckdbType: z.string() })).optional(),
})
export type Adopted = z.infer<typeof adoptedSchema>

const tableSchema = z.object({
  kind: z.literal('table'),
  /**
   * Distinguishes tables that had the same name one after the other: the query that created the table, or `adopted`.
   */
  id: z.string(),
  comment: z.string().optional(),
  columns: z.array(manifestColumnSchema),
  /** Parquet files that Quipu wrote. */
  files: z.array(writtenFileSchema.extend({ path: innerPathSchema })),
  adopted: adoptedSchema.optional(),
})

const contentSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('schema') }),
  tableSchema,
  z.object({ kind: z.literal('view'), definition: viewDefinitionSchema }),
  /** An object of that name was dropped. */
  z.object({ kind: z.literal('dropped') }),
])
export type ManifestContent = z.infer<typeof contentSchema>
export type TableContent = z.infer<typeof tableSchema>

const manifestSchema = z.object({
  format: z.literal(1),
  version: z.number().int().min(1),
  /** When this version was made, milliseconds since the epoch, by the clock of the process that made it. */
  time: z.number(),
  /**
   * Queries with changes in this version, oldest first, each with the version that first had the change: a change is
   * made once.
   */
  committed: z.array(z.object({ queryId: queryIdSchema, version: z.number(), time: z.number() })),
  content: contentSchema,
})
export type Manifest = z.infer<typeof manifestSchema>

/** Commits younger than this are remembered, milliseconds; so are the last `REMEMBERED_COUNT` commits. */
export const REMEMBERED_MILLIS = 24 * 3600 * 1000
const REMEMBERED_COUNT = 1000

/** The id of a table whose files were there before its first manifest. */
export const ADOPTED_ID = 'adopted'

export function parseManifest(text: string, path: string): Manifest {
  try {
    return manifestSchema.parse(JSON.parse(text))
  } catch (cause) {
    throw unreadable(path, cause)
  }
}

/** The parts of a path in messages: schema, table, folder and file. */
const NAMED_PARTS = 4

/**
 * The error for an invalid manifest. It may be retried: the disk may be repaired, or a newer Quipu may be able to read
 * it.
 */
export function unreadable(path: string, cause?: unknown): EngineError {
  const named = path.split(sep).slice(-NAMED_PARTS).join('/')
  return new EngineError('HIVE_BAD_DATA', `Manifest ${named} cannot be read`, { cause, retry: 'later' })
}

/** The version that first had a query's change; undefined when the change is not in, or is forgotten. */
export function committedVersion(manifest: Manifest, queryId: QueryId): number | undefined {
  return manifest.committed.findLast((commit) => commit.queryId === queryId)?.version
}

/** The first version of a table whose files were there before; no query committed it. */
export function adoption(content: TableContent, now: number): Manifest {
  return { format: 1, version: 1, time: now, committed: [], content }
}

/** The input for the next version. */
export interface NextVersion {
  readonly prepared: PreparedWrite
  readonly now: number
  /** Whether the name's folder holds data files that no manifest names. */
  readonly plainData: boolean
  duckdbType(type: string): string
}

/**
 * The version after `newest` with the prepared change in it.
 * @throws EngineError TRANSACTION_CONFLICT when the change cannot be made on it
 */
export function nextManifest(newest: Manifest | undefined, next: NextVersion): Manifest {
  const { prepared, now } = next
  const version = (newest?.version ?? 0) + 1
  const all = [...(newest?.committed ?? []), { queryId: prepared.queryId, version, time: now }]
  const committed = all.filter(
    ({ time }, index) => index >= all.length - REMEMBERED_COUNT || time > now - REMEMBERED_MILLIS,
  )
  return { format: 1, version, time: now, committed, content: nextContent(newest, next) }
}

function nextContent(newest: Manifest | undefined, next: NextVersion): ManifestContent {
  const { prepared } = next
  const { change } = prepared
  const content = newest?.content
  const free = content ? content.kind === 'dropped' : !next.plainData
  switch (change.kind) {
    case 'createSchema':
      if (content && content.kind !== 'dropped')
        throw conflict(`Schema '${change.schema}' was created by another writer`)
      return { kind: 'schema' }
    case 'dropSchema':
      return { kind: 'dropped' }
    case 'createTable':
      if (!free && !(change.replace && content?.kind === 'table')) {
        throw conflict(`Table '${change.schema}.${change.table}' was created by another writer`)
      }
      return {
        kind: 'table',
        id: prepared.queryId,
        ...(change.comment !== undefined && { comment: change.comment }),
        columns: change.columns.map((column) => ({ ...column, duckdbType: next.duckdbType(column.type) })),
        files: nonEmpty(prepared.files),
      }
    case 'insert':
      if (content?.kind !== 'table' || content.id !== prepared.tableId) {
        throw conflict(`Table '${change.schema}.${change.table}' was dropped by another writer`)
      }
      return { ...content, files: [...content.files, ...nonEmpty(prepared.files)] }
    case 'dropTable':
      // Without an id the table is dropped with its schema, whichever table it is.
      if (content?.kind !== 'table' || (prepared.tableId !== undefined && content.id !== prepared.tableId)) {
        throw conflict(`Table '${change.schema}.${change.table}' was dropped by another writer`)
      }
      return { kind: 'dropped' }
    case 'createView':
      if (!free && !(change.replace && content?.kind === 'view')) {
        throw conflict(`View '${change.schema}.${change.table}' was created by another writer`)
      }
      return { kind: 'view', definition: change.definition }
    case 'dropView':
      if (content?.kind !== 'view')
        throw conflict(`View '${change.schema}.${change.table}' was dropped by another writer`)
      return { kind: 'dropped' }
  }
}

function nonEmpty(files: readonly WrittenFile[]): WrittenFile[] {
  return files.filter(({ rows }) => rows > 0)
}

function conflict(message: string): EngineError {
  return new EngineError('TRANSACTION_CONFLICT', message)
}
