import type { Names, RenderSession } from '../functions/rendering.ts'
import type {
  AggregateNode,
  ColumnId,
  CommonTable,
  Expr,
  JoinNode,
  RelationNode,
  ScanNode,
  UnnestNode,
} from '../analyzer/tree.ts'
import { joined, plainName, sql, type Sql } from '../../duckdb/text/sql.ts'

/** A place of the text that reads a table, and the columns that it reads. */
export interface ReadScan {
  readonly scan: ScanNode
  readonly columns: readonly string[]
}

/** State shared by the rendering of one statement. */
export interface RenderState {
  readonly session: RenderSession
  readonly names: Names
  /** Columns that are read; all others are left out. */
  readonly needed: ReadonlySet<ColumnId>
  /** Scans in the order of `"$s0"`, `"$s1"` …, with the requested columns. */
  readonly scans: ReadScan[]
  /** The names of lambda arguments while their lambdas are rendered. */
  readonly lambdaArguments: Map<ColumnId, Sql>
  /** The size of an expression, in expressions, after repetitions and macros are expanded. */
  readonly weights: WeakMap<Expr, number>
  readonly argumentWeights: Map<ColumnId, number>
  /** The names of columns inside a lambda that binds their values. */
  readonly columnNames: Map<ColumnId, Sql>
  /** The nesting depth of the current expression. */
  readonly depth: { now: number }
  /** Names under which common tables are read, if not their own. */
  readonly tableNames: Map<number, Sql>
  /** The common tables rendered so far, by id; each after those that it reads. */
  readonly commonTables: Map<number, CommonTable>
  /** FULL joins in correlated queries. */
  readonly fullJoins: WeakSet<JoinNode>
  /** Aggregations without keys in correlated queries: they must return their one row there even without input. */
  readonly rowPerGroup: WeakSet<AggregateNode>
  /** UNNESTs inside a correlated query, not directly beside the outer row. */
  readonly inQueryOfRow: WeakSet<UnnestNode>
  /** Columns of outer rows that correlated queries read. */
  readonly outerColumns: Set<ColumnId>
  /** Columns whose computation may fail, over rows of which some were removed. */
  readonly raisingColumns: Set<ColumnId>
  /** Renders a query inside an expression. It is a member because queries and expressions are mutually recursive. */
  readonly renderQuery: (state: RenderState, node: RelationNode, outputs: readonly Output[]) => Sql
}

/** The initial state for a statement. */
export function newRenderState(given: Pick<RenderState, 'session' | 'needed' | 'renderQuery'>): RenderState {
  let names = 0
  return {
    names: { fresh: () => plainName(`v${names++}`) },
    ...given,
    scans: [],
    lambdaArguments: new Map(),
    weights: new WeakMap(),
    argumentWeights: new Map(),
    columnNames: new Map(),
    depth: { now: 0 },
    tableNames: new Map(),
    commonTables: new Map(),
    fullJoins: new WeakSet(),
    rowPerGroup: new WeakSet(),
    inQueryOfRow: new WeakSet(),
    outerColumns: new Set(),
    raisingColumns: new Set(),
  }
}

/** An output column of a SELECT and its name. */
export interface Output {
  readonly column: ColumnId
  readonly name: Sql
  /** Wraps the column, for example in a comparison key. */
  readonly wrap?: (column: Sql) => Sql
}

/** Cached names: statements have few columns. */
const columnNames: Sql[] = []
const KEPT_NAMES = 1024

export function columnName(id: ColumnId): Sql {
  if (id >= KEPT_NAMES) return plainName(`x${id}`)
  return (columnNames[id] ??= plainName(`x${id}`))
}

/** Joins terms by an operator as a balanced tree: a chain would nest as deep as its length. */
export function balanced(terms: readonly Sql[], operator: 'AND' | 'OR'): Sql {
  if (terms.length === 1) return terms[0]!
  const between = operator === 'AND' ? ' AND ' : ' OR '
  if (terms.length <= 8) return sql`(${joined(terms, between)})`
  const middle = terms.length >> 1
  const halves = [balanced(terms.slice(0, middle), operator), balanced(terms.slice(middle), operator)]
  return sql`(${joined(halves, between)})`
}
