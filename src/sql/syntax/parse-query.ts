import type { Expression } from './ast.ts'
import type {
  AllColumns,
  FetchFirst,
  GroupBy,
  GroupingElement,
  Limit,
  Offset,
  Query,
  QueryBody,
  QuerySpecification,
  Select,
  SelectItem,
  SessionPropertyValue,
  SetOperation,
  With,
  WithQuery,
} from './ast-query.ts'
import type { FunctionSpecification } from './ast-routines.ts'
import { startsExpression } from './expression-starts.ts'
import { tokenSet } from './keywords.ts'
import { parseSetQuantifier } from './parse-calls.ts'
import { parseExpression } from './parse-expressions.ts'
import { isRowCount, parseRowCount } from './parse-literals.ts'
import { parseColumnAliases, parseIdentifier, parseQualifiedName } from './parse-names.ts'
import { parseFrom, parseOptionalAlias } from './parse-relations.ts'
import { parseFunctionSpecification } from './parse-routines.ts'
import { parseOptionalOrderBy, parseWindowDefinition } from './parse-windows.ts'
import type { TokenCursor } from './token-cursor.ts'

/** Parses a query with `WITH FUNCTION` and `WITH SESSION`, as at the start of a statement. */
export function parseRootQuery(cursor: TokenCursor): Query {
  const { start } = cursor
  const functions: FunctionSpecification[] = []
  const sessionProperties: SessionPropertyValue[] = []
  while (isScope(cursor)) {
    if (cursor.is('WITH')) cursor.advance()
    if (cursor.is('FUNCTION')) functions.push(...cursor.list(parseFunctionSpecification))
    else {
      cursor.expect('SESSION')
      sessionProperties.push(...cursor.list(parseSessionProperty))
    }
  }
  const query = parseQuery(cursor)
  if (functions.length === 0 && sessionProperties.length === 0) return query
  return { ...query, span: cursor.span(start), functions, sessionProperties }
}

/** Whether FUNCTION or SESSION begins such a clause; both may also name a query of a WITH clause. */
function isScope(cursor: TokenCursor): boolean {
  const word = cursor.is('WITH') ? 1 : 0
  const type = cursor.peek(word)
  const next = cursor.peek(word + 1)
  return (type === 'FUNCTION' || type === 'SESSION') && next !== 'AS' && next !== '('
}

function parseSessionProperty(cursor: TokenCursor): SessionPropertyValue {
  const { start } = cursor
  const name = parseQualifiedName(cursor)
  cursor.expect('=')
  const value = parseExpression(cursor)
  return { kind: 'SessionProperty', span: cursor.span(start), name, value }
}

export function parseQuery(cursor: TokenCursor): Query {
  return cursor.nested(() => {
    const { start } = cursor
    const withClause = cursor.is('WITH') ? parseWith(cursor) : undefined
    cursor.note('<query>', true)
    return parseQueryNoWith(cursor, start, withClause)
  })
}

function parseWith(cursor: TokenCursor): With {
  const { start } = cursor
  cursor.expect('WITH')
  const recursive = cursor.accept('RECURSIVE')
  const queries = cursor.list(parseWithQuery)
  return { kind: 'With', span: cursor.span(start), recursive, queries }
}

function parseWithQuery(cursor: TokenCursor): WithQuery {
  const { start } = cursor
  const name = parseIdentifier(cursor)
  const columnNames = cursor.is('(') ? parseColumnAliases(cursor) : undefined
  cursor.expect('AS')
  const query = cursor.parenthesized(parseQuery)
  return { kind: 'WithQuery', span: cursor.span(start), name, query, columnNames }
}

function parseQueryNoWith(cursor: TokenCursor, start: number, withClause: With | undefined): Query {
  const body = parseTerm(cursor, 0)
  const orderBy = parseOptionalOrderBy(cursor)
  const offset = parseOffset(cursor)
  const limit = parseLimit(cursor)
  return {
    kind: 'Query',
    span: cursor.span(start),
    functions: [],
    sessionProperties: [],
    with: withClause,
    body,
    orderBy,
    offset,
    limit,
  }
}

function parseOffset(cursor: TokenCursor): Offset | undefined {
  const { start } = cursor
  if (!cursor.accept('OFFSET')) return undefined
  const rowCount = parseRowCount(cursor)
  if (!cursor.accept('ROW')) cursor.accept('ROWS')
  return { kind: 'Offset', span: cursor.span(start), rowCount }
}

function parseLimit(cursor: TokenCursor): Limit | FetchFirst | undefined {
  const { start } = cursor
  if (cursor.accept('LIMIT')) {
    const rowCount = cursor.accept('ALL') ? 'ALL' : parseRowCount(cursor)
    return { kind: 'Limit', span: cursor.span(start), rowCount }
  }
  if (!cursor.accept('FETCH')) return undefined
  cursor.expectOneOf('FIRST', 'NEXT')
  const rowCount = isRowCount(cursor.type) ? parseRowCount(cursor) : undefined
  cursor.expectOneOf('ROW', 'ROWS')
  const withTies = cursor.accept('WITH')
  cursor.expect(withTies ? 'TIES' : 'ONLY')
  return { kind: 'FetchFirst', span: cursor.span(start), rowCount, withTies }
}

/** Parses set operations. INTERSECT binds tighter than UNION and EXCEPT; all are left-associative. */
function parseTerm(cursor: TokenCursor, above: number): QueryBody {
  const { start } = cursor
  const siblings = cursor.height
  cursor.height = 0
  let left = parseQueryPrimary(cursor)
  for (;;) {
    const at = cursor.start
    const binds = cursor.is('INTERSECT') ? 2 : cursor.isOneOf('UNION', 'EXCEPT') ? 1 : 0
    if (binds <= above) break
    const operator = cursor.type as SetOperation['operator']
    cursor.advance()
    const quantifier = cursor.isOneOf('DISTINCT', 'ALL') ? cursor.expectOneOf('DISTINCT', 'ALL') : undefined
    const corresponding = parseCorresponding(cursor)
    const right = parseTerm(cursor, binds)
    const span = cursor.span(start, at)
    left = { kind: 'SetOperation', span, operator, distinct: quantifier !== 'ALL', corresponding, left, right }
    cursor.grow()
  }
  if (siblings > cursor.height) cursor.height = siblings
  return left
}

function parseCorresponding(cursor: TokenCursor): SetOperation['corresponding'] {
  const { start } = cursor
  if (!cursor.accept('CORRESPONDING')) return undefined
  const columns = cursor.accept('BY') ? parseColumnAliases(cursor) : []
  return { kind: 'Corresponding', span: cursor.span(start), columns }
}

function parseQueryPrimary(cursor: TokenCursor): QueryBody {
  const { start } = cursor
  if (cursor.is('SELECT')) return cursor.nested(parseQuerySpecification)
  if (cursor.accept('TABLE')) {
    const name = parseQualifiedName(cursor)
    return { kind: 'Table', span: cursor.span(start), name, queryPeriod: undefined }
  }
  if (cursor.accept('VALUES')) {
    const rows = cursor.list(parseExpression)
    return { kind: 'Values', span: cursor.span(start), rows }
  }
  cursor.expect('(')
  const query = cursor.nested(() => parseQueryNoWith(cursor, cursor.start, undefined))
  cursor.expect(')')
  return { kind: 'TableSubquery', span: cursor.span(start), query }
}

function parseQuerySpecification(cursor: TokenCursor): QuerySpecification {
  const { start } = cursor
  const select = parseSelect(cursor)
  const from = cursor.accept('FROM') ? parseFrom(cursor) : undefined
  const where = cursor.accept('WHERE') ? parseExpression(cursor) : undefined
  const groupBy = cursor.is('GROUP') ? parseGroupBy(cursor) : undefined
  const having = cursor.accept('HAVING') ? parseExpression(cursor) : undefined
  const windows = cursor.accept('WINDOW') ? cursor.list(parseWindowDefinition) : []
  return { kind: 'QuerySpecification', span: cursor.span(start), select, from, where, groupBy, having, windows }
}

function parseSelect(cursor: TokenCursor): Select {
  const { start } = cursor
  cursor.expect('SELECT')
  cursor.note("'ALL'")
  const distinct = parseSetQuantifier(cursor, (type) => type === '*' || startsExpression(type)) === 'DISTINCT'
  const items = cursor.list(parseSelectItem)
  return { kind: 'Select', span: cursor.span(start), distinct, items }
}

function parseSelectItem(cursor: TokenCursor): SelectItem {
  const { start } = cursor
  if (cursor.accept('*')) return { kind: 'AllColumns', span: cursor.span(start), target: undefined, aliases: [] }
  const expression = parseExpression(cursor)
  if (cursor.is('.') && cursor.lastPrimary === expression) return parseAllColumns(cursor, expression, start)
  const alias = parseOptionalAlias(cursor)
  return { kind: 'SingleColumn', span: cursor.span(start), expression, alias }
}

/** Parses `target.* AS (a, b)`. */
function parseAllColumns(cursor: TokenCursor, target: Expression, start: number): AllColumns {
  cursor.expect('.', '*')
  const aliases = cursor.accept('AS') ? parseColumnAliases(cursor) : []
  return { kind: 'AllColumns', span: cursor.span(start), target, aliases }
}

function parseGroupBy(cursor: TokenCursor): GroupBy {
  cursor.expect('GROUP', 'BY')
  const { start } = cursor
  const starts = (type: string): boolean => startsExpression(type) || type === 'ROLLUP' || type === 'CUBE'
  const distinct = parseSetQuantifier(cursor, starts) === 'DISTINCT'
  const elements = cursor.list(parseGroupingElement)
  return { kind: 'GroupBy', span: cursor.span(start), distinct, elements }
}

function parseGroupingElement(cursor: TokenCursor): GroupingElement {
  const { start } = cursor
  if (cursor.is('AUTO') && !continuesName.has(cursor.peek(1))) {
    cursor.advance()
    return { kind: 'GroupByAuto', span: cursor.span(start) }
  }
  const isSets = cursor.isPair('GROUPING', 'SETS')
  if (isSets || cursor.isOneOf('ROLLUP', 'CUBE')) {
    const type = isSets ? 'EXPLICIT' : cursor.type === 'CUBE' ? 'CUBE' : 'ROLLUP'
    cursor.advance()
    if (isSets) cursor.advance()
    const sets = cursor.parenthesized(() => (!isSets && cursor.is(')') ? [] : cursor.list(parseGroupingSet)))
    return { kind: 'GroupingSets', span: cursor.span(start), type, sets }
  }
  const columns = parseGroupingSet(cursor)
  return { kind: 'SimpleGroupBy', span: cursor.span(start), columns }
}

/** After these tokens, AUTO is a column's name in a longer expression. */
const continuesName = tokenSet('. ( [ -> = <> < <= > >= + - * / % || AND OR IS IN NOT LIKE BETWEEN AT OVER')

/**
 * Parses a grouping set. A list in parentheses is one set of columns, unless an expression continues after it:
 * `(a + b) * 2`.
 */
function parseGroupingSet(cursor: TokenCursor): Expression[] {
  if (!cursor.is('(') || cursor.holdsQuery()) return [parseExpression(cursor)]
  const after = cursor.peek(cursor.closeOf(cursor.index) - cursor.index + 1)
  if (!afterGroupingSet.has(after)) return [parseExpression(cursor)]
  return cursor.parenthesized(() => (cursor.is(')') ? [] : cursor.list(parseExpression)))
}

const afterGroupingSet = tokenSet(', ) ; EOF HAVING WINDOW ORDER OFFSET LIMIT FETCH UNION EXCEPT INTERSECT WITH')
