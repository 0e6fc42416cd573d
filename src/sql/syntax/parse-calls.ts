import type { Expression, FunctionCall, Listagg, ListaggOverflow, ProcessingMode, Window } from './ast.ts'
import type { QualifiedName } from './ast-node.ts'
import type { OrderBy } from './ast-query.ts'
import { parseIdentifier, parseOptionalString, parseQualifiedName, parseString } from './parse-names.ts'
import { isOver, parseOptionalOrderBy, parseOrderBy, parseOver } from './parse-windows.ts'
import { startsExpression } from './expression-starts.ts'
import type { TokenCursor } from './token-cursor.ts'

/** The number of tokens in a call's name, if a name followed by `(` begins here; otherwise 0. */
export function callNameLength(cursor: TokenCursor, from = 0): number {
  let ahead = from
  while (cursor.isIdentifierAt(ahead)) {
    const next = cursor.peek(ahead + 1)
    if (next === '(') return ahead + 1 - from
    if (next !== '.') return 0
    ahead += 2
  }
  return 0
}

/** Whether RUNNING or FINAL stands before a call. */
export function isProcessingMode(cursor: TokenCursor): boolean {
  return (cursor.type === 'RUNNING' || cursor.type === 'FINAL') && callNameLength(cursor, 1) > 0
}

interface Call {
  readonly name: QualifiedName
  readonly arguments: readonly Expression[]
  readonly star: boolean
  readonly distinct: boolean
  readonly orderBy: OrderBy | undefined
  readonly filter: Expression | undefined
  readonly window: Window | undefined
  readonly nullTreatment: 'IGNORE' | 'RESPECT' | undefined
  readonly processingMode: ProcessingMode | undefined
}

export function parseFunctionCall(cursor: TokenCursor): Expression {
  const { start } = cursor
  const processingMode = isProcessingMode(cursor) ? parseProcessingMode(cursor) : undefined
  const name = parseQualifiedName(cursor)
  cursor.expect('(')
  const { star, ...rest } = parseArguments(cursor)
  cursor.expect(')')
  const filter = parseFilter(cursor)
  const nullTreatment = star ? undefined : parseNullTreatment(cursor)
  if (nullTreatment !== undefined && !isOver(cursor)) cursor.expect('OVER')
  const window = isOver(cursor) ? parseOver(cursor) : undefined
  const call: Call = { name, ...rest, star, filter, window, nullTreatment, processingMode }
  const special = name.parts.length === 1 ? specialForm(cursor, call, start) : undefined
  if (special !== undefined) return special
  const node: FunctionCall = { kind: 'FunctionCall', span: cursor.span(start), ...call }
  return node
}

function parseProcessingMode(cursor: TokenCursor): ProcessingMode {
  const { start } = cursor
  const mode = cursor.expectOneOf('RUNNING', 'FINAL')
  return { kind: 'ProcessingMode', span: cursor.span(start), mode }
}

function parseArguments(cursor: TokenCursor): Pick<Call, 'arguments' | 'star' | 'distinct' | 'orderBy'> {
  const nothing = { star: false, distinct: false, orderBy: undefined }
  if (cursor.is(')')) return { arguments: [], ...nothing }
  if (cursor.accept('*')) return { arguments: [], ...nothing, star: true }
  if (cursor.isIdentifierAt(0) && cursor.peek(1) === '.' && cursor.peek(2) === '*') {
    const { start } = cursor
    const label = parseIdentifier(cursor)
    cursor.expect('.', '*')
    return { arguments: [{ kind: 'LabelDereference', span: cursor.span(start), label }], ...nothing }
  }
  const quantifier = parseSetQuantifier(cursor)
  const list = quantifier === undefined && cursor.is('ORDER') ? [] : cursor.list(cursor.rules.expression)
  const orderBy = parseOptionalOrderBy(cursor)
  return { arguments: list, star: false, distinct: quantifier === 'DISTINCT', orderBy }
}

/** Parses DISTINCT, or ALL if an expression follows; otherwise ALL is a name. */
export function parseSetQuantifier(cursor: TokenCursor, starts = startsExpression): 'DISTINCT' | 'ALL' | undefined {
  if (cursor.accept('DISTINCT')) return 'DISTINCT'
  if (cursor.is('ALL') && starts(cursor.peek(1))) {
    cursor.advance()
    return 'ALL'
  }
  return undefined
}

function parseFilter(cursor: TokenCursor): Expression | undefined {
  if (!cursor.isPair('FILTER', '(')) return undefined
  cursor.advance()
  cursor.expect('(', 'WHERE')
  const filter = cursor.rules.expression(cursor)
  cursor.expect(')')
  return filter
}

function parseNullTreatment(cursor: TokenCursor): 'IGNORE' | 'RESPECT' | undefined {
  if (cursor.acceptPair('IGNORE', 'NULLS')) return 'IGNORE'
  return cursor.acceptPair('RESPECT', 'NULLS') ? 'RESPECT' : undefined
}

const specialNames: ReadonlySet<string> = new Set(['if', 'nullif', 'coalesce', 'try', 'format'])

/** Builds the special nodes that Trino's parser makes of some calls, with its checks. */
function specialForm(cursor: TokenCursor, call: Call, start: number): Expression | undefined {
  const written = call.name.parts[0]!.value
  if (written.length > 8) return undefined
  const name = written.toLowerCase()
  if (!specialNames.has(name)) return undefined
  const span = cursor.span(start)
  const [first, second, third] = call.arguments
  const count = call.arguments.length
  const check = (right: boolean, message: string): boolean => {
    if (!right) cursor.defer(message, start)
    return right
  }
  const counted = {
    if: [count === 2 || count === 3, "Invalid number of arguments for 'if' function"],
    nullif: [count === 2, "Invalid number of arguments for 'nullif' function"],
    coalesce: [count >= 2, "The 'coalesce' function must have at least two arguments"],
    try: [count === 1, "The 'try' function must have exactly one argument"],
    format: [count >= 2, "The 'format' function must have at least two arguments"],
  }[name] as [boolean, string]
  const right =
    check(...counted) &&
    check(call.window === undefined, `OVER clause not valid for '${name}' function`) &&
    check(!call.distinct, `DISTINCT not valid for '${name}' function`) &&
    check(call.nullTreatment === undefined, `Null treatment clause not valid for '${name}' function`) &&
    check(call.processingMode === undefined, `Processing mode not valid for '${name}' function`) &&
    check(call.filter === undefined, `FILTER not valid for '${name}' function`)
  if (!right) return undefined
  switch (name) {
    case 'if':
      return { kind: 'IfExpression', span, condition: first!, trueValue: second!, falseValue: third }
    case 'nullif':
      return { kind: 'NullIfExpression', span, first: first!, second: second! }
    case 'coalesce':
      return { kind: 'CoalesceExpression', span, operands: call.arguments }
    case 'try':
      return { kind: 'TryExpression', span, value: first! }
    default:
      return { kind: 'Format', span, arguments: call.arguments }
  }
}

export function parseListagg(cursor: TokenCursor): Listagg {
  const { start } = cursor
  cursor.expect('LISTAGG', '(')
  const distinct = parseSetQuantifier(cursor) === 'DISTINCT'
  const value = cursor.rules.expression(cursor)
  const separator = cursor.accept(',') ? parseString(cursor) : undefined
  const overflow = cursor.accept('ON') ? parseOverflow(cursor) : undefined
  cursor.expect(')', 'WITHIN', 'GROUP', '(')
  const orderBy = parseOrderBy(cursor)
  cursor.expect(')')
  const filter = parseFilter(cursor)
  const window = isOver(cursor) ? parseOver(cursor) : undefined
  return { kind: 'Listagg', span: cursor.span(start), distinct, value, separator, overflow, orderBy, filter, window }
}

function parseOverflow(cursor: TokenCursor): ListaggOverflow {
  cursor.expect('OVERFLOW')
  if (cursor.accept('ERROR')) return { behavior: 'ERROR' }
  cursor.expect('TRUNCATE')
  const filler = parseOptionalString(cursor)
  const withCount = cursor.expectOneOf('WITH', 'WITHOUT') === 'WITH'
  cursor.expect('COUNT')
  return { behavior: 'TRUNCATE', filler, withCount }
}
