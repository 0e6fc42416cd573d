import type { SlotOwner } from '../../shared/fair-queue.ts'
import type { StatisticsByColumn } from './column-statistics.ts'
import type { ScanConditions } from './scan-conditions.ts'
import type { ScanPredicate } from './scan-predicate.ts'
import type { ScanQuestion } from './scan-question.ts'
import type { FileQuestion, TableSource } from './table-source.ts'
import type { ConnectorWriter } from './table-writer.ts'

/**
 * What a catalog offers, and all that anybody may know of it. A connector runs twice: in the coordinator for
 * metadata and splits, in workers for saying what the splits of a batch read. Fragments and splits
 * name the catalog; credentials and paths come from each process's own catalog configuration and never travel.
 */
export interface Connector {
  readonly catalog: string
  readonly connectorName: string
  readonly abilities: ConnectorAbilities
  /** How changes are made; absent when `abilities` allow none. */
  readonly writer?: ConnectorWriter

  listSchemas(): Promise<readonly string[]>
  /**
   * Tables of one schema, or of all; an unknown schema gives an empty list.
   * @param named tables whose names it refuses may be left out
   */
  listTables(schema?: string, named?: (table: string) => boolean): Promise<readonly SchemaTableName[]>
  /**
   * The tables of a schema as `getTable` has each, one after the other: what is not kept of one is gone before the next. Those
   * that cannot be read are passed over. Absent where looking each up costs no more.
   * @param named tables whose names it refuses are left out
   * @param columns tables with a column of none of these names may be left out; absent: none is for its columns
   */
  describeTables?(
    schema: string,
    named: (table: string) => boolean,
    take: (table: ConnectorTable) => void,
    columns?: readonly string[],
  ): Promise<void>
  /** The table as of now, with the handle that later calls take; undefined when there is none. */
  getTable(schema: string, table: string): Promise<ConnectorTable | undefined>
  /** Row count and bytes where the connector knows them; scheduling takes unknown for large. */
  getStatistics(handle: TableHandle): Promise<TableStatistics>
  /**
   * What is known of columns without reading a row, by name; a column that is left out is not known. As `getStatistics`,
   * of the handle's snapshot. Absent where nothing is ever known.
   */
  getColumnStatistics?(handle: TableHandle): Promise<StatisticsByColumn>
  /**
   * All splits of the table as of the handle's snapshot; they read every row exactly once together. At least one, also
   * when there are no rows.
   * @param where rows that do not fulfil it may be left out
   * @param question of a table that has `answers`: the rows are what it asks for
   * @param columns those that will be read: what a split says of others may be left out; absent: all
   * @param partitions rows that do not fulfil it may be left out; about partition keys alone
   */
  listSplits(
    handle: TableHandle,
    where?: ScanConditions,
    question?: ScanQuestion,
    columns?: readonly string[],
    partitions?: ScanPredicate,
  ): Promise<readonly ConnectorSplit[]>
  /**
   * The splits as an engine gets them: with rows that only the coordinator knows. Asked in the coordinator at each attempt
   * of a task, just before it; what it adds is part of no event. Absent where splits are whole as they are listed.
   * @param columns those that will be read: values of others may be left out
   * @param asker gets the rows that he may see
   * @throws EngineError EXCEEDED_LOCAL_MEMORY_LIMIT when there are too many to be held in memory
   */
  loadSplits?(
    splits: readonly ConnectorSplit[],
    columns: readonly string[],
    asker: Asker,
  ): Promise<readonly ConnectorSplit[]>
  /**
   * What gives exactly the rows of these splits, in the columns asked for, named as asked, each held in DuckDB as its
   * SQL type is (`sql/types/duckdb-representation.ts`). Runs where the rows are read. `columns` may be empty (count(*)):
   * then the rows are only counted. Looks at no file: `verifySplits` does, beside whoever reads them.
   * @throws EngineError when it knows no such split or column
   */
  tableSource(splits: readonly ConnectorSplit[], columns: readonly string[]): Promise<TableSource>
  /**
   * Called by the worker while a batch is read, before anything of it is told, and again once it has been: what lies
   * outside a snapshot may have changed meanwhile.
   * @throws EngineError when a split is no longer what was listed
   */
  verifySplits(splits: readonly ConnectorSplit[]): Promise<void>
  /** Folders that the engine must be allowed to read for `tableSource`; absolute, with a trailing slash. */
  allowedDirectories(): readonly string[]
}

/** Whom rows are for: as whom a query runs, and who posted it where that was another. */
export interface Asker {
  readonly user: string
  readonly originalUser?: string
  readonly groups: readonly string[]
  /** Whose turn it is where reads wait for each other. */
  readonly owner: SlotOwner
  /** What of the catalogs he may know; absent: all of it. */
  readonly sight?: CatalogSight
}

/** What somebody may know to be there. */
export interface CatalogSight {
  showsCatalog(catalog: string): boolean
  showsSchema(catalog: string, schema: string): boolean
  showsTable(name: { readonly catalog: string; readonly schema: string; readonly table: string }): boolean
  showsColumn(
    name: { readonly catalog: string; readonly schema: string; readonly table: string },
    column: string,
  ): boolean
}

export interface ConnectorAbilities {
  readonly createSchema: boolean
  /** CREATE TABLE, CREATE TABLE AS and DROP TABLE. */
  readonly createTable: boolean
  readonly insert: boolean
  readonly views: boolean
  /** Splits may be listed at an older snapshot. */
  readonly snapshots: boolean
}

export interface SchemaTableName {
  readonly schema: string
  readonly table: string
  readonly kind: 'TABLE' | 'VIEW'
}

/** Opaque to everyone but its connector; plain JSON, so that it fits an event; names a snapshot. */
export type TableHandle = { readonly [key: string]: unknown }

export interface ConnectorTable extends SchemaTableName {
  readonly handle: TableHandle
  readonly columns: readonly ConnectorColumn[]
  readonly comment?: string
  /** For a view: what it was created from. */
  readonly view?: {
    readonly sql: string
    readonly catalog?: string
    readonly schema?: string
    readonly owner?: string
    readonly runAsInvoker?: boolean
  }
  /** What its administrator has fixed of it, by name, as SHOW CREATE TABLE shows it. */
  readonly properties?: Readonly<Record<string, string | number | boolean | readonly string[]>>
  /** The manifest version the handle names, for connectors that have versions. */
  readonly version?: number
  /** Names the rows that the handle does: another text once they may be others. Absent: nobody knows. */
  readonly snapshot?: string
  /** Columns that may be part of a `ScanQuestion`; absent where the table is read row by row. */
  readonly answers?: readonly string[]
}

export interface ConnectorColumn {
  readonly name: string
  /** Trino's type text, as in `columns[].type`: `varchar(25)`, `decimal(12, 2)`. */
  readonly type: string
  readonly nullable: boolean
  readonly comment?: string
  readonly hidden?: boolean
  /** Its values divide the table into partitions: conditions on it spare whole files. */
  readonly partitionKey?: true
}

/** What Trino's Hive connector says of such columns, in SHOW COLUMNS and `information_schema.columns`. */
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
  /** Compressed bytes by column name, of what the split would read; the sum over the columns read is the input size. */
  readonly columnBytes?: Readonly<Record<string, number>>
  readonly bytes?: number
}

/** What a connector folder exports: one factory, given the parsed catalog file. */
export interface ConnectorFactory {
  readonly connectorName: string
  /** @throws EngineError CONFIGURATION_INVALID naming the property */
  create(catalog: string, properties: unknown, context: ConnectorContext): Connector
}

export interface ConnectorContext {
  /** The data folder of this process, absolute. */
  readonly dataDir: string
  /** Where the tables of `memory` catalogs lie, absolute: the same folder for coordinator and workers. */
  readonly tablesDir: string
  /** Where files shipped with the project lie (`etc/`), absolute. */
  readonly shippedDir: string
  /** The folder of the catalog file: relative paths in it start there; absolute. */
  readonly catalogDir: string
  /**
   * What files hold (Parquet footers, CSV sniffing), asked of an engine of this process that may read
   * `allowedDirectories()`; rows as objects by column name, values as DuckDB's `to_json` gives them. There is no DuckDB
   * in the coordinator's or the worker's own process.
   */
  inspect(question: FileQuestion): Promise<readonly Readonly<Record<string, unknown>>[]>
  /** How values of a type are held in DuckDB: Trino's type text to DuckDB's. */
  duckdbType(type: string): string
}
