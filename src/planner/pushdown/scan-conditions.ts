import type { ScanConditions, TextCondition } from '../../connectors/spi/scan-conditions.ts'
import type { ScanPredicate } from '../../connectors/spi/scan-predicate.ts'
import type { ColumnId, Expr, RelationNode, ScanNode } from '../../sql/analyzer/tree.ts'
import { mapChildren } from '../../sql/analyzer/walk.ts'
import { partitionPredicate } from './scan-predicates.ts'
import { withoutWidening, type ConstantTimes } from './scan-terms.ts'

/** The most texts in a condition. A longer list would cost more to send than it saves. */
const MOST_VALUES = 1_000

/** Conditions that hold for every row of a scan that is used. */
export interface ScanHints {
  /** Conditions on its text columns. */
  readonly where?: ScanConditions
  /** Conditions on its partition columns. */
  readonly partitions?: ScanPredicate
}

/**
 * Collects conditions on the used rows of each scan: comparisons with constants, IN and LIKE in filters and joins above
 * it. These are hints: the filters stay where they are.
 * @param scans the scans in the tree; a scan that is read in several places gets no conditions, since each place knows
 * only its own
 */
export function scanConditions(
  root: RelationNode,
  scans: readonly ScanNode[],
  times: ConstantTimes,
): ReadonlyMap<ScanNode, ScanHints> {
  const found = new Map<ScanNode, ScanHints>()
  visit(root, [], (scan, terms) => {
    const where = conditionsOf(scan, terms)
    const partitions = partitionPredicate(scan, terms, times)
    if (where ?? partitions) found.set(scan, { ...(where && { where }), ...(partitions && { partitions }) })
  })
  const once = new Set<ScanNode>()
  for (const scan of scans) {
    if (once.has(scan)) found.delete(scan)
    once.add(scan)
  }
  return found
}

/**
 * @param terms the terms that hold for every used row of the node
 * @param take called with each scan and the terms that hold for it
 */
function visit(
  node: RelationNode,
  terms: readonly Expr[],
  take: (scan: ScanNode, terms: readonly Expr[]) => void,
): void {
  switch (node.kind) {
    case 'scan':
      return take(node, terms)
    case 'filter':
      return visit(node.input, [...terms, ...termsOf(node.predicate)], take)
    case 'project': {
      const copies = new Map<ColumnId, Expr>()
      for (const { id, expression } of node.columns) if (expression.kind === 'column') copies.set(id, expression)
      return visit(node.input, copies.size === 0 ? terms : terms.map((term) => overCopies(term, copies)), take)
    }
    case 'sort':
    case 'distinct':
      return visit(node.input, terms, take)
    // Conditions above must not restrict rows that the rules read but the user must not see.
    case 'barrier':
      return visit(node.input, [], take)
    case 'join': {
      const own = node.condition === undefined ? [] : termsOf(node.condition)
      const inner = node.type === 'inner' || node.type === 'cross'
      // On the preserved side of an outer join, all rows are used; on the other side, only rows that match the
      // condition.
      visit(
        node.left,
        [...(inner || node.type === 'left' ? terms : []), ...(inner || node.type === 'right' ? own : [])],
        take,
      )
      visit(
        node.right,
        [...(inner || node.type === 'right' ? terms : []), ...(inner || node.type === 'left' ? own : [])],
        take,
      )
      return
    }
    case 'with':
      for (const { node: table } of node.tables) visit(table, [], take)
      return visit(node.body, terms, take)
    case 'set':
      for (const { node: input } of node.inputs) visit(input, [], take)
      return
    case 'aggregate':
    case 'window':
    case 'limit':
    case 'sample':
      return visit(node.input, [], take)
    case 'values':
    case 'arrays':
    case 'unnest':
    case 'cte':
    case 'sequence':
      return
  }
}

function termsOf(predicate: Expr): readonly Expr[] {
  return predicate.kind === 'and' ? predicate.terms.flatMap(termsOf) : [predicate]
}

/** The term rewritten to the columns behind copies. */
function overCopies(term: Expr, copies: ReadonlyMap<ColumnId, Expr>): Expr {
  if (term.kind === 'column') return copies.get(term.id) ?? term
  return mapChildren(term, (child) => overCopies(child, copies))
}

function conditionsOf(scan: ScanNode, terms: readonly Expr[]): ScanConditions | undefined {
  const found: Record<string, TextCondition[]> = {}
  for (const term of terms) {
    const { column, condition } = conditionIn(term) ?? {}
    const name = scan.columns.find(({ id }) => id === column)?.name
    if (name === undefined || !condition) continue
    ;(found[name] ??= []).push(condition)
  }
  return Object.keys(found).length > 0 ? found : undefined
}

interface ColumnCondition {
  readonly column: ColumnId
  readonly condition: TextCondition
}

function conditionIn(term: Expr): ColumnCondition | undefined {
  switch (term.kind) {
    case 'compare': {
      if (term.operator !== '=') return undefined
      const [column, value] = [columnIn(term.left) ?? columnIn(term.right), textIn(term.left) ?? textIn(term.right)]
      return column === undefined || value === undefined ? undefined : { column, condition: { in: [value] } }
    }
    case 'inList': {
      const column = columnIn(term.value)
      if (column === undefined || term.values.length > MOST_VALUES) return undefined
      const values = term.values.map(textIn)
      return values.every((value) => value !== undefined) ? { column, condition: { in: values } } : undefined
    }
    case 'inLiterals': {
      const column = columnIn(term.value)
      const { literals } = term.literals
      if (column === undefined || literals.length > MOST_VALUES) return undefined
      const texts = literals.flatMap((value) => (typeof value === 'string' ? [value] : []))
      return texts.length === literals.length ? { column, condition: { in: texts } } : undefined
    }
    case 'like': {
      const column = columnIn(term.value)
      const like = textIn(term.pattern)
      if (column === undefined || like === undefined) return undefined
      if (term.escape === undefined) return { column, condition: { like } }
      const escape = textIn(term.escape)
      return escape === undefined ? undefined : { column, condition: { like, escape } }
    }
    default:
      return undefined
  }
}

/** A text column that is compared directly. */
function columnIn(expr: Expr): ColumnId | undefined {
  const plain = withoutWidening(expr)
  return plain.kind === 'column' && plain.type.kind === 'varchar' ? plain.id : undefined
}

function textIn(expr: Expr): string | undefined {
  const plain = withoutWidening(expr)
  return plain.kind === 'constant' && plain.type.kind === 'varchar' && typeof plain.value === 'string'
    ? plain.value
    : undefined
}
