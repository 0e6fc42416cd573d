import type { Identifier, QualifiedName } from './ast-node.ts'
import type {
  DescriptorField,
  Relation,
  TableFunctionArgument,
  TableFunctionDescriptorArgument,
  TableFunctionInvocation,
  TableFunctionTableArgument,
} from './ast-query.ts'
import { parseColumnAliases, parseIdentifier, parseQualifiedName } from './parse-names.ts'
import { parseType } from './parse-types.ts'
import { parseSortItem } from './parse-windows.ts'
import type { TokenCursor } from './token-cursor.ts'

/** Parses `TABLE(f(…))`. */
export function parseTableFunction(cursor: TokenCursor): TableFunctionInvocation {
  const { start } = cursor
  cursor.expect('TABLE', '(')
  const name = parseQualifiedName(cursor)
  cursor.expect('(')
  const isCopartition = (): boolean => cursor.isPair('COPARTITION', '(')
  const list: TableFunctionArgument[] = []
  if (!cursor.is(')') && !isCopartition()) list.push(...cursor.list(parseArgument))
  const copartitioning = cursor.accept('COPARTITION') ? cursor.list(parseCopartition) : []
  cursor.expect(')', ')')
  return { kind: 'TableFunctionInvocation', span: cursor.span(start), name, arguments: list, copartitioning }
}

function parseCopartition(cursor: TokenCursor): QualifiedName[] {
  return cursor.parenthesized(() => {
    const first = parseQualifiedName(cursor)
    cursor.expect(',')
    return [first, ...cursor.list(parseQualifiedName)]
  })
}

function parseArgument(cursor: TokenCursor): TableFunctionArgument {
  const { start } = cursor
  let name: Identifier | undefined
  if (cursor.isIdentifierAt(0) && cursor.peek(1) === '=>') {
    name = parseIdentifier(cursor)
    cursor.advance()
  }
  const value = parseArgumentValue(cursor)
  return { kind: 'TableFunctionArgument', span: cursor.span(start), name, value }
}

function parseArgumentValue(cursor: TokenCursor): TableFunctionArgument['value'] {
  if (cursor.is('TABLE')) return parseTableArgument(cursor)
  if (cursor.isPair('DESCRIPTOR', '(') || isNullDescriptor(cursor)) return parseDescriptor(cursor)
  return cursor.rules.expression(cursor)
}

function isNullDescriptor(cursor: TokenCursor): boolean {
  return (
    cursor.isPair('CAST', '(') &&
    cursor.peek(2) === 'NULL' &&
    cursor.peek(3) === 'AS' &&
    cursor.peek(4) === 'DESCRIPTOR' &&
    cursor.peek(5) === ')'
  )
}

function parseDescriptor(cursor: TokenCursor): TableFunctionDescriptorArgument {
  const { start } = cursor
  let fields: DescriptorField[] | undefined
  if (cursor.accept('CAST')) cursor.expect('(', 'NULL', 'AS', 'DESCRIPTOR', ')')
  else {
    cursor.expect('DESCRIPTOR')
    fields = cursor.parenthesized(() =>
      cursor.list(() => {
        const fieldStart = cursor.start
        const name = parseIdentifier(cursor)
        const type = cursor.isOneOf(',', ')') ? undefined : parseType(cursor)
        return { kind: 'DescriptorField', span: cursor.span(fieldStart), name, type }
      }),
    )
  }
  return { kind: 'TableFunctionDescriptorArgument', span: cursor.span(start), fields }
}

function parseTableArgument(cursor: TokenCursor): TableFunctionTableArgument {
  const { start } = cursor
  const table = parseTableArgumentRelation(cursor)
  let partitionBy: TableFunctionTableArgument['partitionBy']
  if (cursor.accept('PARTITION')) {
    cursor.expect('BY')
    partitionBy = parsePartitionColumns(cursor)
  }
  let emptyTreatment: 'KEEP' | 'PRUNE' | undefined
  if (cursor.isOneOf('PRUNE', 'KEEP')) {
    emptyTreatment = cursor.expectOneOf('PRUNE', 'KEEP')
    cursor.expect('WHEN', 'EMPTY')
  }
  const orderBy = cursor.is('ORDER') ? parseArgumentOrder(cursor) : undefined
  return { kind: 'TableFunctionTableArgument', span: cursor.span(start), table, partitionBy, orderBy, emptyTreatment }
}

/** Whether parentheses contain the list of columns; not if an expression continues after them. */
function holdsList(cursor: TokenCursor): boolean {
  if (!cursor.is('(') || cursor.holdsQuery()) return false
  const after = cursor.peek(cursor.closeOf(cursor.index) - cursor.index + 1)
  return [',', ')', 'PRUNE', 'KEEP', 'ORDER', 'COPARTITION'].includes(after)
}

function parsePartitionColumns(cursor: TokenCursor): TableFunctionTableArgument['partitionBy'] {
  if (!holdsList(cursor)) return [cursor.rules.expression(cursor)]
  return cursor.parenthesized(() => (cursor.is(')') ? [] : cursor.list(cursor.rules.expression)))
}

function parseArgumentOrder(cursor: TokenCursor): TableFunctionTableArgument['orderBy'] {
  const { start } = cursor
  if (cursor.peek(2) !== '(') {
    cursor.expect('ORDER', 'BY')
    const sortItems = [parseSortItem(cursor)]
    return { kind: 'OrderBy', span: cursor.span(start), sortItems }
  }
  cursor.expect('ORDER', 'BY')
  const sortItems = holdsList(cursor) ? cursor.parenthesized(() => cursor.list(parseSortItem)) : [parseSortItem(cursor)]
  return { kind: 'OrderBy', span: cursor.span(start), sortItems }
}

function parseTableArgumentRelation(cursor: TokenCursor): Relation {
  const { start } = cursor
  cursor.expect('TABLE')
  const holdsQuery = cursor.holdsQuery()
  cursor.expect('(')
  let relation: Relation
  if (holdsQuery) {
    const query = cursor.rules.query(cursor)
    cursor.expect(')')
    relation = { kind: 'TableSubquery', span: cursor.span(start), query }
  } else {
    const name = parseQualifiedName(cursor)
    cursor.expect(')')
    relation = { kind: 'Table', span: cursor.span(start), name, queryPeriod: undefined }
  }
  let alias: Identifier | undefined
  if (cursor.accept('AS')) alias = parseIdentifier(cursor)
  else if (cursor.isIdentifier() && !beginsClause(cursor)) alias = parseIdentifier(cursor)
  if (alias === undefined) return relation
  const columnNames = cursor.is('(') ? parseColumnAliases(cursor) : undefined
  return { kind: 'AliasedRelation', span: cursor.span(start), relation, alias, columnNames }
}

function beginsClause(cursor: TokenCursor): boolean {
  const next = cursor.peek(1)
  switch (cursor.type) {
    case 'PARTITION':
      return next === 'BY'
    case 'PRUNE':
    case 'KEEP':
      return next === 'WHEN'
    case 'COPARTITION':
      return next === '('
    default:
      return false
  }
}
