import type { StatisticsByColumn } from '../connectors/spi/column-statistics.ts'
import type {
  ConnectorAbilities,
  ConnectorTable,
  SchemaTableName,
  TableHandle,
  TableStatistics,
} from '../connectors/spi/connector.ts'
import type { ScanConditions } from '../connectors/spi/scan-conditions.ts'
import type { ScanPredicate } from '../connectors/spi/scan-predicate.ts'
import type { ScanQuestion } from '../connectors/spi/scan-question.ts'
import type { TableChange } from '../connectors/spi/table-writer.ts'
import type { ErrorName } from '../shared/error-table.ts'
import type { ParsedStatement, StatementText } from './parsed-statement.ts'
import type { SessionContext } from './session.ts'

export type { SessionContext } from './session.ts'

/**
 * The metadata that one statement may request. The front end itself does no I/O: `resolve` (below) asks this port for
 * every catalog object that a statement and its views name; then analysis runs without waiting. `information_schema`
 * and the `system` catalog come through this port as well, as ordinary tables.
 */
export interface MetadataPort {
  catalogs(): readonly string[]
  schemas(catalog: string): Promise<readonly string[]>
  /** @param named tables whose names this predicate rejects may be left out */
  tables(catalog: string, schema?: string, named?: (table: string) => boolean): Promise<readonly SchemaTableName[]>
  table(catalog: string, schema: string, table: string): Promise<ConnectorTable | undefined>
  statistics(catalog: string, handle: TableHandle): Promise<KnownStatistics>
  /** The changes that a catalog supports; undefined if the catalog does not exist. */
  abilities(catalog: string): ConnectorAbilities | undefined
}

/** Statistics of a table that a catalog knows without reading it; columns by name. */
export interface KnownStatistics extends TableStatistics {
  readonly columns?: StatisticsByColumn
}

/** A table that the query reads. */
export interface TableRead {
  readonly catalog: string
  readonly schema: string
  readonly table: string
  readonly columns: readonly string[]
  /**
   * Identifies the table's contents: the text changes when the rows may have changed. Absent if the contents' version
   * is unknown.
   */
  readonly snapshot?: string
}

/** A result column as sent to the client: Trino's name, type text and wire signature. */
export interface ResultColumn {
  readonly name: string
  readonly type: string
  readonly typeSignature: unknown
  /** `catalog.schema.table.column` of every source column that the value is computed from. */
  readonly lineage: readonly string[]
}

/** How a value is derived: copied, computed, or aggregated over many rows. Names are OpenLineage's. */
export type DirectLineage = 'IDENTITY' | 'TRANSFORMATION' | 'AGGREGATION'
/**
 * How a source influences a value, or the presence of its row, without being part of the value. Names are
 * OpenLineage's.
 */
export type IndirectLineage = 'CONDITIONAL' | 'FILTER' | 'GROUP_BY' | 'JOIN' | 'SORT' | 'WINDOW'

export interface LineageSource {
  /** `catalog.schema.table.column` */
  readonly source: string
  readonly direct: DirectLineage | undefined
  readonly indirect: readonly IndirectLineage[]
  /** Whether a column mask of the rules was applied to the value. */
  readonly masked: boolean
}

/** The sources of a query's values, sorted by name. */
export interface Lineage {
  /** By output column, in the query's order. */
  readonly columns: readonly (readonly LineageSource[])[]
  /** Sources that decide which rows the result has, and their order. */
  readonly rows: readonly LineageSource[]
}

/** A change of the client's session; the coordinator sends it as response headers. */
export type SessionChange =
  | { readonly kind: 'SetCatalog'; readonly catalog: string }
  | { readonly kind: 'SetSchema'; readonly schema: string }
  | { readonly kind: 'SetPath'; readonly path: string }
  | { readonly kind: 'SetSession'; readonly name: string; readonly value: string }
  | { readonly kind: 'ClearSession'; readonly name: string }
  | { readonly kind: 'SetRole'; readonly catalog: string; readonly role: string }
  | { readonly kind: 'AddedPrepare'; readonly name: string; readonly sql: string }
  | { readonly kind: 'DeallocatedPrepare'; readonly name: string }
  | { readonly kind: 'StartTransaction'; readonly isolation: string; readonly readOnly: boolean }
  | { readonly kind: 'Commit' }
  | { readonly kind: 'Rollback' }
  | { readonly kind: 'SetAuthorizationUser'; readonly user: string }
  | { readonly kind: 'ResetAuthorizationUser' }

export interface Warning {
  readonly warningCode: { readonly code: number; readonly name: string }
  readonly message: string
}

/** Trino's ten query types, for metrics and resource groups. */
export type QueryType =
  | 'SELECT'
  | 'EXPLAIN'
  | 'DESCRIBE'
  | 'INSERT'
  | 'DELETE'
  | 'UPDATE'
  | 'MERGE'
  | 'ANALYZE'
  | 'DATA_DEFINITION'
  | 'ALTER_TABLE_EXECUTE'

/**
 * A rendered query, which the planner splits into stages. Its `sql` reads `"$s0"`, `"$s1"` … and names its columns `c0`
 * …
 */
export interface RenderedQuery {
  readonly sql: string
  readonly scans: readonly {
    readonly catalog: string
    readonly schema: string
    readonly table: string
    readonly handle: TableHandle
    readonly columns: readonly string[]
    /** Conditions that hold for every row of the scan that the query uses. */
    readonly where?: ScanConditions
    /** The same conditions, restricted to partition columns. */
    readonly partitions?: ScanPredicate
    /**
     * The question that the scan asks its connector, if the connector answers it. For groups, `columns` are the columns
     * of the answer.
     */
    readonly question?: ScanQuestion
    /** Whether only a row filter or column mask reads the scan: the client then sees no figures of it. */
    readonly ofRule?: boolean
    /** The scan has the columns `$file` and `$row` behind `columns`. */
    readonly rowIds?: true
  }[]
  /** DuckDB expression of each output column for use inside `json_array(…)`, over `c0` …; same order as `columns`. */
  readonly wire: readonly string[]
  /**
   * Whether results over disjoint sets of scan 0's splits can be concatenated: one scan, no aggregate, sort, limit,
   * window, distinct.
   */
  readonly streams: boolean
  /** Whether a top-level ORDER BY fixes the order of the rows. */
  readonly ordered: boolean
  /** Whether DuckDB may need very much time or memory to prepare the query. It then runs in an engine of its own. */
  readonly risky: boolean
  /**
   * Whether the query may share an engine if its tables are small: no UNNEST, sequence, lambda, recursion; at most 5
   * joins.
   */
  readonly simple: boolean
  /** The operator tree for EXPLAIN, with Trino's node names. */
  readonly outline: PlanNode
  /** The only row in wire format, if the query consists of literals. */
  readonly literalRow: string | undefined
}

/** A node of the logical plan as EXPLAIN shows it. */
export interface PlanNode {
  /** `Output`, `TableScan`, `ScanFilterProject`, `InnerJoin`, `Aggregate`, `TopN`, `Sort`, `Limit`, `Window` … */
  readonly name: string
  /** Text in brackets after the name: `[table = tpch:tiny:nation]`. */
  readonly details: Readonly<Record<string, string>>
  /** Output columns `name:type`. */
  readonly layout: readonly string[]
  readonly children: readonly PlanNode[]
}

/** Durations of front-end steps that cannot be measured from outside, in milliseconds. */
export interface FrontEndTimes {
  readonly parseMs: number
  /**
   * Time to resolve names against the objects that this user may see. This is the only step that queries the catalogs.
   */
  readonly resolveMs: number
  /** 0 if nothing was rendered. */
  readonly renderMs: number
}

/** The result of analyzing a statement. */
export type BoundStatement =
  | {
      /** A query: SELECT, VALUES, TABLE, SHOW …, DESCRIBE …, or EXECUTE of a query. */
      readonly kind: 'query'
      readonly queryType: QueryType
      readonly columns: readonly ResultColumn[]
      readonly query: RenderedQuery
      /** The properties that its WITH SESSION sets; absent without that clause. */
      readonly properties?: Readonly<Record<string, string>>
      readonly reads: readonly TableRead[]
      readonly lineage: Lineage
      readonly warnings: readonly Warning[]
      /** Rendering time, milliseconds. */
      readonly renderMs?: number
      /** Name resolution time, milliseconds. */
      readonly resolveMs?: number
    }
  | {
      /**
       * USE, SET SESSION, PREPARE, START TRANSACTION …: returns no rows; its effect is a change of the client's
       * session.
       */
      readonly kind: 'session'
      readonly queryType: QueryType
      readonly updateType: string
      readonly changes: readonly SessionChange[]
      readonly warnings: readonly Warning[]
    }
  | {
      /** CALL of `system.runtime.kill_query`; runs after the client requests the first nextUri. */
      readonly kind: 'call'
      readonly queryType: QueryType
      readonly updateType: string
      /** The statement in Trino's formatting, for EXPLAIN. */
      readonly text: string
      /** One row: the id of the query, and the message or NULL, both texts. Reads no table. */
      readonly values: RenderedQuery
      readonly warnings: readonly Warning[]
    }
  | {
      /** EXPLAIN of a statement; the coordinator adds the stages and renders the text. */
      readonly kind: 'explain'
      readonly queryType: 'EXPLAIN'
      readonly analyze: boolean
      readonly verbose: boolean
      readonly planType: 'LOGICAL' | 'DISTRIBUTED' | 'VALIDATE' | 'IO'
      readonly format: 'TEXT' | 'GRAPHVIZ' | 'JSON'
      readonly statement: BoundStatement
      readonly columns: readonly ResultColumn[]
      readonly warnings: readonly Warning[]
    }
  | {
      /** Changes data or metadata. It runs exactly once, after the first GET of its nextUri. */
      readonly kind: 'write'
      readonly queryType: QueryType
      readonly updateType: string
      readonly catalog: string
      readonly change: TableChange
      /** Whether IF [NOT] EXISTS or a similar clause makes this a no-op: the statement succeeds and changes nothing. */
      readonly settled: boolean
      /** The error to treat as `settled` if a concurrent statement was faster; absent without such a clause. */
      readonly tolerated?: ErrorName
      /** `rows`, the number of rows written, for statements that write or change rows; otherwise empty. */
      readonly columns: readonly ResultColumn[]
      /** The target columns that the statement names or creates, for records of written tables. */
      readonly writes: readonly string[]
      /**
       * The rows to write; `c0` … are the target's columns in order, for changes of rows behind `changeColumns`. Absent if
       * there are none.
       */
      readonly source?: {
        readonly columns: readonly ResultColumn[]
        readonly query: RenderedQuery
        readonly reads: readonly TableRead[]
        readonly lineage: Lineage
      }
      /** For CREATE VIEW and changes of rows: the columns of the view or the changed columns, and their lineage. */
      readonly defines?: { readonly columns: readonly Pick<ResultColumn, 'name'>[]; readonly lineage: Lineage }
      readonly warnings: readonly Warning[]
    }

/**
 * Analyzes a statement in two calls; each throws EngineError with Trino's error name and the position.
 *
 *     parse   src/sql/syntax/parser.ts       the text alone: the syntax tree
 *     bind    src/sql/analyzer/resolve.ts    asks the catalogs for all objects that the tree names; only this waits
 *             src/sql/analyzer/analyze.ts    names, types and rights
 *             src/sql/renderer/render.ts     the text for the engine
 */
export interface SqlFrontEnd {
  /**
   * Parses a text within the time for planning, unless it was parsed before. A text that is no statement is a result
   * too: `bind` throws its error.
   * @throws EngineError QUERY_TEXT_TOO_LARGE, EXCEEDED_TIME_LIMIT
   */
  parse(text: StatementText, session: SessionContext): ParsedStatement
  /**
   * @param session has the prepared statements with which the statement was parsed
   * @param onTimes called with the duration of the steps, also for a statement that is refused later
   */
  bind(
    parsed: ParsedStatement,
    session: SessionContext,
    metadata: MetadataPort,
    onTimes?: (times: FrontEndTimes) => void,
  ): Promise<BoundStatement>
}
