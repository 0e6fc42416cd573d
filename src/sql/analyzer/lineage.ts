import { tick } from '../../shared/cpu-budget.ts'
import type { DirectLineage, IndirectLineage, Lineage, LineageSource } from '../front-end.ts'
import type { QueryAnalysis } from './analyze.ts'
import type { ColumnId, CommonTable, Expr, RelationNode, SortKey, Subquery } from './tree.ts'
import { behindRules, childrenOfExpr } from './walk.ts'

/** Ordered from weakest to strongest. */
const DIRECT = ['IDENTITY', 'TRANSFORMATION', 'AGGREGATION'] as const satisfies readonly DirectLineage[]
const INDIRECT = [
  'CONDITIONAL',
  'FILTER',
  'GROUP_BY',
  'JOIN',
  'SORT',
  'WINDOW',
] as const satisfies readonly IndirectLineage[]

/** The contribution of one column to another column or to the rows. */
interface Use {
  readonly column: ColumnId
  readonly how: DirectLineage | IndirectLineage
  readonly masked: boolean
}

/**
 * Follows each output column to table columns. It does not look into row filters and column masks, because the user
 * must not learn what they read.
 * @param mask the kind of lineage between a masked column and its original
 */
export function lineageOf(
  { node, columns, sources }: Pick<QueryAnalysis, 'node' | 'columns' | 'sources'>,
  mask: DirectLineage = 'TRANSFORMATION',
): Lineage {
  const walk = new LineageWalk(mask)
  walk.relation(node)
  const find = (uses: readonly Use[]): readonly LineageSource[] => merged(walk.sourcesOf(uses, sources))
  return {
    columns: columns.filter(({ hidden }) => hidden !== true).map(({ column }) => find([plain(column)])),
    rows: find(walk.rows),
  }
}

interface Found {
  readonly source: string
  readonly how: DirectLineage | IndirectLineage
  readonly masked: boolean
}

/** Combines two uses. An indirect use wins, the upper one first; of two direct uses, the stronger one wins. */
function composed(above: Use['how'], below: Use['how']): Use['how'] {
  if (!isDirect(above)) return above
  if (!isDirect(below)) return below
  return DIRECT.indexOf(above) > DIRECT.indexOf(below) ? above : below
}

function isDirect(how: Use['how']): how is DirectLineage {
  return (DIRECT as readonly string[]).includes(how)
}

function merged(found: readonly Found[]): readonly LineageSource[] {
  const bySource = new Map<string, Found[]>()
  for (const one of found) {
    const uses = bySource.get(one.source)
    if (uses === undefined) bySource.set(one.source, [one])
    else uses.push(one)
  }
  return [...bySource]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([source, uses]) => ({
      source,
      direct: DIRECT.findLast((how) => uses.some((use) => use.how === how)),
      indirect: INDIRECT.filter((how) => uses.some((use) => use.how === how)),
      masked: uses.some(({ masked }) => masked),
    }))
}

class LineageWalk {
  readonly #mask: DirectLineage

  readonly definitions = new Map<ColumnId, Use[]>()
  /** Uses that decide about the rows of the current query. */
  rows: Use[] = []

  constructor(mask: DirectLineage) {
    this.#mask = mask
  }

  /**
   * Follows uses down to table columns. Each column is visited once per kind of use, because a recursive table is
   * derived from itself.
   */
  sourcesOf(uses: readonly Use[], sources: ReadonlyMap<ColumnId, string>): readonly Found[] {
    const found: Found[] = []
    const seen = new Set<string>()
    const pending = [...uses]
    for (let use = pending.pop(); use; use = pending.pop()) {
      tick()
      const { column, how, masked } = use
      const key = `${column} ${how} ${masked}`
      if (seen.has(key)) continue
      seen.add(key)
      const source = sources.get(column)
      if (source !== undefined) found.push({ source, how, masked })
      // For a recursive table's column, these include the columns of the recursive step.
      for (const below of this.definitions.get(column) ?? [])
        pending.push({ column: below.column, how: composed(how, below.how), masked: masked || below.masked })
    }
    return found
  }

  relation(node: RelationNode): void {
    tick()
    switch (node.kind) {
      case 'scan':
      case 'sequence':
      // These arrays read no columns.
      case 'arrays':
        return
      case 'values':
        node.columns.forEach(({ id }, i) =>
          this.#define(
            id,
            node.rows.flatMap((row) => this.#uses(row[i]!)),
          ),
        )
        return
      case 'barrier':
        return this.#behind(node)
      case 'join':
        if (node.condition !== undefined) this.#decides('JOIN', node.condition)
        this.relation(node.left)
        this.relation(node.right)
        return
      case 'unnest':
        for (const { value, columns } of node.arguments) {
          const uses = as('TRANSFORMATION', this.#uses(value))
          for (const column of columns) this.#define(column, uses)
        }
        return
      case 'set':
        return this.#set(node)
      case 'with':
        for (const table of node.tables) this.#common(table)
        this.relation(node.body)
        return
      case 'cte':
        this.rows.push(plain(rowsOf(node.table)))
        for (const { id, source } of node.columns) this.#define(id, [plain(source)])
        return
      case 'filter':
        this.#decides('FILTER', node.predicate)
        break
      case 'project':
        for (const { id, expression } of node.columns) this.#define(id, this.#uses(expression))
        break
      case 'aggregate':
        this.#aggregate(node)
        break
      case 'window':
        for (const { id, call } of node.columns) this.#define(id, this.#uses(call))
        break
      case 'distinct':
        this.rows.push(...node.columns.map(({ id }): Use => ({ column: id, how: 'GROUP_BY', masked: false })))
        break
      case 'sort':
        this.#sorted(node.keys)
        break
      case 'limit':
        this.#sorted(node.ties ?? [])
        break
      case 'sample':
        break
    }
    this.relation(node.input)
  }

  /** The uses that decide about a common table's rows count once wherever the table is read, and nowhere else. */
  #common({ id: table, node, step, columns }: CommonTable): void {
    const rows = this.#deciding(node)
    if (step !== undefined) {
      rows.push(...this.#deciding(step.node))
      columns.forEach(({ id }, i) => this.#define(id, [plain(step.columns[i]!)]))
    }
    this.#define(rowsOf(table), rows)
  }

  /** Walks a nested query. @returns the uses that decide about its own rows */
  #deciding(node: RelationNode): Use[] {
    const outer = this.rows
    this.rows = []
    this.relation(node)
    const rows = this.rows
    this.rows = outer
    return rows
  }

  /** Skips the rules around a table, but records which columns are masked. */
  #behind(node: Extract<RelationNode, { kind: 'barrier' }>): void {
    for (const { id, column } of node.masked) this.#define(id, [{ column, how: this.#mask, masked: true }])
    this.relation(behindRules(node))
  }

  #set({ operator, all, columns, inputs }: Extract<RelationNode, { kind: 'set' }>): void {
    inputs.forEach(({ node: input, columns: given }, i) => {
      this.relation(input)
      if (operator === 'union' || i === 0) columns.forEach(({ id }, at) => this.#define(id, [plain(given[at]!)]))
      else this.rows.push(...given.map((column): Use => ({ column, how: 'FILTER', masked: false })))
    })
    if (!all) this.rows.push(...columns.map(({ id }): Use => ({ column: id, how: 'GROUP_BY', masked: false })))
  }

  #aggregate({ keys, aggregates }: Extract<RelationNode, { kind: 'aggregate' }>): void {
    for (const { id, input } of keys) {
      if (id !== input) this.#define(id, [plain(input)])
      this.rows.push({ column: input, how: 'GROUP_BY', masked: false })
    }
    for (const { id, call } of aggregates) this.#define(id, this.#uses(call))
  }

  #sorted(keys: readonly SortKey[]): void {
    this.rows.push(...keys.map(({ column }): Use => ({ column, how: 'SORT', masked: false })))
  }

  #decides(how: IndirectLineage, condition: Expr): void {
    this.rows.push(...as(how, this.#uses(condition)))
  }

  #define(id: ColumnId, uses: readonly Use[]): void {
    const known = this.definitions.get(id)
    const others = uses.filter(({ column }) => column !== id)
    if (known === undefined) this.definitions.set(id, others)
    else known.push(...others)
  }

  #uses(expr: Expr): readonly Use[] {
    tick()
    switch (expr.kind) {
      case 'column':
        return [plain(expr.id)]
      case 'case':
        return [
          ...expr.branches.flatMap(({ when, then }) => [...as('CONDITIONAL', this.#uses(when)), ...this.#made(then)]),
          ...(expr.otherwise ? this.#made(expr.otherwise) : []),
        ]
      case 'aggregate':
        return [
          ...as('AGGREGATION', this.#all(expr.arguments)),
          ...as('SORT', this.#all(expr.orderBy.map(({ value }) => value))),
          ...as('FILTER', this.#all(expr.filter ? [expr.filter] : [])),
        ]
      case 'window':
        return [
          ...as(expr.function.kind === 'aggregate' ? 'AGGREGATION' : 'TRANSFORMATION', this.#all(expr.arguments)),
          ...as('SORT', this.#all(expr.argumentOrder.map(({ value }) => value))),
          ...as('FILTER', this.#all(expr.filter ? [expr.filter] : [])),
          ...as('WINDOW', this.#all([...expr.partitionBy, ...expr.orderBy.map(({ value }) => value)])),
          ...as(
            'WINDOW',
            this.#all([expr.frame?.start.value, expr.frame?.end.value].filter((end) => end !== undefined)),
          ),
        ]
      case 'cast':
        // A cast for storing only fits the value to its target column.
        return expr.stored ? this.#uses(expr.value) : this.#made(expr.value)
      case 'scalarSubquery':
        return this.#query(expr.query)
      case 'exists':
        return this.#deciding(expr.query.node)
      case 'inSubquery':
      case 'quantified':
        return [...this.#made(expr.value), ...as('TRANSFORMATION', this.#query(expr.query))]
      default:
        return childrenOfExpr(expr).flatMap((child) => this.#made(child))
    }
  }

  #made(expr: Expr): readonly Use[] {
    return as('TRANSFORMATION', this.#uses(expr))
  }

  #all(expressions: readonly Expr[]): readonly Use[] {
    return expressions.flatMap((expr) => this.#uses(expr))
  }

  #query({ node, columns }: Subquery): readonly Use[] {
    return [...this.#deciding(node), ...columns.map(({ id }) => plain(id))]
  }
}

function as(how: Use['how'], uses: readonly Use[]): readonly Use[] {
  return uses.map((use) => ({ ...use, how: composed(how, use.how) }))
}

/** A pseudo-column that stands for the uses that decide about a common table's rows; real column ids start at 0. */
function rowsOf(table: number): ColumnId {
  return -1 - table
}

function plain(column: ColumnId): Use {
  return { column, how: 'IDENTITY', masked: false }
}
