import type { TableHandle } from '../connectors/spi/connector.ts'
import type { ScanConditions } from '../connectors/spi/scan-conditions.ts'
import type { ScanPredicate } from '../connectors/spi/scan-predicate.ts'
import type { ScanQuestion } from '../connectors/spi/scan-question.ts'
import { unreachable } from '../shared/unreachable.ts'
import type { StatementOf } from '../sql/front-end.ts'

/** A statement whose queries are texts for the engine. It is plain data. */
export type PlannedStatement = StatementOf<RenderedQuery>

/** A chain of views, the outermost first, and the columns that are read through it. */
export interface AccessPath {
  readonly views: readonly string[]
  readonly columns: readonly string[]
}

/** A view that the query reads. */
export interface ViewRead {
  readonly catalog: string
  readonly schema: string
  readonly view: string
  readonly columns: readonly string[]
  /** The views that name it, the outermost first; empty if the statement names it itself. */
  readonly via: readonly string[]
}

/** A table that the query reads. */
export interface TableRead {
  readonly catalog: string
  readonly schema: string
  readonly table: string
  readonly columns: readonly string[]
  /**
   * How the statement reaches the table: one entry for the statement itself, with no views, and one for each chain of
   * views. Absent if only the statement itself names the table.
   */
  readonly paths?: readonly AccessPath[]
  /**
   * Identifies the table's contents: the text changes when the rows may have changed. Absent if the contents' version
   * is unknown.
   */
  readonly snapshot?: string
}

/**
 * A rendered query. The planner makes its stages once the splits of its scans are known. Its `sql` reads `"$s0"`,
 * `"$s1"` … and names its columns `c0`, `c1` …
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
  /**
   * The tables that the statement itself reads, each once. Tables and columns that only access rules read are left out.
   * The list depends on push-down (docs/decisions/0012-the-planner-finds-the-tables-read.md).
   */
  readonly reads: readonly TableRead[]
  /** The views that the statement itself reads, without those of rules. */
  readonly views: readonly ViewRead[]
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

/** The same statement with other queries. */
export function mapQueries<A, B>(statement: StatementOf<A>, change: (query: A) => B): StatementOf<B> {
  switch (statement.kind) {
    case 'query':
      return { ...statement, query: change(statement.query) }
    case 'call':
      return { ...statement, values: change(statement.values) }
    case 'explain':
      return { ...statement, statement: mapQueries(statement.statement, change) }
    case 'write': {
      const { source, ...write } = statement
      return source ? { ...write, source: { ...source, query: change(source.query) } } : write
    }
    case 'session':
      return statement
    default:
      return unreachable(statement)
  }
}
