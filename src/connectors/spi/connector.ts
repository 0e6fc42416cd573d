import type { SlotOwner } from '../../shared/fair-queue.ts'
import type { StatisticsByColumn } from './column-statistics.ts'
import type { ScanConditions } from './scan-conditions.ts'
import type { ScanPredicate } from './scan-predicate.ts'
import type { ScanQuestion } from './scan-question.ts'
import type { FileQuestion, TableSource } from './table-source.ts'
import type { ConnectorWriter } from './table-writer.ts'

/**
 * The only interface to a catalog. A connector runs twice: in the coordinator for metadata and splits, and in workers,
 * where it gives the source of a batch's splits. Fragments and splits name the catalog; credentials and paths come from
 * each process's own catalog configuration and never travel.
 */
export interface Connector {
  readonly catalog: string
  readonly connectorName: string
  readonly abilities: ConnectorAbilities
  /** Makes changes; absent when `abilities` allow none. */
  readonly writer?: ConnectorWriter
  /** Present for a catalog of another server, which may be slow or away, and which lists all its schemas at once. */
  readonly remote?: {
    /** How long lists over several catalogs wait for it, milliseconds. Then they leave it out. */
    readonly listedWithinMs: number
  }
  /**
   * The catalog as another server shows it to a user. Present if only that server decides about the rights of users:
   * then the rules of this server are not about this catalog.
   */
  forUser?(user: string): Connector

  listSchemas(): Promise<readonly string[]>
  /**
   * Tables of one schema, or of all; an unknown schema gives an empty list.
   * @param named tables with names that this rejects may be left out
   */
  listTables(schema?: string, named?: (table: string) => boolean): Promise<readonly SchemaTableName[]>
  /**
   * Describes the tables of a schema, each as `getTable` does, one after the other, so that unneeded parts of one table
   * are freed before the next. Tables that cannot be read are left out. Absent when looking up each table costs no
   * more.
   * @param named tables with names that this rejects are left out
   * @param columns tables without a column of these names may be left out; absent: all tables are wanted
   */
  describeTables?(
    schema: string,
    named: (table: string) => boolean,
    take: (table: ConnectorTable) => void,
    columns?: readonly string[],
  ): Promise<void>
  /**
   * The current table, with the handle for later calls; undefined when there is none.
   * @param at for connectors with the ability `snapshots`: the version of the table that is wanted, with the columns that
   *   the table had then
   * @throws EngineError INVALID_ARGUMENTS when there is no such version, or none that is kept
   */
  getTable(schema: string, table: string, at?: TablePoint): Promise<ConnectorTable | undefined>
  /** Row count and bytes, if the connector knows them; scheduling treats unknown as large. */
  getStatistics(handle: TableHandle): Promise<TableStatistics>
  /**
   * The known facts about columns without reading a row, by name; unknown columns are left out. Like `getStatistics`
   * for the handle's snapshot. Absent when nothing is ever known.
   */
  getColumnStatistics?(handle: TableHandle): Promise<StatisticsByColumn>
  /**
   * All splits of the table as of the handle's snapshot; together they read every row exactly once. At least one split,
   * even when there are no rows.
   * @param where rows that do not meet it may be left out
   * @param question for a table that has `answers`: the rows are the answer to it
   * @param columns columns that will be read: a split may leave out facts about others; absent: all
   * @param partitions rows that do not meet it may be left out; it is about partition keys only
   */
  listSplits(
    handle: TableHandle,
    where?: ScanConditions,
    question?: ScanQuestion,
    columns?: readonly string[],
    partitions?: ScanPredicate,
  ): Promise<readonly ConnectorSplit[]>
  /**
   * The splits as an engine gets them: with rows that only the coordinator knows. Called in the coordinator just before
   * each attempt of a task; the added rows are part of no event. Absent when splits are complete as they are listed.
   * @param columns columns that will be read: values of others may be left out
   * @param asker the user; the splits have only the rows that they may see
   * @throws EngineError EXCEEDED_LOCAL_MEMORY_LIMIT when there are too many rows to hold in memory
   */
  loadSplits?(
    splits: readonly ConnectorSplit[],
    columns: readonly string[],
    asker: Asker,
  ): Promise<readonly ConnectorSplit[]>
  /**
   * The source of exactly the rows of these splits, with the given columns by their names, each held in DuckDB as its
   * SQL type requires (`sql/types/duckdb-representation.ts`). Called where the rows are read. `columns` may be empty
   * (count(*)): then the rows are only counted. Does not check files: `verifySplits` does, while the engine reads.
   * @throws EngineError for an unknown split or column; NOT_SUPPORTED for row ids of files that Quipu did not write
   */
  tableSource(
    splits: readonly ConnectorSplit[],
    columns: readonly string[],
    options?: TableSourceOptions,
  ): Promise<TableSource>
  /**
   * Called by the worker while a batch is read, before any of its pages is listed, and again after the batch has been
   * read: files outside a snapshot may have changed meanwhile.
   * @throws EngineError when a split has changed since it was listed
   */
  verifySplits(splits: readonly ConnectorSplit[]): Promise<void>
  /** Folders that the engine must be allowed to read for `tableSource`; absolute, with a trailing slash. */
  allowedDirectories(): readonly string[]
}

export interface TableSourceOptions {
  /**
   * Adds the columns `$file` (INTEGER) and `$row` (BIGINT), which identify a row of the table's version. Only for
   * connectors with the ability `rowChanges`.
   */
  readonly rowIds?: boolean | undefined
}

/** The user of a query: the user that it runs as, and the user that posted it if that is another. */
export interface Asker {
  readonly user: string
  readonly originalUser?: string
  readonly groups: readonly string[]
  /** The owner of this read in a queue of reads. */
  readonly owner: SlotOwner
  /** The parts of the catalogs that the user may know about; absent: all of them. */
  readonly sight?: CatalogSight
  /** Called with a catalog that a list leaves out, because it does not answer. */
  readonly onLeftOut?: (catalog: string, reason: string) => void
}

/** The objects that a user may know about. */
export interface CatalogSight {
  showsCatalog(catalog: string): boolean
  showsSchema(catalog: string, schema: string): boolean
  showsTable(name: { readonly catalog: string; readonly schema: string; readonly table: string }): boolean
  showsColumn(
    name: { readonly catalog: string; readonly schema: string; readonly table: string },
    column: string,
  ): boolean
  /** Whether the user may know how many rows and bytes a table has. */
  showsSize(name: { readonly catalog: string; readonly schema: string; readonly table: string }): boolean
}

export interface ConnectorAbilities {
  readonly createSchema: boolean
  /** CREATE TABLE, CREATE TABLE AS and DROP TABLE. */
  readonly createTable: boolean
  readonly insert: boolean
  readonly views: boolean
  /** DELETE, UPDATE and MERGE. */
  readonly rowChanges: boolean
  /** RENAME of schemas, tables and views; changes of columns; TRUNCATE; EXECUTE optimize. */
  readonly alterTable: boolean
  /** COMMENT ON tables, views and columns. */
  readonly comments: boolean
  readonly materializedViews: boolean
  /** FOR VERSION AS OF and FOR TIMESTAMP AS OF: older versions of tables can be read. */
  readonly snapshots: boolean
}

/** The abilities of a connector that cannot be written. */
export const READ_ONLY: ConnectorAbilities = {
  createSchema: false,
  createTable: false,
  insert: false,
  views: false,
  rowChanges: false,
  alterTable: false,
  comments: false,
  materializedViews: false,
  snapshots: false,
}

export interface SchemaTableName {
  readonly schema: string
  readonly table: string
  readonly kind: 'TABLE' | 'VIEW'
}

/** A point in the history of a table: it names the version that was current then. */
export type TablePoint =
  /** @see ConnectorTable.version, in digits. */
  | { readonly kind: 'version'; readonly version: string }
  /** A name that someone gave to a version. */
  | { readonly kind: 'reference'; readonly name: string }
  /** Milliseconds since the epoch. */
  | { readonly kind: 'time'; readonly millis: number }

/** Known only to its connector; plain JSON, so that it fits an event; names a snapshot. */
export type TableHandle = { readonly [key: string]: unknown }

export interface ConnectorTable extends SchemaTableName {
  readonly handle: TableHandle
  readonly columns: readonly ConnectorColumn[]
  readonly comment?: string
  /** For a view or a materialized view: its definition. */
  readonly view?: {
    readonly sql: string
    readonly catalog?: string
    readonly schema?: string
    readonly owner?: string
    readonly runAsInvoker?: boolean
  }
  /** For a materialized view, whose kind is TABLE. */
  readonly materialized?: MaterializedView
  /** The properties that the administrator has fixed, by name, as SHOW CREATE TABLE shows them. */
  readonly properties?: Readonly<Record<string, string | number | boolean | readonly string[]>>
  /** Distinguishes the table from all others that ever have its name; absent for connectors that write no rows. */
  readonly id?: string
  /** The manifest version the handle names, for connectors that have versions. */
  readonly version?: number
  /** Identifies the rows of the handle: the text changes when the rows may have changed. Absent: unknown. */
  readonly snapshot?: string
  /** The table of the same schema that the rows are about (`"t$history"`): reading them needs the rights on that table. */
  readonly about?: string
  /** Columns that may be part of a `ScanQuestion`; absent when the table is read row by row. */
  readonly answers?: readonly string[]
}

export interface MaterializedView {
  /** The greatest age of stale rows that are still read, milliseconds. Absent: any age. 0: only fresh rows are read. */
  readonly gracePeriodMillis?: number
  /** The rows of the last refresh: `ConnectorTable.handle` reads them. Absent before the first. */
  readonly stored?: {
    /** When the statement that refreshed it began, milliseconds since the epoch. */
    readonly refreshedAt: number
    /** The tables that the rows were made from. */
    readonly sources: readonly SourceTable[]
    /**
     * A digest of the query that made the rows, as it was analyzed: it changes with the text of views that the query
     * reads, with the rules for the owner, and with the time if the query uses it. Older manifests do not have it.
     */
    readonly query?: string | undefined
  }
}

/** A table that rows were made from. */
export interface SourceTable {
  readonly catalog: string
  readonly schema: string
  readonly table: string
  /** @see ConnectorTable.snapshot */
  readonly snapshot?: string | undefined
}

export interface ConnectorColumn {
  readonly name: string
  /** Trino's type text, as in `columns[].type`: `varchar(25)`, `decimal(12, 2)`. */
  readonly type: string
  readonly nullable: boolean
  readonly comment?: string
  readonly hidden?: boolean
  /** In an older version of a table: the name that the column has today. Absent for a dropped column. */
  readonly nameToday?: string
  /** In an older version of a table: the last name of a column that was dropped since. */
  readonly lastName?: string
  /** Its values divide the table into partitions: conditions on it skip whole files. */
  readonly partitionKey?: true
}

/** The text with which Trino's Hive connector marks such columns, in SHOW COLUMNS and `information_schema.columns`. */
export const PARTITION_KEY = 'partition key'

export interface TableStatistics {
  readonly rows?: number
  /** Compressed bytes as stored. */
  readonly bytes?: number
}

/** A unit of source data; `data` is the connector's own plain JSON and fits an event. */
export interface ConnectorSplit {
  readonly catalog: string
  readonly data: { readonly [key: string]: unknown }
  readonly rows?: number
  /** Compressed bytes that the split would read, by column name; the sum over the columns read is the input size. */
  readonly columnBytes?: Readonly<Record<string, number>>
  readonly bytes?: number
}

/** The export of a connector's folder: a factory that gets the parsed catalog file. */
export interface ConnectorFactory {
  readonly connectorName: string
  /** @throws EngineError CONFIGURATION_INVALID naming the property */
  create(catalog: string, properties: unknown, context: ConnectorContext): Connector
}

export interface ConnectorContext {
  /** The data folder of this process, absolute. */
  readonly dataDir: string
  /** The folder with the tables of `memory` catalogs, absolute: the same for coordinator and workers. */
  readonly tablesDir: string
  /** The folder with files shipped with the project (`etc/`), absolute. */
  readonly shippedDir: string
  /** The folder of the catalog file: relative paths in it start there; absolute. */
  readonly catalogDir: string
  /**
   * Answers a question about files (Parquet footers, CSV sniffing). An engine of this process answers; it may read
   * `allowedDirectories()`. Rows are objects by column name, with values as DuckDB's `to_json` gives them. The
   * coordinator's and the worker's own processes have no DuckDB.
   */
  inspect(question: FileQuestion): Promise<readonly Readonly<Record<string, unknown>>[]>
  /** The DuckDB type that holds values of a type, from Trino's type text. */
  duckdbType(type: string): string
}
