import { z } from 'zod'
import { queryIdSchema } from '../../shared/id-schemas.ts'
import type { QueryId } from '../../shared/ids.ts'

/**
 * Writes of a connector, exactly once. The life of a write:
 *
 * 1. `begin` (coordinator, while planning): checks names, resolves the target to a snapshot; no effect.
 * 2. Rows, if the change has any: the fragment carries the target (`Fragment.write`). The worker calls `openAttempt`
 *    for a folder of this attempt alone and lets DuckDB write Parquet into it. `sealAttempt` then makes the files
 *    durable and describes them. A retried task is another attempt with another folder: files of a lost attempt are
 *    never read.
 * 3. `prepare` (coordinator): checks names again, and says on which version the change is based. WritePrepared records
 *    its answer: once that event is valid, the query cannot fail any more.
 * 4. `commit`: by the same coordinator, or by a coordinator that recovers the query. Any number of calls is allowed,
 *    even two at once of which one is stale: the change is in the table once.
 *
 * The caller guards names: from before `prepare` until `commit` is done it must not prepare another change of the same
 * object. Inserts are an exception: they do not conflict with each other (`conflicts`). Then only a program that writes
 * the same folder from outside this event log can make a prepared change impossible.
 */
export interface ConnectorWriter extends ChangeCommits, WrittenRows {
  /**
   * Removes files that no query can need any more. One process at a time, after its recovery has listed the open
   * queries.
   */
  sweep(options: SweepOptions): Promise<SweepReport>
}

/** How a change is decided and made; called in the coordinator. */
export interface ChangeCommits {
  /**
   * Checks that the change can be made now and resolves it; has no effect. `queryId` names the folders of the attempts.
   * @param analyzed for a change with rows of an existing table: the table as the rows were analyzed for it
   * @throws EngineError SCHEMA_NOT_FOUND, SCHEMA_ALREADY_EXISTS, SCHEMA_NOT_EMPTY, TABLE_NOT_FOUND, TABLE_ALREADY_EXISTS,
   *   COLUMN_NOT_FOUND, COLUMN_ALREADY_EXISTS, NOT_SUPPORTED, INVALID_PROCEDURE_ARGUMENT; TRANSACTION_CONFLICT with
   *   retry 'anew' when the rows do not fit the table that has the name now: the statement can be analyzed again
   */
  begin(queryId: QueryId, change: TableChange, analyzed?: AnalyzedTable): Promise<WriteTarget>
  /**
   * The content of WritePrepared. Checks names again.
   * @throws EngineError as `begin`; TRANSACTION_CONFLICT when the table is not the table that `begin` found. With retry
   *   'anew': rows of the table were removed, or its columns altered, after the version that the rows of the change were
   *   made from; or inserted rows lack a column that must not be NULL. The statement can be planned again.
   */
  prepare(target: WriteTarget, files: readonly WrittenFile[]): Promise<PreparedWrite>
  /**
   * Makes the change, or finds that it is made. Idempotent for 24 hours and at least 1,000 later changes of the same
   * object. Errors of the file system are thrown unchanged and leave the change made or not made: call again, as after
   * an EngineError whose `retry` is not 'never'.
   * @throws EngineError with retry 'never', mostly TRANSACTION_CONFLICT: something outside the event log has made it
   * impossible
   */
  commit(prepared: PreparedWrite): Promise<CommittedWrite>
  /**
   * Finds out whether the change is made, without making it. For a change that is no longer known completely.
   * @returns undefined when it is not made. Errors of the file system are thrown unchanged: call again
   */
  find(prepared: PreparedWrite): Promise<CommittedWrite | undefined>
}

/** How the rows of a change reach the table: as Parquet files in a folder of the attempt. Called in the worker. */
export interface WrittenRows {
  /**
   * Makes the folder of an attempt, absolute, no trailing slash, empty, inside `allowedDirectories()`. Files in
   * it belong to the attempt once they are sealed.
   * @param attempt unique for each attempt: the task id and the number of the batch's attempt
   * @throws EngineError SCHEMA_NOT_FOUND when the schema is gone, OUT_OF_SPILL_SPACE when the disk has too little room
   */
  openAttempt(target: WriteTarget, attempt: string): Promise<string>
  /**
   * Makes the attempt's files durable (contents, names, folders) and describes them.
   * @throws EngineError MERGE_TARGET_ROW_MULTIPLE_MATCHES (see `changeColumns`)
   */
  sealAttempt(target: WriteTarget, attempt: string, written: readonly EngineFile[]): Promise<readonly WrittenFile[]>
  /** Removes the files of an attempt that failed or was canceled; safe when there are none. */
  dropAttempt(target: WriteTarget, attempt: string): Promise<void>
}

/** A column as it is stored. */
export const storedColumnSchema = z.object({
  /** Lower case, unique. */
  name: z.string(),
  /** Trino's type text, `varchar(25)`. */
  type: z.string(),
  nullable: z.boolean(),
  comment: z.string().optional(),
})
export type StoredColumn = z.infer<typeof storedColumnSchema>

/** The definition of a view, as in Trino. */
export const viewDefinitionSchema = z.object({
  /** The query as it was written. */
  sql: z.string(),
  /** Where its unqualified names resolve: the session's catalog and schema when it was created. */
  catalog: z.string().optional(),
  schema: z.string().optional(),
  columns: z.array(storedColumnSchema),
  /** The user whose rights it reads with; absent for SECURITY INVOKER. */
  owner: z.string().optional(),
  runAsInvoker: z.boolean(),
  comment: z.string().optional(),
})
export type ViewDefinition = z.infer<typeof viewDefinitionSchema>

/** The definition of a materialized view. It always reads with the rights of its owner. */
export const materializedViewDefinitionSchema = viewDefinitionSchema.extend({
  /** @see MaterializedView.gracePeriodMillis */
  gracePeriodMillis: z.number().int().optional(),
})

export type MaterializedViewDefinition = z.infer<typeof materializedViewDefinitionSchema>

/** @see SourceTable */
export const sourceTableSchema = z.object({
  catalog: z.string(),
  schema: z.string(),
  table: z.string(),
  snapshot: z.string().optional(),
})

/** A change of the columns of a table; the connector decides it against the newest version. Names are lower case. */
const columnAlterationSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('add'),
    column: storedColumnSchema,
    /** Absent: behind the last column. */
    position: z.union([z.object({ first: z.literal(true) }), z.object({ after: z.string() })]).optional(),
  }),
  z.object({ kind: z.literal('drop'), column: z.string() }),
  z.object({ kind: z.literal('rename'), column: z.string(), to: z.string() }),
  /** Only to a type that holds every value of the old type. */
  z.object({ kind: z.literal('setType'), column: z.string(), type: z.string() }),
  z.object({ kind: z.literal('dropNotNull'), column: z.string() }),
])

/**
 * The version of the table that the statement reads (`ConnectorTable.version`): row ids count from it. Absent: the
 * newest version at `begin`.
 */
const readVersion = z.number().int().min(1).optional()

/** A change of one schema, table or view; names are lower case. `IF [NOT] EXISTS` is resolved before. */
const tableChangeSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('createSchema'), schema: z.string() }),
  /** With `cascade` its tables and views are dropped too. */
  z.object({ kind: z.literal('dropSchema'), schema: z.string(), cascade: z.boolean() }),
  /** CREATE TABLE without files, CREATE TABLE AS with those of the attempt. */
  z.object({
    kind: z.literal('createTable'),
    schema: z.string(),
    table: z.string(),
    columns: z.array(storedColumnSchema),
    comment: z.string().optional(),
    /** OR REPLACE: a table of that name is replaced in one step. */
    replace: z.boolean(),
  }),
  z.object({ kind: z.literal('insert'), schema: z.string(), table: z.string() }),
  z.object({ kind: z.literal('dropTable'), schema: z.string(), table: z.string() }),
  /** Views and tables share one list of names. */
  z.object({
    kind: z.literal('createView'),
    schema: z.string(),
    table: z.string(),
    definition: viewDefinitionSchema,
    /** OR REPLACE: a view (not a table) of that name is replaced in one step. */
    replace: z.boolean(),
  }),
  z.object({ kind: z.literal('dropView'), schema: z.string(), table: z.string() }),
  z.object({
    kind: z.literal('createMaterializedView'),
    schema: z.string(),
    table: z.string(),
    definition: materializedViewDefinitionSchema,
    /** OR REPLACE: a materialized view of that name is replaced in one step, with its stored rows. */
    replace: z.boolean(),
  }),
  z.object({ kind: z.literal('dropMaterializedView'), schema: z.string(), table: z.string() }),
  /** The rows replace the stored rows in one step. */
  z.object({
    kind: z.literal('refreshMaterializedView'),
    schema: z.string(),
    table: z.string(),
    /** The version of the materialized view that the statement read: its rows must not be older than those stored. */
    version: z.number().int().min(1),
    /** When the statement began, milliseconds since the epoch. */
    startedAt: z.number(),
    /** The tables that the rows are made from. */
    sources: z.array(sourceTableSchema),
    /** @see MaterializedView.stored */
    query: z.string().optional(),
  }),
  /** The rows have `changeColumns`, then the columns of the table. */
  z.object({
    kind: z.literal('changeRows'),
    schema: z.string(),
    table: z.string(),
    operation: z.enum(['DELETE', 'UPDATE', 'MERGE']),
    version: readVersion,
  }),
  z.object({
    kind: z.enum(['renameTable', 'renameView', 'renameMaterializedView']),
    schema: z.string(),
    table: z.string(),
    to: z.object({ schema: z.string(), table: z.string() }),
  }),
  /** Tables and views keep their names. */
  z.object({ kind: z.literal('renameSchema'), schema: z.string(), to: z.string() }),
  z.object({
    kind: z.literal('alterColumns'),
    schema: z.string(),
    table: z.string(),
    alteration: columnAlterationSchema,
  }),
  z.object({
    kind: z.literal('comment'),
    schema: z.string(),
    table: z.string(),
    object: z.enum(['table', 'view', 'materializedView']),
    /** Absent: the comment is on the object itself. */
    column: z.string().optional(),
    /** Absent: the comment is removed. */
    text: z.string().optional(),
  }),
  z.object({ kind: z.literal('truncateTable'), schema: z.string(), table: z.string() }),
  /**
   * EXECUTE optimize. The rows are those of a scan of the table whose handle has `rewrite: true` added, and the same
   * `smallBytes`.
   */
  z.object({
    kind: z.literal('rewriteTable'),
    schema: z.string(),
    table: z.string(),
    version: readVersion,
    /** Files below this size are written anew together, bytes. Absent: the connector decides. */
    smallBytes: z.number().int().min(0).optional(),
  }),
  /** EXECUTE expire_snapshots: versions that were replaced longer ago than `retention` cannot be read any more. */
  z.object({
    kind: z.literal('expireVersions'),
    schema: z.string(),
    table: z.string(),
    /** A duration, `7d`, before `startedAt`. */
    retention: z.string(),
    /** When the statement began, milliseconds since the epoch. */
    startedAt: z.number(),
  }),
])
export type TableChange = z.infer<typeof tableChangeSchema>

/** Identifies the table that had the name when the statement was analyzed. */
export interface AnalyzedTable {
  /** See `ConnectorTable.id`. */
  readonly id?: string
  readonly columns: readonly Pick<StoredColumn, 'name' | 'type' | 'nullable'>[]
}

/** A column of written rows. */
const targetColumnSchema = storedColumnSchema.extend({
  /** The column's name in the files, if it is another. */
  physical: z.string().optional(),
})

/**
 * The first columns of the rows of `changeRows`. A row removes the row (`$file`, `$row`) of the table when these are not
 * NULL, and is itself a row of the table when `$live` is true. Both come from a scan with `rowIds`.
 *
 * A row whose `$live` is NULL does neither. MERGE may write such rows with a `$file` and a `$row`: they count when it is
 * checked that no row of the table matched twice in one case. `$case` is the number of the case; rows with equal
 * `$file`, `$row` and `$case` fail the statement with MERGE_TARGET_ROW_MULTIPLE_MATCHES. It is NULL where nothing has to
 * be checked: in DELETE, in UPDATE, and in inserted rows.
 */
export const changeColumns = [
  { name: '$file', type: 'integer', nullable: true },
  { name: '$row', type: 'bigint', nullable: true },
  { name: '$live', type: 'boolean', nullable: true },
  { name: '$case', type: 'integer', nullable: true },
] as const satisfies readonly StoredColumn[]

/** A change resolved to a snapshot; plain JSON, so that it fits a fragment. */
export const writeTargetSchema = z.object({
  catalog: z.string(),
  queryId: queryIdSchema,
  change: tableChangeSchema,
  /** Manifest version the change was resolved at; 0 when there was none. */
  baseVersion: z.number().int().min(0),
  /** Identifies the table that an insert is for: a table that was dropped and created again has another id. */
  tableId: z.string().optional(),
  /** The columns rows are written in, in order: those of the change or of the table; empty for changes without rows. */
  columns: z.array(targetColumnSchema),
  /** The number, within the table, of the schema that the written files have. */
  fileSchema: z.number().int().optional(),
  /** How many files the table had at `baseVersion`: files that were added later are not affected by the change. */
  baseFiles: z.number().int().optional(),
})
export type WriteTarget = z.infer<typeof writeTargetSchema>

/** A file as the engine wrote it: DuckDB's RETURN_STATS. */
export interface EngineFile {
  /** Absolute, inside the attempt's folder. */
  readonly path: string
  readonly rows: number
  readonly bytes: number
  /** Compressed bytes by column name. */
  readonly columnBytes?: Readonly<Record<string, number>>
}

/** A file that belongs to a write. */
export const writtenFileSchema = z.object({
  /** Relative to the table's folder. */
  path: z.string(),
  rows: z.number().int(),
  bytes: z.number().int(),
  /** SHA-256 of the file's last 64 kB, lower hex: the Parquet footer, with every column chunk. Users never see it. */
  footer: z.string(),
  /** Compressed bytes by column name. */
  columnBytes: z.record(z.string(), z.number()).optional(),
  /** For a file of `changeRows`. */
  change: z
    .object({
      /** Rows that are rows of the table. */
      live: z.number().int(),
      /** Rows that remove a row, are a row of the table, or both: the client's count. */
      acting: z.number().int(),
      /** How many rows it removes from files of the table, which are counted as `$file` counts them. */
      removed: z.array(z.object({ file: z.number().int(), rows: z.number().int() })),
    })
    .optional(),
})
export type WrittenFile = z.infer<typeof writtenFileSchema>

/** The number of rows that a write changes, as clients see it. */
export function changedRows(files: readonly WrittenFile[]): number {
  return files.reduce((sum, { rows, change }) => sum + (change?.acting ?? rows), 0)
}

/** The decision to commit, as WritePrepared records it; plain JSON. */
export const preparedWriteSchema = z.object({
  ...writeTargetSchema.shape,
  files: z.array(writtenFileSchema),
  /** For a dropped schema with cascade: the tables and views that are dropped too. */
  cascade: z.array(z.string()).optional(),
})
export type PreparedWrite = z.infer<typeof preparedWriteSchema>

export interface CommittedWrite {
  /** Manifest version that first had the change, as far as it is still known. */
  readonly version: number
  /** False when another call had committed it before. */
  readonly changed: boolean
}

export interface SweepOptions {
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Files of attempts of open queries are kept whatever their age: they may be prepared, or may be later. */
  isOpen(queryId: QueryId): boolean
  /** When the oldest open query was created, milliseconds since the epoch: versions that it may read are kept. */
  readonly oldestOpenQuery?: number
}

export interface SweepReport {
  readonly filesRemoved: number
  readonly bytesRemoved: number
  /** Tables whose rows were changed so often that they should be rewritten (`rewriteTable`). */
  readonly worthRewriting: readonly { readonly schema: string; readonly table: string }[]
}

/**
 * Whether two changes of one catalog must not be prepared at the same time. Inserts into one table may, also beside a
 * change of its rows; changes of a schema wait for all changes within it.
 */
export function conflicts(a: TableChange, b: TableChange): boolean {
  if (addsFilesOnly(a) && (addsFilesOnly(b) || keepsLaterFiles(b))) return false
  if (addsFilesOnly(b) && keepsLaterFiles(a)) return false
  return changedNames(a).some((one) => changedNames(b).some((other) => overlap(one, other)))
}

function addsFilesOnly({ kind }: TableChange): boolean {
  return kind === 'insert'
}

/** Whether the change leaves files alone that were added after its base version. */
function keepsLaterFiles({ kind }: TableChange): boolean {
  return kind === 'changeRows' || kind === 'rewriteTable'
}

interface ChangedName {
  readonly schema: string
  /** Absent: the schema with all its objects. */
  readonly table?: string
}

/** The names that mean something else after the change. */
function changedNames(change: TableChange): readonly ChangedName[] {
  if (change.kind === 'renameSchema') return [{ schema: change.schema }, { schema: change.to }]
  if ('to' in change) return [change, change.to]
  return [change]
}

function overlap(a: ChangedName, b: ChangedName): boolean {
  return a.schema === b.schema && (a.table === undefined || b.table === undefined || a.table === b.table)
}
