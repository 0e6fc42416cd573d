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

/** What the rendering of one statement shares. */
export interface RenderState {
  readonly session: RenderSession
  readonly names: Names
  /** Columns that somebody reads: the others are left out. */
  readonly needed: ReadonlySet<ColumnId>
  /** Scans in the order of `"$s0"`, `"$s1"` …, with the columns asked for. */
  readonly scans: { readonly scan: ScanNode; readonly columns: readonly string[] }[]
  /** What the arguments of the lambdas being rendered are called. */
  readonly lambdaArguments: Map<ColumnId, Sql>
  /** How many expressions an expression comes to once its repetitions and macros are spread out. */
  readonly weights: WeakMap<Expr, number>
  readonly argumentWeights: Map<ColumnId, number>
  /** What columns are called inside of a lambda that has their values. */
  readonly columnNames: Map<ColumnId, Sql>
  /** Of the expression being rendered. */
  readonly depth: { now: number }
  /** Under what names common tables are read, where not their own. */
  readonly tableNames: Map<number, Sql>
  /** Those rendered so far, by id: each after those that it reads. */
  readonly commonTables: Map<number, CommonTable>
  /** FULL joins in queries of each row. */
  readonly fullJoins: WeakSet<JoinNode>
  /** Aggregations without keys that stand in a query of each row: they have their one row there, too, where there is nothing. */
  readonly rowPerGroup: WeakSet<AggregateNode>
  /** UNNEST that stands in a query of each row, not beside the row itself. */
  readonly inQueryOfRow: WeakSet<UnnestNode>
  /** Columns that queries of each row read of the rows around them. */
  readonly outerColumns: Set<ColumnId>
  /** Columns whose calculation may fail, over rows of which some were removed. */
  readonly raisingColumns: Set<ColumnId>
  /** A query inside an expression; here because queries and expressions nest. */
  readonly renderQuery: (state: RenderState, node: RelationNode, outputs: readonly Output[]) => Sql
}

/** The state at the beginning of a statement. */
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

/** A column of a SELECT: what it is, and its name. */
export interface Output {
  readonly column: ColumnId
  readonly name: Sql
  /** Rendered around the column: a comparison key. */
  readonly wrap?: (column: Sql) => Sql
}

/** Statements have few columns; their names are the same pieces every time. */
const columnNames: Sql[] = []
const KEPT_NAMES = 1024

export function columnName(id: ColumnId): Sql {
  if (id >= KEPT_NAMES) return plainName(`x${id}`)
  return (columnNames[id] ??= plainName(`x${id}`))
}

/** Terms joined by an operator as a balanced tree: a chain would nest as deep as it is long. */
export function balanced(terms: readonly Sql[], operator: 'AND' | 'OR'): Sql {
  if (terms.length === 1) return terms[0]!
  const between = operator === 'AND' ? ' AND ' : ' OR '
  if (terms.length <= 8) return sql`(${joined(terms, between)})`
  const middle = terms.length >> 1
  const halves = [balanced(terms.slice(0, middle), operator), balanced(terms.slice(middle), operator)]
  return sql`(${joined(halves, between)})`
}
