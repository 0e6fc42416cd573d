import type { StatisticsByColumn } from '../connectors/spi/column-statistics.ts'
import type {
  ConnectorAbilities,
  ConnectorTable,
  SchemaTableName,
  TableHandle,
  TablePoint,
  TableStatistics,
} from '../connectors/spi/connector.ts'
import type { AnalyzedTable, TableChange } from '../connectors/spi/table-writer.ts'
import type { CpuBudget } from '../shared/cpu-budget.ts'
import type { ErrorName } from '../shared/error-table.ts'
import type { ColumnId, ReadView, RelationNode } from './analyzer/tree.ts'
import type { ParsedStatement, StatementText } from './parsed-statement.ts'
import type { SessionContext } from './session.ts'
import type { SqlType } from './types/sql-type.ts'

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
  /** @param at for catalogs with the ability `snapshots`: the wanted version of the table */
  table(catalog: string, schema: string, table: string, at?: TablePoint): Promise<ConnectorTable | undefined>
  statistics(catalog: string, handle: TableHandle): Promise<KnownStatistics>
  /** The changes that a catalog supports; undefined if the catalog does not exist. */
  abilities(catalog: string): ConnectorAbilities | undefined
}

/** Statistics of a table that a catalog knows without reading it; columns by name. */
export interface KnownStatistics extends TableStatistics {
  readonly columns?: StatisticsByColumn
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

/** Durations of front-end steps that cannot be measured from outside, in milliseconds. */
export interface FrontEndTimes {
  readonly parseMs: number
  /**
   * Time to resolve names against the objects that this user may see. This is the only step that queries the catalogs.
   */
  readonly resolveMs: number
  /** 0 if no query was rendered. */
  readonly renderMs: number
}

/** A query with a meaning: the tree of its relations. The planner renders it for the engine. */
export interface BoundQuery {
  readonly node: RelationNode
  /** The columns of the result, in order. */
  readonly columns: readonly {
    /** Undefined for a column without a name. */
    readonly name: string | undefined
    readonly type: SqlType
    readonly column: ColumnId
  }[]
  /** Whether a top-level ORDER BY fixes the order of its rows. */
  readonly ordered: boolean
  /** The sources of scanned columns: `catalog.schema.table.column`. */
  readonly sources: ReadonlyMap<ColumnId, string>
  /** Columns that only queries inside row filters and column masks define. */
  readonly ofRules: ReadonlySet<ColumnId>
  /** The views that the query reads. */
  readonly views: readonly ReadView[]
  /** Whether one task must read all splits of the scans, in their order. */
  readonly wholeTable?: true
  /** The session of the statement, with the properties that WITH SESSION sets. */
  readonly session: SessionContext
}

/** The result of `bind`. */
export type BoundStatement = StatementOf<BoundQuery>

/**
 * A statement with a meaning.
 * @template Q its queries: trees as `bind` returns them, or texts as the planner returns them
 */
export type StatementOf<Q> =
  | {
      /** A query: SELECT, VALUES, TABLE, SHOW …, DESCRIBE …, or EXECUTE of a query. */
      readonly kind: 'query'
      readonly queryType: QueryType
      readonly columns: readonly ResultColumn[]
      readonly query: Q
      /** The properties that its WITH SESSION sets; absent without that clause. */
      readonly properties?: Readonly<Record<string, string>>
      readonly lineage: Lineage
      readonly warnings: readonly Warning[]
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
      /** One row: the id of the query, and the message or NULL, both texts. Reads no table. */
      readonly values: Q
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
      readonly statement: StatementOf<Q>
      /** For a statement of definitions, which has no plan: the text that EXPLAIN prints. */
      readonly definition?: string
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
      /** For rows of an existing table: the table as they were analyzed for it. */
      readonly analyzedTable?: AnalyzedTable
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
        readonly query: Q
        readonly lineage: Lineage
      }
      /** For CREATE VIEW and changes of rows: the columns of the view or the changed columns, and their lineage. */
      readonly defines?: { readonly columns: readonly Pick<ResultColumn, 'name'>[]; readonly lineage: Lineage }
      readonly warnings: readonly Warning[]
    }

/** The inputs of `bind` besides the syntax. */
export interface BindInput {
  /** Has the prepared statements with which the statement was parsed. */
  readonly session: SessionContext
  readonly metadata: MetadataPort
  /** The CPU time for planning: see `budgetOf`. */
  readonly budget: CpuBudget
  /** Called with the duration of the steps, also for a statement that is refused later. */
  readonly onTimes?: ((times: FrontEndTimes) => void) | undefined
}

/**
 * Analyzes a statement in two calls; each throws EngineError with Trino's error name and the position.
 *
 *     parse   src/sql/syntax/parser.ts       the text alone: the syntax tree
 *     bind    src/sql/analyzer/resolve.ts    asks the catalogs for all objects that the tree names; only this waits
 *             src/sql/analyzer/analyze.ts    names, types and rights: the tree of relations
 */
export interface SqlFrontEnd {
  /**
   * Parses a text within the time for planning, unless it was parsed before. A text that is no statement is a result
   * too: `bind` throws its error.
   * @throws EngineError QUERY_TEXT_TOO_LARGE, EXCEEDED_TIME_LIMIT
   */
  parse(text: StatementText, session: SessionContext): ParsedStatement
  /** The CPU time that parsing has left for the other steps of planning. */
  budgetOf(parsed: ParsedStatement, session: SessionContext): CpuBudget
  bind(parsed: ParsedStatement, input: BindInput): Promise<BoundStatement>
}
