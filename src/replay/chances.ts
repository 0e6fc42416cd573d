import type { FunctionCall } from '../sql/syntax/ast.ts'
import type { Query, Table } from '../sql/syntax/ast-query.ts'
import type { Statement } from '../sql/syntax/ast-statements.ts'
import { parseStatement } from '../sql/syntax/parser.ts'
import { printStatement } from '../sql/syntax/printer.ts'
import { childrenOf, withNodes, type AnyNode } from '../sql/syntax/tree.ts'
import type { Chance } from './verdict.ts'

/** Functions whose result depends on chance or on the order of the input rows, or is an estimate by design. */
const CHANCY = new Set(
  `rand random uuid shuffle random_string
  approx_distinct approx_percentile approx_most_frequent approx_set numeric_histogram
  tdigest_agg qdigest_agg merge make_set_digest merge_set_digest
  arbitrary any_value array_agg map_agg multimap_agg map_union min_by max_by reduce_agg`.split(/\s+/),
)
/** Functions whose result an ORDER BY inside the call determines. */
const ORDERED_WITHIN = new Set(['array_agg', 'arbitrary', 'any_value', 'map_agg', 'multimap_agg'])
const CLOCK = new Set(['now', 'current_timestamp', 'current_date', 'current_time', 'localtime', 'localtimestamp'])
const CLOCK_NODES: Readonly<Record<string, string>> = {
  CurrentDate: 'current_date',
  CurrentTime: 'current_time',
  CurrentTimestamp: 'current_timestamp',
  LocalTime: 'localtime',
  LocalTimestamp: 'localtimestamp',
}

/** The parts of a statement's text for which two runs may rightly differ; `undefined` if there are none. */
export function chanceIn(statement: Statement): Chance | undefined {
  const found = { clock: new Set<string>(), functions: new Set<string>(), server: new Set<string>() }
  // SHOW, DESCRIBE and EXPLAIN show the state of the server that answers them.
  if (statement.kind !== 'Query') found.server.add(statement.kind.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ').toUpperCase())
  for (const node of nodesOf(statement)) {
    const clock = CLOCK_NODES[node.kind]
    if (clock !== undefined) found.clock.add(clock)
    if (node.kind === 'SampledRelation') found.functions.add('TABLESAMPLE')
    if (node.kind === 'FunctionCall') noteCall(node as FunctionCall, found)
    if (node.kind === 'Table') noteTable(node as Table, found.server)
  }
  for (const kind of ['server', 'clock', 'functions'] as const)
    if (found[kind].size > 0) return { kind, names: [...found[kind]].toSorted() }
  return undefined
}

function noteCall(call: FunctionCall, found: { clock: Set<string>; functions: Set<string> }): void {
  const name = call.name.parts.at(-1)!.value.toLowerCase()
  if (CLOCK.has(name)) found.clock.add(name)
  if (CHANCY.has(name) && !(call.orderBy && ORDERED_WITHIN.has(name))) found.functions.add(name)
}

function noteTable({ name: { parts } }: Table, names: Set<string>): void {
  const [first, second] = parts.map((part) => part.value.toLowerCase())
  if (first === 'system' || first === 'information_schema' || (parts.length === 3 && second === 'information_schema'))
    names.add(parts.map((part) => part.value).join('.'))
}

/** Whether the text has a LIMIT without an order, which may choose any rows. */
export function hasUnorderedLimit(statement: Statement): boolean {
  return nodesOf(statement).some((node) => {
    const { limit, orderBy } = node as Query
    return node.kind === 'Query' && limit !== undefined && limit.rowCount !== 'ALL' && orderBy === undefined
  })
}

/** A question to a server: whether a LIMIT had to choose among rows. */
export interface BorderQuestion {
  readonly kind: 'limit' | 'tie'
  /** Returns one row with one count. If it is more than `kept`, the LIMIT had to choose. */
  readonly sql: string
  readonly kept: bigint
}

/**
 * The questions for each LIMIT of a query, outermost first: how many rows there are without it. With an order: how many
 * rows there are if all ties of the last row are included.
 */
export function borderQuestions(statement: Statement): readonly BorderQuestion[] {
  if (statement.kind !== 'Query') return []
  return nodesOf(statement).flatMap((node) => (node.kind === 'Query' ? questionOf(node as Query, statement) : []))
}

function questionOf(query: Query, outermost: Query): readonly BorderQuestion[] {
  const { limit, orderBy, offset } = query
  const count = limit?.rowCount
  if (limit === undefined || count === 'ALL' || count?.kind === 'Parameter') return []
  const isTie = orderBy !== undefined && offset === undefined
  if (isTie && limit.kind === 'FetchFirst' && limit.withTies) return []
  const rowCount = count ?? undefined
  const asked: Query = {
    ...query,
    limit: isTie ? { kind: 'FetchFirst', span: limit.span, rowCount, withTies: true } : undefined,
    // With an OFFSET, ties are not counted: then it is unknown whether the LIMIT had to choose.
    orderBy: isTie ? orderBy : undefined,
    // Only the outermost query has these, and they are there already.
    functions: [],
    sessionProperties: [],
  }
  const kind = orderBy === undefined ? 'limit' : 'tie'
  if (kind === 'tie' && !isTie) return []
  const kept = rowCount === undefined ? 1n : BigInt(rowCount.value)
  return [{ kind, sql: printStatement(countOf(asked, query === outermost ? undefined : outermost)), kept }]
}

const COUNT = parseStatement('SELECT count(*) FROM (SELECT 1) q') as Query

/** The tree of a count of a query's rows, with the named queries that it may refer to. */
function countOf(query: Query, outermost: Query | undefined): Query {
  const counted = withNodes(COUNT, (node) =>
    node.kind === 'TableSubquery' ? ({ ...node, query } as AnyNode) : undefined,
  )
  return { ...counted, with: outermost?.with }
}

function nodesOf(root: AnyNode): readonly AnyNode[] {
  const nodes: AnyNode[] = []
  const left: AnyNode[] = [root]
  for (let node = left.pop(); node; node = left.pop()) {
    nodes.push(node)
    left.push(...childrenOf(node).toReversed())
  }
  return nodes
}
