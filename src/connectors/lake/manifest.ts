import { sep } from 'node:path'
import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'
import { queryIdSchema } from '../../shared/id-schemas.ts'
import type { QueryId } from '../../shared/ids.ts'
import {
  materializedViewDefinitionSchema,
  sourceTableSchema,
  storedColumnSchema,
  viewDefinitionSchema,
  writtenFileSchema,
} from '../spi/table-writer.ts'
import { fileFormats } from './file-format.ts'

/** A path that does not lead out of its starting folder. */
export const innerPathSchema = z.string().refine((path) => {
  return path !== '' && path.split('/').every((part) => !['', '.', '..'].includes(part)) && !path.includes('\0')
}, 'must be a path below its folder')

/** Files that were in the folder before its first manifest: read unchanged, by the facts found at that time. */
export const adoptedSchema = z.object({
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
  /** The folder of the files, relative to the location; absent as long as the table has its first name. */
  folder: innerPathSchema.optional(),
})
export type Adopted = z.infer<typeof adoptedSchema>

/**
 * A column is identified by its id, whatever its name: a column that is dropped and added again has another id, and
 * `physical`, its name in the files, is never used for another column of the table.
 */
const fileColumnSchema = z.object({
  id: z.number().int(),
  physical: z.string(),
  /** The type that its values have in the files. */
  duckdbType: z.string(),
})
export type FileColumnId = z.infer<typeof fileColumnSchema>

const tableColumnSchema = storedColumnSchema.extend(fileColumnSchema.shape)
export type TableColumn = z.infer<typeof tableColumnSchema>

/**
 * The instant of a rename: the commit of the query in the chain of versions in `folder`. A renamed object gets a manifest
 * under its new name first. At this instant the new name appears and the old name disappears.
 */
const instantSchema = z.object({
  /** Relative to the location. */
  folder: innerPathSchema,
  /** The newest version there before the commit; 0 without one. */
  version: z.number().int(),
  queryId: queryIdSchema,
})
export type Instant = z.infer<typeof instantSchema>

const visibility = {
  /** Before this instant there is no such object. */
  since: instantSchema.optional(),
  /** From this instant on there is no such object. */
  until: instantSchema.optional(),
}

/** A file that Quipu wrote; `path` is relative to the location. */
const tableFileSchema = writtenFileSchema.omit({ change: true }).extend({
  path: innerPathSchema,
  /** Number of its schema in `schemas`. */
  schema: z.number().int(),
  /** For a file of changed rows: how many of its rows are rows of the table (`$live`). */
  live: z.number().int().optional(),
})
export type TableFile = z.infer<typeof tableFileSchema>

/** The rows that are removed from a file: their numbers are in files of changed rows. */
const removalSchema = z.object({
  /** The path of the file. */
  file: z.string(),
  by: z.array(
    z.object({
      /** The path of the file of changed rows. */
      file: z.string(),
      /** The value of `$file` in its rows that remove rows of this file. */
      index: z.number().int(),
      rows: z.number().int(),
    }),
  ),
})

const tableSchema = z.object({
  kind: z.literal('table'),
  /**
   * Distinguishes tables that had the same name one after the other: the query that created the table, or `adopted`.
   */
  id: z.string(),
  comment: z.string().optional(),
  columns: z.array(tableColumnSchema),
  /** Columns that were dropped, with their last names. Manifests of earlier versions of Quipu do not name them. */
  dropped: z.array(z.object({ id: z.number().int(), name: z.string() })).optional(),
  /** The id of the next column that is added. */
  nextColumn: z.number().int(),
  /** The columns of the files, by the number of their schema. */
  schemas: z.array(z.object({ id: z.number().int(), columns: z.array(fileColumnSchema) })),
  /** The schema that new files have. */
  fileSchema: z.number().int(),
  /** Inserts only append: row ids and `baseFiles` count the files. */
  files: z.array(tableFileSchema),
  removals: z.array(removalSchema),
  /** The version that last removed rows or files, or changed columns. */
  changedAt: z.number().int(),
  adopted: adoptedSchema.optional(),
  /** Set by EXECUTE expire_snapshots. Milliseconds since the epoch. */
  expired: z
    .object({
      /** Versions that were replaced before this instant cannot be read any more. */
      before: z.number(),
      /** When the statement was committed. A query that began earlier may still read these versions. */
      at: z.number(),
    })
    .optional(),
  ...visibility,
})

const materializedViewSchema = z.object({
  kind: z.literal('materializedView'),
  /** The query that created it. */
  id: z.string(),
  definition: materializedViewDefinitionSchema,
  /** The rows of the last refresh. */
  stored: z
    .object({
      /** Its id is the query that refreshed it, `changedAt` the version that first had the rows. */
      table: tableSchema,
      /** @see MaterializedView.stored */
      refreshedAt: z.number(),
      sources: z.array(sourceTableSchema),
      /** @see MaterializedView.stored */
      query: z.string().optional(),
    })
    .optional(),
  ...visibility,
})

const contentSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('schema'), since: instantSchema.optional() }),
  tableSchema,
  z.object({ kind: z.literal('view'), definition: viewDefinitionSchema, ...visibility }),
  materializedViewSchema,
  /** An object of that name was dropped, or has another name now: `movedTo` is its folder, relative to the location. */
  z.object({ kind: z.literal('dropped'), movedTo: innerPathSchema.optional() }),
])
export type ManifestContent = z.infer<typeof contentSchema>
export type TableContent = z.infer<typeof tableSchema>
export type MaterializedViewContent = z.infer<typeof materializedViewSchema>

/** The rows that a manifest names: those of a table, or the stored rows of a materialized view. */
export function rowsOf(content: ManifestContent): TableContent | undefined {
  switch (content.kind) {
    case 'table':
      return content
    case 'materializedView':
      return content.stored?.table
    case 'schema':
    case 'view':
    case 'dropped':
      return undefined
  }
}

/** The parts of a manifest that no format changed. */
export const manifestHead = {
  version: z.number().int().min(1),
  /** When this version was made, milliseconds since the epoch, by the clock of the process that made it. */
  time: z.number(),
  /** The kind of change that made this version; absent in manifests of earlier versions of Quipu. */
  operation: z.enum(['append', 'replace', 'overwrite', 'delete']).optional(),
  /**
   * Queries with changes in this version, oldest first, each with the version that first had the change: a change is
   * made once.
   */
  committed: z.array(z.object({ queryId: queryIdSchema, version: z.number(), time: z.number() })),
}

const manifestSchema = z.object({ format: z.literal(2), ...manifestHead, content: contentSchema })
export type Manifest = z.infer<typeof manifestSchema>

export function parseManifest(json: unknown): Manifest {
  return manifestSchema.parse(json)
}

/** Commits younger than this are remembered, milliseconds; so are the last `REMEMBERED_COUNT` commits. */
export const REMEMBERED_MILLIS = 24 * 3600 * 1000
export const REMEMBERED_COUNT = 1000

/** The id of a table whose files were there before its first manifest. */
export const ADOPTED_ID = 'adopted'

/**
 * The id of a table after a rename. Two adopted tables could otherwise exchange their names unnoticed.
 * @param from its old folder, relative to the location
 */
export function movedId(id: string, queryId: string, from: string): string {
  return id === ADOPTED_ID ? `${ADOPTED_ID} ${queryId} ${from}` : id
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
