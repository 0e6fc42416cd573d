import type { ScanConditions, TextCondition } from '../../connectors/spi/scan-conditions.ts'
import type { ColumnId, Expr, RelationNode, ScanNode } from '../analyzer/tree.ts'
import { withoutWidening } from './scan-terms.ts'

/** More texts than this are not worth to travel. */
const MOST_VALUES = 1_000

/**
 * What is known of the texts in columns of each scan, of every row that is used: comparisons with constants, IN and LIKE in
 * filters and joins above it. A hint: the filters stay where they are.
 * @param scans as they are read: of one that is read in several places no place knows what the others use
 */
export function scanConditions(root: RelationNode, scans: readonly ScanNode[]): ReadonlyMap<ScanNode, ScanConditions> {
  const found = new Map<ScanNode, ScanConditions>()
  visit(root, [], found)
  const once = new Set<ScanNode>()
  for (const scan of scans) {
    if (once.has(scan)) found.delete(scan)
    once.add(scan)
  }
  return found
}

/** @param terms what holds for every row of the node that is used */
function visit(node: RelationNode, terms: readonly Expr[], found: Map<ScanNode, ScanConditions>): void {
  switch (node.kind) {
    case 'scan': {
      const conditions = conditionsOf(node, terms)
      if (conditions) found.set(node, conditions)
      return
    }
    case 'filter':
      return visit(node.input, [...terms, ...termsOf(node.predicate)], found)
    case 'project': {
      const copies = new Map<ColumnId, Expr>()
      for (const { id, expression } of node.columns) if (expression.kind === 'column') copies.set(id, expression)
      return visit(node.input, copies.size === 0 ? terms : terms.map((term) => overCopies(term, copies)), found)
    }
    case 'sort':
    case 'distinct':
      return visit(node.input, terms, found)
    // What is read of a table tells nothing of rows that are none for who asks.
    case 'barrier':
      return visit(node.input, [], found)
    case 'join': {
      const own = node.condition === undefined ? [] : termsOf(node.condition)
      const inner = node.type === 'inner' || node.type === 'cross'
      // Rows of the side that is kept whole are used whatever the condition says; of the other side only those it holds for.
      visit(
        node.left,
        [...(inner || node.type === 'left' ? terms : []), ...(inner || node.type === 'right' ? own : [])],
        found,
      )
      visit(
        node.right,
        [...(inner || node.type === 'right' ? terms : []), ...(inner || node.type === 'left' ? own : [])],
        found,
      )
      return
    }
    case 'with':
      for (const { node: table } of node.tables) visit(table, [], found)
      return visit(node.body, terms, found)
    case 'set':
      for (const { node: input } of node.inputs) visit(input, [], found)
      return
    case 'aggregate':
    case 'window':
    case 'limit':
    case 'sample':
      return visit(node.input, [], found)
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

/** The term over the columns that others are copies of, in the places where conditions are looked for. */
function overCopies(term: Expr, copies: ReadonlyMap<ColumnId, Expr>): Expr {
  switch (term.kind) {
    case 'column':
      return copies.get(term.id) ?? term
    case 'cast':
    case 'inList':
    case 'inLiterals':
    case 'like':
      return { ...term, value: overCopies(term.value, copies) }
    case 'compare':
      return { ...term, left: overCopies(term.left, copies), right: overCopies(term.right, copies) }
    default:
      return term
  }
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

/** A column whose text is compared as it is. */
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
