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
import type { SessionContext } from './session.ts'

export type { SessionContext } from './session.ts'

/**
 * The metadata one statement may ask for. The front end itself does no I/O: `resolve` (below) asks this port for every
 * catalog object a statement and the views in it name, then analysis runs without waiting.
 * `information_schema` and the `system` catalog come through it as well, as ordinary tables.
 */
export interface MetadataPort {
  catalogs(): readonly string[]
  schemas(catalog: string): Promise<readonly string[]>
  /** @param named tables whose names it refuses may be left out */
  tables(catalog: string, schema?: string, named?: (table: string) => boolean): Promise<readonly SchemaTableName[]>
  table(catalog: string, schema: string, table: string): Promise<ConnectorTable | undefined>
  statistics(catalog: string, handle: TableHandle): Promise<KnownStatistics>
  /** What a catalog can be asked to change; undefined for no such catalog. */
  abilities(catalog: string): ConnectorAbilities | undefined
}

/** What a catalog knows of a table without reading it; columns by name. */
export interface KnownStatistics extends TableStatistics {
  readonly columns?: StatisticsByColumn
}

/** One table the query reads. */
export interface TableRead {
  readonly catalog: string
  readonly schema: string
  readonly table: string
  readonly columns: readonly string[]
  /** Names the rows that it had: another text once they may be others. Absent: nobody knows. */
  readonly snapshot?: string
}

/** One result column as sent: Trino's name, type text, wire signature. */
export interface ResultColumn {
  readonly name: string
  readonly type: string
  readonly typeSignature: unknown
  /** `catalog.schema.table.column` of every source column it is computed from. */
  readonly lineage: readonly string[]
}

/** How a value is made of another: as it is, calculated, of many rows. Names are OpenLineage's. */
export type DirectLineage = 'IDENTITY' | 'TRANSFORMATION' | 'AGGREGATION'
/** What a value, or whether its row is there, depends on without being made of it. Names are OpenLineage's. */
export type IndirectLineage = 'CONDITIONAL' | 'FILTER' | 'GROUP_BY' | 'JOIN' | 'SORT' | 'WINDOW'

export interface LineageSource {
  /** `catalog.schema.table.column` */
  readonly source: string
  readonly direct: DirectLineage | undefined
  readonly indirect: readonly IndirectLineage[]
  /** The value went through a mask of the rules. */
  readonly masked: boolean
}

/** Where a query's values come from. Sources are sorted by name. */
export interface Lineage {
  /** By output column, in the query's order. */
  readonly columns: readonly (readonly LineageSource[])[]
  /** What decides about whole rows: which there are, and in which order. */
  readonly rows: readonly LineageSource[]
}

/** Something the client must remember: becomes response headers. */
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

/** A rendered query: what the planner cuts into stages. Its `sql` reads `"$s0"`, `"$s1"` … and names its columns `c0` … */
export interface RenderedQuery {
  readonly sql: string
  readonly scans: readonly {
    readonly catalog: string
    readonly schema: string
    readonly table: string
    readonly handle: TableHandle
    readonly columns: readonly string[]
    /** What every row that is used fulfils. */
    readonly where?: ScanConditions
    /** The same of the columns that divide the table into partitions. */
    readonly partitions?: ScanPredicate
    /** What it is asked, where its connector answers; of groups `columns` are those of the answer. */
    readonly question?: ScanQuestion
    /** Only a filter or a mask of the rules reads it: the client sees no figures of it. */
    readonly ofRule?: boolean
  }[]
  /** DuckDB expression of each output column for use inside `json_array(…)`, over `c0` …; same order as `columns`. */
  readonly wire: readonly string[]
  /** The rows over disjoint sets of scan 0's splits add up to the result: one scan, no aggregate, sort, limit, window, distinct. */
  readonly streams: boolean
  /** A top-level ORDER BY fixes the order of the rows. */
  readonly ordered: boolean
  /** What DuckDB may blow up on while preparing: prepared apart. */
  readonly risky: boolean
  /** No UNNEST, sequence, lambda, recursion; at most 5 joins: may share an engine if its tables are small. */
  readonly simple: boolean
  /** Operators as a tree, for EXPLAIN: Trino's node names. */
  readonly outline: PlanNode
  /** The only row, as the wire has it, when all it has are literals. */
  readonly literalRow: string | undefined
}

/** A node of the logical plan as EXPLAIN shows it. */
export interface PlanNode {
  /** `Output`, `TableScan`, `ScanFilterProject`, `InnerJoin`, `Aggregate`, `TopN`, `Sort`, `Limit`, `Window`, `Values` … */
  readonly name: string
  /** Text in brackets after the name: `[table = tpch:tiny:nation]`. */
  readonly details: Readonly<Record<string, string>>
  /** Output columns `name:type`. */
  readonly layout: readonly string[]
  readonly children: readonly PlanNode[]
}

/** How long steps took that are not told apart from outside, milliseconds. */
export interface FrontEndTimes {
  readonly parseMs: number
  /** Names resolved against what there is for this user to see: the only step that asks the catalogs. */
  readonly resolveMs: number
  /** 0 for what is not rendered. */
  readonly renderMs: number
}

/** What a statement turned out to be. */
export type AnalyzedStatement =
  | {
      /** A query: SELECT, VALUES, TABLE, SHOW …, DESCRIBE …, EXECUTE of one. */
      readonly kind: 'query'
      readonly queryType: QueryType
      readonly columns: readonly ResultColumn[]
      readonly query: RenderedQuery
      /** What its WITH SESSION sets; absent where it has none. */
      readonly properties?: Readonly<Record<string, string>>
      readonly reads: readonly TableRead[]
      readonly lineage: Lineage
      readonly warnings: readonly Warning[]
      /** How long its rendering took, milliseconds. */
      readonly renderMs?: number
      /** How long its names took to be resolved, milliseconds. */
      readonly resolveMs?: number
    }
  | {
      /** USE, SET SESSION, PREPARE, START TRANSACTION …: no rows; its effect is what the client remembers. */
      readonly kind: 'session'
      readonly queryType: QueryType
      readonly updateType: string
      readonly changes: readonly SessionChange[]
      readonly warnings: readonly Warning[]
    }
  | {
      /** CALL of `system.runtime.kill_query`; carried out once its client follows. */
      readonly kind: 'call'
      readonly queryType: QueryType
      readonly updateType: string
      /** The statement in Trino's form, for EXPLAIN. */
      readonly text: string
      /** One row: the id of the query, and the message or NULL, both texts. Reads no table. */
      readonly values: RenderedQuery
      readonly warnings: readonly Warning[]
    }
  | {
      /** EXPLAIN of a statement; the coordinator adds the stages and makes the text. */
      readonly kind: 'explain'
      readonly queryType: 'EXPLAIN'
      readonly analyze: boolean
      readonly verbose: boolean
      readonly planType: 'LOGICAL' | 'DISTRIBUTED' | 'VALIDATE' | 'IO'
      readonly format: 'TEXT' | 'GRAPHVIZ' | 'JSON'
      readonly statement: AnalyzedStatement
      readonly columns: readonly ResultColumn[]
      readonly warnings: readonly Warning[]
    }
  | {
      /** Changes data or metadata; carried out exactly once, after the first GET of its nextUri. */
      readonly kind: 'write'
      readonly queryType: QueryType
      readonly updateType: string
      readonly catalog: string
      readonly change: TableChange
      /** IF [NOT] EXISTS or the like was written, and things are so already: the statement succeeds and changes nothing. */
      readonly settled: boolean
      /** The error that means `settled` when others were faster; absent where such words were not written. */
      readonly tolerated?: ErrorName
      /** `rows`, the number of rows written, for CREATE TABLE AS and INSERT; none otherwise. */
      readonly columns: readonly ResultColumn[]
      /** Columns of the target that the statement names or makes, for who asks which tables are written. */
      readonly writes: readonly string[]
      /** The rows to write; `c0` … are the target's columns in order. Absent where there are none. */
      readonly source?: {
        readonly columns: readonly ResultColumn[]
        readonly query: RenderedQuery
        readonly reads: readonly TableRead[]
        readonly lineage: Lineage
      }
      /** Of a view, that is made: its columns, and what they are made of. */
      readonly defines?: { readonly columns: readonly Pick<ResultColumn, 'name'>[]; readonly lineage: Lineage }
      readonly warnings: readonly Warning[]
    }

/**
 * Text to meaning in three steps; each throws EngineError with Trino's name and the place.
 * 1. `parseStatement(sql)`                            src/sql/syntax/parser.ts
 * 2. `resolve(statement, session, metadata)`          src/sql/analyzer/resolve.ts, the only step that waits
 * 3. `analyze(statement, session, resolved)`          src/sql/analyzer/analyze.ts
 */
export interface SqlFrontEnd {
  /** @param onTimes how long the steps took, also of a statement that is refused later */
  analyzeStatement(
    sql: string,
    session: SessionContext,
    metadata: MetadataPort,
    onTimes?: (times: FrontEndTimes) => void,
  ): Promise<AnalyzedStatement>
}
