import { EngineError, type ErrorLocation } from '../../shared/engine-error.ts'
import { nameBytes } from '../../shared/stored-name.ts'
import type { ArithmeticBinaryExpression, Expression, LogicalExpression } from './ast.ts'
import { locate, textOrigin } from './span.ts'
import { childrenOf, type AnyNode } from './tree.ts'

/** Limits of a statement. Beyond them DuckDB plans for seconds or forever (each limit was measured). */
export const syntaxLimits = {
  /** The length of a statement, in characters. */
  textLength: 1_000_000,
  /** The length of a name, quoted or not, in bytes: names are stored with every query. */
  nameBytes: nameBytes.other,
  /**
   * Levels of an expression. A chain of AND, OR, || or one arithmetic operator counts as the tree or list that it is
   * rendered to.
   */
  expressionDepth: 250,
  /** Terms of one OR that do not compare with a constant. */
  orTerms: 2_000,
  /** Terms of one OR that compare with a constant; DuckDB plans them like an IN list. */
  constantOrTerms: 5_000,
  /**
   * Joins of one FROM, including those of queries inside it. For set operations and WITH, the part with the most joins
   * counts.
   */
  joins: 40,
} as const

/** Shorter texts cannot exceed any limit and are not checked. */
const HARMLESS_LENGTH = 240

/** @throws EngineError QUERY_TEXT_TOO_LARGE */
export function checkTextLength(sql: string): void {
  if (sql.length <= syntaxLimits.textLength) return
  const message = `Query text length (${sql.length}) exceeds the maximum length (${syntaxLimits.textLength})`
  throw new EngineError('QUERY_TEXT_TOO_LARGE', message)
}

/**
 * Checks the limits on the tree of a statement (or of a view's query) with the text `sql`.
 * @throws EngineError QUERY_EXCEEDED_COMPILER_LIMIT at the position of the part that exceeds a limit
 */
export function checkLimits(sql: string, root: AnyNode, origin: ErrorLocation = textOrigin): void {
  if (sql.length < HARMLESS_LENGTH) return
  const refuse = (node: AnyNode, what: string, count: number, limit: number): never => {
    throw new EngineError(
      'QUERY_EXCEEDED_COMPILER_LIMIT',
      `Query has ${what}: ${count}, at most ${limit} are allowed`,
      {
        location: locate(sql, node.span.at, origin),
      },
    )
  }
  // Parents precede children, so that a backward pass visits every node after its descendants, without recursion.
  const nodes: AnyNode[] = [root]
  const parents: number[] = [-1]
  for (let at = 0; at < nodes.length; at++) {
    for (const child of childrenOf(nodes[at]!)) {
      nodes.push(child)
      parents.push(at)
    }
  }
  const depths = new Uint32Array(nodes.length)
  const joins = new Uint32Array(nodes.length)
  for (let at = nodes.length - 1; at >= 0; at--) {
    const node = nodes[at]!
    const parent = parents[at]!
    if (node.kind === 'LogicalExpression') {
      const logical = node as LogicalExpression
      depths[at]! += Math.ceil(Math.log2(logical.terms.length))
      const isPart =
        nodes[parent]?.kind === 'LogicalExpression' && (nodes[parent] as LogicalExpression).operator === 'OR'
      if (logical.operator === 'OR' && !isPart && logical.terms.length > 1) checkOr(logical, refuse)
    } else if (!isChained(node, nodes[parent])) {
      depths[at]! += 1
    }
    if (node.kind === 'Join') joins[at]! += 1
    if (depths[at]! > syntaxLimits.expressionDepth) {
      refuse(node, 'levels of nested expressions', depths[at]!, syntaxLimits.expressionDepth)
    }
    if (joins[at]! > syntaxLimits.joins) refuse(node, 'joins', joins[at]!, syntaxLimits.joins)
    if (parent === -1) continue
    // A relation or query between expressions adds no level: only expressions inside it count.
    if (depths[at]! > depths[parent]!) depths[parent] = isStacked(nodes[parent]!) ? depths[at]! : depths[parent]!
    if (isApart(nodes[parent]!)) joins[parent] = Math.max(joins[parent]!, joins[at]!)
    else joins[parent]! += joins[at]!
  }
}

/** Whether the node is part of a chain that is rendered as a list. */
function isChained(node: AnyNode, parent: AnyNode | undefined): boolean {
  if (node.kind === 'ConcatExpression') return parent?.kind === 'ConcatExpression'
  if (node.kind !== 'ArithmeticBinaryExpression' || parent?.kind !== node.kind) return false
  const [inner, outer] = [node as AnyNode & ArithmeticBinaryExpression, parent as AnyNode & ArithmeticBinaryExpression]
  return inner.operator === outer.operator && outer.left === inner
}

/** Whether DuckDB plans the parts below the node separately. */
function isApart(node: AnyNode): boolean {
  return node.kind === 'SetOperation' || node.kind === 'With' || node.kind === 'Query'
}

/** Joins and set operations form chains of relations, which have limits of their own. */
function isStacked(node: AnyNode): boolean {
  return node.kind !== 'Join' && node.kind !== 'SetOperation'
}

function checkOr(
  node: LogicalExpression,
  refuse: (node: AnyNode, what: string, count: number, limit: number) => never,
): void {
  const terms = flattenTerms(node)
  const constants = terms.filter(comparesWithConstant).length
  if (constants > syntaxLimits.constantOrTerms) {
    refuse(node, 'terms in one OR', terms.length, syntaxLimits.constantOrTerms)
  }
  const others = terms.length - constants
  if (others > syntaxLimits.orTerms) {
    refuse(node, 'terms in one OR (use IN for lists of constants)', others, syntaxLimits.orTerms)
  }
}

/** All terms of a chain of one operator, regardless of parentheses. */
export function flattenTerms(node: LogicalExpression): readonly Expression[] {
  const terms: Expression[] = []
  const waiting: Expression[] = [node]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (next.kind !== 'LogicalExpression' || next.operator !== node.operator) terms.push(next)
    else for (let at = next.terms.length - 1; at >= 0; at--) waiting.push(next.terms[at]!)
  }
  return terms
}

function comparesWithConstant(term: Expression): boolean {
  if (term.kind === 'ComparisonExpression')
    return term.operator === '=' && (isConstant(term.left) || isConstant(term.right))
  return (
    term.kind === 'InPredicate' && term.valueList.kind === 'InListExpression' && term.valueList.values.every(isConstant)
  )
}

function isConstant(node: Expression): boolean {
  switch (node.kind) {
    case 'NullLiteral':
    case 'BooleanLiteral':
    case 'LongLiteral':
    case 'DecimalLiteral':
    case 'DoubleLiteral':
    case 'StringLiteral':
    case 'BinaryLiteral':
    case 'GenericLiteral':
    case 'IntervalLiteral':
    case 'Parameter':
      return true
    default:
      return false
  }
}
