import type {
  ScanKey,
  ScanMeasure,
  ScanOrder,
  ScanQuestion,
  ScanTerm,
  ScanValues,
} from '../../connectors/spi/scan-question.ts'
import { timeUnits } from '../../connectors/spi/scan-question.ts'
import type {
  AggregateNode,
  ColumnId,
  DistinctNode,
  Expr,
  RelationNode,
  ScanNode,
  SortKey,
} from '../../sql/analyzer/tree.ts'
import { mapChildren, someNode } from '../../sql/analyzer/walk.ts'
import type { SqlType } from '../../sql/types/sql-type.ts'
import { typeName } from '../../sql/types/type-text.ts'
import { constantText, dayOf, termsIn, withoutWidening, type ConstantTimes, type Surroundings } from './scan-terms.ts'

/**
 * Returns the tree with questions at each scan of a table that can answer them: conditions with constants, the first
 * rows of an order, groups. An aggregation that the table answers is removed from the tree. All other nodes stay, so an
 * answer with more rows than requested is also correct.
 */
export function withQuestions(root: RelationNode, times: ConstantTimes): RelationNode {
  if (!someNode(root, (node) => node.kind === 'scan' && node.answers !== undefined)) return root
  const around: Surroundings = { ...times, valuesOf: ({ node, columns }) => valuesOf(node, columns[0]!, around) }
  return asked(root, around, NOTHING)
}

/** The predicates above a relation that hold for every used row, and the expressions computed there. */
interface Around {
  readonly predicates: readonly Expr[]
  /** The expressions computed between the relation and the predicates, by column. */
  readonly calculated: ReadonlyMap<ColumnId, Expr>
}

const NOTHING: Around = { predicates: [], calculated: new Map() }

function asked(node: RelationNode, times: Surroundings, around: Around): RelationNode {
  const alone = (input: RelationNode): RelationNode => asked(input, times, NOTHING)
  const inside = (expr: Expr): Expr => askedInside(expr, times)
  const chain = chainOf(node)
  if (chain) return withQuestion(node, { terms: termsOf(chain, times, around).terms }, inside)
  switch (node.kind) {
    case 'aggregate':
      return groupedScan(node, times) ?? { ...node, input: alone(node.input) }
    case 'distinct':
      return groupedScan(node, times) ?? { ...node, input: asked(node.input, times, around) }
    case 'limit':
      return { ...node, input: firstRows(node, times) ?? alone(node.input) }
    case 'filter': {
      const predicates = [...around.predicates, node.predicate]
      return { ...node, predicate: inside(node.predicate), input: asked(node.input, times, { ...around, predicates }) }
    }
    case 'project': {
      const calculated = new Map(around.calculated)
      for (const { id, expression } of node.columns) calculated.set(id, expression)
      return {
        ...node,
        columns: node.columns.map((column) => ({ ...column, expression: inside(column.expression) })),
        input: asked(node.input, times, { ...around, calculated }),
      }
    }
    case 'sort':
      return { ...node, input: asked(node.input, times, around) }
    // Conditions above must not restrict rows that the rules read but the user must not see.
    case 'barrier':
    case 'sample':
    case 'window':
      return { ...node, input: alone(node.input) }
    case 'join':
      return askedJoin(node, times, around)
    case 'with':
      return {
        ...node,
        tables: node.tables.map((table) => ({
          ...table,
          node: alone(table.node),
          ...(table.step && { step: { ...table.step, node: alone(table.step.node) } }),
        })),
        body: asked(node.body, times, around),
      }
    case 'set':
      return { ...node, inputs: node.inputs.map((input) => ({ ...input, node: alone(input.node) })) }
    case 'scan':
    case 'values':
    case 'arrays':
    case 'unnest':
    case 'cte':
    case 'sequence':
      return node
  }
}

/** On the preserved side of an outer join, all rows are used; on the other side, only rows that match the condition. */
function askedJoin(
  node: Extract<RelationNode, { kind: 'join' }>,
  times: Surroundings,
  { predicates, calculated }: Around,
): RelationNode {
  const { type, condition, left, right } = node
  const own = condition === undefined ? [] : [condition]
  const inner = type === 'inner' || type === 'cross'
  const known = [...(inner ? predicates : []), ...own]
  const side = (kept: 'left' | 'right'): Around => {
    const removes = inner || (type !== kept && type !== 'full')
    return {
      predicates: [
        ...(inner || type === kept ? predicates : []),
        ...(removes ? [...own, ...matches(known, kept === 'left' ? right : left, [...predicates, ...own])] : []),
      ],
      calculated,
    }
  }
  return {
    ...node,
    ...(condition && { condition: askedInside(condition, times) }),
    left: asked(left, times, side('left')),
    right: asked(right, times, side('right')),
  }
}

/**
 * Derives predicates for one join side from equalities: its value is among the used values of the other side's column.
 * @param fulfilled predicates that hold for rows of the other side, as far as they concern it
 */
function matches(known: readonly Expr[], other: RelationNode, fulfilled: readonly Expr[]): Expr[] {
  const chain = chainOf(other)
  if (!chain) return []
  const terms = known.flatMap((predicate) => (predicate.kind === 'and' ? predicate.terms : [predicate]))
  return terms.flatMap((term) => {
    if (term.kind !== 'compare' || term.operator !== '=') return []
    const { left, right, type } = term
    return [
      [left, right],
      [right, left],
    ].flatMap(([value, among]): Expr[] => {
      if (among!.kind !== 'column' || columnName(chain, among!) === undefined) return []
      const node: RelationNode = { kind: 'filter', input: other, predicate: { kind: 'and', type, terms: fulfilled } }
      return [{ kind: 'inSubquery', type, value: value!, query: { node, columns: [among!] } }]
    })
  })
}

/** The question that asks a table for the values of a query's column; undefined if it would ask for all values. */
function valuesOf(
  node: RelationNode,
  column: Pick<SortKey, 'type'> & { readonly id: ColumnId },
  times: Surroundings,
): ScanValues | undefined {
  const expr: Expr = { kind: 'column', ...column }
  const chain = chainOf(node)
  if (chain) {
    const { terms } = termsOf(chain, times)
    const name = columnName(chain, expr)
    return name === undefined || terms.length === 0
      ? undefined
      : { table: chain.scan.table, column: name, question: { terms } }
  }
  switch (node.kind) {
    case 'project': {
      const made = node.columns.find(({ id }) => id === column.id)?.expression
      if (made && made.kind !== 'column') return undefined
      return valuesOf(node.input, made ?? column, times)
    }
    case 'aggregate':
    case 'distinct': {
      const scan = groupedScan(node, times)
      const answered = scan?.columns.find(({ id }) => id === column.id)
      return scan?.question && answered && { table: scan.table, column: answered.name, question: scan.question }
    }
    case 'limit': {
      let at = firstRows(node, times)
      while (at && (at.kind === 'project' || at.kind === 'sort' || at.kind === 'filter')) at = at.input
      const name = at?.kind === 'scan' ? at.columns.find(({ id }) => id === column.id)?.name : undefined
      return at?.kind === 'scan' && at.question && name !== undefined && at.answers?.includes(name)
        ? { table: at.table, column: name, question: at.question }
        : undefined
    }
    default:
      return undefined
  }
}

/** Also adds questions to queries inside an expression. */
function askedInside(expr: Expr, times: Surroundings): Expr {
  const inner = mapChildren(expr, (child) => askedInside(child, times))
  switch (inner.kind) {
    case 'scalarSubquery':
    case 'exists':
    case 'inSubquery':
    case 'quantified':
      return { ...inner, query: { ...inner.query, node: asked(inner.query.node, times, NOTHING) } }
    default:
      return inner
  }
}

/** Filters and projections over one scan that answers questions. */
interface Chain extends Around {
  readonly scan: ScanNode & { readonly answers: readonly string[] }
}

function chainOf(node: RelationNode): Chain | undefined {
  const predicates: Expr[] = []
  const calculated = new Map<ColumnId, Expr>()
  for (let at = node; ;) {
    switch (at.kind) {
      case 'filter':
        predicates.push(at.predicate)
        at = at.input
        break
      case 'project':
        for (const { id, expression } of at.columns) calculated.set(id, expression)
        at = at.input
        break
      case 'scan':
        return at.answers && { scan: { ...at, answers: at.answers }, predicates, calculated }
      default:
        return undefined
    }
  }
}

/** The same filters and projections over the scan with its question. */
function withQuestion(node: RelationNode, question: ScanQuestion, inside: (expr: Expr) => Expr): RelationNode {
  switch (node.kind) {
    case 'filter':
      return { ...node, predicate: inside(node.predicate), input: withQuestion(node.input, question, inside) }
    case 'project':
      return {
        ...node,
        columns: node.columns.map((column) => ({ ...column, expression: inside(column.expression) })),
        input: withQuestion(node.input, question, inside),
      }
    case 'sort':
      return { ...node, input: withQuestion(node.input, question, inside) }
    case 'scan':
      return { ...node, question }
    default:
      return node
  }
}

/** @returns whether the terms cover all predicates on the rows */
function termsOf(
  chain: Chain,
  times: Surroundings,
  around = NOTHING,
): { readonly terms: readonly ScanTerm[]; readonly whole: boolean } {
  const calculated = new Map([...around.calculated, ...chain.calculated])
  const source = (expr: Expr): string | undefined => columnName({ ...chain, calculated }, expr)
  const found = [...chain.predicates, ...around.predicates].map((predicate) => termsIn(predicate, source, times))
  return { terms: found.flatMap(({ terms }) => terms), whole: found.every(({ whole }) => whole) }
}

/** The table's name of a column that is passed on unchanged. */
function columnName({ scan, calculated }: Chain, expr: Expr): string | undefined {
  const plain = withoutWidening(expr)
  if (plain.kind !== 'column') return undefined
  const made = calculated.get(plain.id)
  if (made) return columnName({ scan, calculated, predicates: [] }, made)
  const name = scan.columns.find(({ id }) => id === plain.id)?.name
  return name !== undefined && scan.answers.includes(name) ? name : undefined
}

/** The most rows that a question for first rows may ask for. */
const MOST_FIRST = 100_000

/**
 * Asks the scan below a LIMIT for its first rows, and returns the LIMIT's input; undefined if it is unknown which rows
 * are first.
 */
function firstRows(
  { input, count, offset, ties }: Extract<RelationNode, { kind: 'limit' }>,
  times: Surroundings,
): RelationNode | undefined {
  const most = Number(count ?? Infinity) + Number(offset ?? 0)
  if (ties !== undefined || !(most <= MOST_FIRST)) return undefined
  // Projections may stand above the sort.
  const keys: SortKey[] = []
  let bottom = input
  const over: Extract<RelationNode, { kind: 'project' }>[] = []
  while (bottom.kind === 'project') {
    over.push(bottom)
    bottom = bottom.input
  }
  if (bottom.kind === 'sort') {
    keys.push(...bottom.keys)
    bottom = bottom.input
  } else bottom = input
  const chain = chainOf(bottom)
  if (!chain) return undefined
  const { terms, whole } = termsOf(chain, times)
  const order = keys.map(({ column, type, descending, nullsFirst }): ScanOrder | undefined => {
    const name = columnName(chain, { kind: 'column', type, id: column })
    return name === undefined ? undefined : { column: name, descending, nullsFirst }
  })
  if (!whole || !order.every((key) => key !== undefined)) return undefined
  return withQuestion(input, { terms, top: { order, count: most } }, (expr) => askedInside(expr, times))
}

/** The scan that answers with groups, replacing an aggregation; undefined if the table cannot answer. */
function groupedScan(node: AggregateNode | DistinctNode, times: Surroundings): ScanNode | undefined {
  const chain = chainOf(node.input)
  if (!chain) return undefined
  const { terms, whole } = termsOf(chain, times)
  if (!whole) return undefined
  const outputs: { readonly id: ColumnId; readonly name: string; readonly type: SqlType }[] = []
  const keys: ScanKey[] = []
  const measures: ScanMeasure[] = []
  const given = node.kind === 'distinct' ? node.columns.map((column) => ({ ...column, input: column.id })) : node.keys
  if (node.kind === 'aggregate' && (node.sets !== undefined || node.groupings.length > 0)) return undefined
  for (const { id, input, type } of given) {
    const key = keyOf(chain, { kind: 'column', type, id: input })
    if (!key) return undefined
    const name = `k${keys.length}`
    keys.push({ name, type: typeName(type), ...key })
    outputs.push({ id, name, type })
  }
  for (const { id, call } of node.kind === 'aggregate' ? node.aggregates : []) {
    const measure = measureOf(chain, call)
    if (!measure) return undefined
    const name = `m${measures.length}`
    measures.push({ name, type: typeName(call.type), ...measure })
    outputs.push({ id, name, type: call.type })
  }
  const { catalog, schema, table, handle, snapshot } = chain.scan
  return {
    kind: 'scan',
    catalog,
    schema,
    table,
    handle,
    snapshot,
    question: { terms, groups: { keys, measures } },
    columns: outputs,
  }
}

/** Types that a group key or a measure may have. */
const PLAIN = new Set(['varchar', 'bigint', 'double', 'boolean', 'timestamp(3) with time zone'])

function keyOf(chain: Chain, expr: Expr): Pick<ScanKey, 'column' | 'cut'> | undefined {
  const made = expr.kind === 'column' ? chain.calculated.get(expr.id) : undefined
  if (made) return keyOf(chain, made)
  if (expr.kind === 'column') {
    const column = columnName(chain, expr)
    return column !== undefined && PLAIN.has(typeName(expr.type)) ? { column } : undefined
  }
  // Times of these tables are in UTC, and so are their days.
  const day = dayOf(expr)
  if (day) {
    const column = columnName(chain, day)
    return column === undefined ? undefined : { column, cut: 'date' }
  }
  if (expr.kind !== 'call' || expr.function.name !== 'date_trunc') return undefined
  const [unit, time] = expr.arguments
  const column = time && time.type.kind === 'timestamp with time zone' ? columnName(chain, time) : undefined
  const cut = timeUnits.find((one) => unit?.kind === 'constant' && one === constantText(unit)?.toLowerCase())
  return column === undefined || cut === undefined ? undefined : { column, cut }
}

function measureOf(
  chain: Chain,
  { function: { name }, arguments: args, distinct, orderBy, filter, type }: AggregateNode['aggregates'][number]['call'],
): Pick<ScanMeasure, 'of' | 'column'> | undefined {
  if (distinct || orderBy.length > 0 || filter || args.length > 1) return undefined
  const [value] = args
  if (name === 'count' && (value === undefined || (value.kind === 'constant' && value.value !== null)))
    return { of: 'count' }
  const column = value && columnName(chain, value)
  if (column === undefined || !PLAIN.has(typeName(value!.type))) return undefined
  switch (name) {
    case 'count':
      return { of: 'count', column }
    case 'min':
    case 'max':
      return type.kind === 'boolean' ? undefined : { of: name, column }
    case 'sum':
      return type.kind === 'bigint' || type.kind === 'double' ? { of: name, column } : undefined
    default:
      return undefined
  }
}
