import type {
  JsonArray,
  JsonArrayElement,
  JsonExists,
  JsonFormat,
  JsonObject,
  JsonObjectMember,
  JsonPathInvocation,
  JsonPathParameter,
  JsonQuery,
  JsonQueryBehavior,
  JsonQueryOptions,
  JsonValueCall,
  JsonValueBehavior,
} from './ast-json.ts'
import type { DataType } from './ast-types.ts'
import { parseIdentifier, parseString } from './parse-names.ts'
import { parseType } from './parse-types.ts'
import type { TokenCursor } from './token-cursor.ts'

export function parseJsonExists(cursor: TokenCursor): JsonExists {
  const { start } = cursor
  cursor.expect('JSON_EXISTS', '(')
  const pathInvocation = parseJsonPathInvocation(cursor)
  let errorBehavior: JsonExists['errorBehavior']
  if (cursor.isOneOf('TRUE', 'FALSE', 'UNKNOWN', 'ERROR')) {
    errorBehavior = cursor.expectOneOf('TRUE', 'FALSE', 'UNKNOWN', 'ERROR')
    cursor.expect('ON', 'ERROR')
  }
  cursor.expect(')')
  return { kind: 'JsonExists', span: cursor.span(start), pathInvocation, errorBehavior }
}

export function parseJsonValue(cursor: TokenCursor): JsonValueCall {
  const { start } = cursor
  cursor.expect('JSON_VALUE', '(')
  const pathInvocation = parseJsonPathInvocation(cursor)
  const returnedType = cursor.accept('RETURNING') ? parseType(cursor) : undefined
  const behaviors = parseJsonValueBehaviors(cursor)
  cursor.expect(')')
  return { kind: 'JsonValue', span: cursor.span(start), pathInvocation, returnedType, ...behaviors }
}

export function parseJsonQuery(cursor: TokenCursor): JsonQuery {
  const { start } = cursor
  cursor.expect('JSON_QUERY', '(')
  const pathInvocation = parseJsonPathInvocation(cursor)
  const returning = parseReturning(cursor)
  const options = parseJsonQueryOptions(cursor)
  cursor.expect(')')
  return { kind: 'JsonQuery', span: cursor.span(start), pathInvocation, ...returning, ...options }
}

export function parseJsonObject(cursor: TokenCursor): JsonObject {
  const { start } = cursor
  cursor.expect('JSON_OBJECT', '(')
  let members: JsonObjectMember[] = []
  let absentOnNull = false
  let uniqueKeys = false
  if (!cursor.is(')') && !isReturning(cursor)) {
    members = cursor.list(parseJsonObjectMember)
    absentOnNull = parseNullTreatment(cursor) ?? false
    if (cursor.isOneOf('WITH', 'WITHOUT')) {
      uniqueKeys = cursor.expectOneOf('WITH', 'WITHOUT') === 'WITH'
      cursor.expect('UNIQUE')
      cursor.accept('KEYS')
    }
  }
  const returning = parseReturning(cursor)
  cursor.expect(')')
  return { kind: 'JsonObject', span: cursor.span(start), members, absentOnNull, uniqueKeys, ...returning }
}

export function parseJsonArray(cursor: TokenCursor): JsonArray {
  const { start } = cursor
  cursor.expect('JSON_ARRAY', '(')
  let elements: JsonArrayElement[] = []
  let absentOnNull = true
  if (!cursor.is(')') && !isReturning(cursor)) {
    elements = cursor.list(() => {
      const from = cursor.start
      return { ...parseJsonInput(cursor), kind: 'JsonArrayElement', span: cursor.span(from) }
    })
    absentOnNull = parseNullTreatment(cursor) ?? true
  }
  const returning = parseReturning(cursor)
  cursor.expect(')')
  return { kind: 'JsonArray', span: cursor.span(start), elements, absentOnNull, ...returning }
}

export function parseJsonPathInvocation(cursor: TokenCursor): JsonPathInvocation {
  const { start } = cursor
  const { value: inputExpression, format: inputFormat } = parseJsonInput(cursor)
  cursor.expect(',')
  const jsonPath = parseString(cursor)
  const pathName = cursor.accept('AS') ? parseIdentifier(cursor) : undefined
  const pathParameters = cursor.accept('PASSING') ? cursor.list(parseJsonPathParameter) : []
  return {
    kind: 'JsonPathInvocation',
    span: cursor.span(start),
    inputExpression,
    inputFormat,
    jsonPath,
    pathName,
    pathParameters,
  }
}

function parseJsonPathParameter(cursor: TokenCursor): JsonPathParameter {
  const { start } = cursor
  const { value: parameter, format } = parseJsonInput(cursor)
  cursor.expect('AS')
  const name = parseIdentifier(cursor)
  return { kind: 'JsonPathParameter', span: cursor.span(start), name, parameter, format }
}

function parseJsonInput(cursor: TokenCursor) {
  const value = cursor.rules.expression(cursor)
  const format = cursor.accept('FORMAT') ? parseJsonFormat(cursor) : undefined
  return { value, format }
}

/** Parses the part after FORMAT: JSON, optionally with an encoding. */
export function parseJsonFormat(cursor: TokenCursor): JsonFormat {
  cursor.expect('JSON')
  return cursor.accept('ENCODING') ? cursor.expectOneOf('UTF8', 'UTF16', 'UTF32') : 'JSON'
}

/** Parses a member. `KEY` is a keyword if an expression follows it, otherwise the name of the key. */
function parseJsonObjectMember(cursor: TokenCursor): JsonObjectMember {
  const { start } = cursor
  if (cursor.is('KEY')) {
    const next = cursor.peek(1)
    const isKeyName = next === 'VALUE' ? cursor.peek(2) !== 'VALUE' : false
    if (!isKeyName && ![':', '.', '[', '+', '-', '*', '/', '%', '||', 'AT', '->'].includes(next)) cursor.advance()
  }
  const key = cursor.rules.expression(cursor)
  if (!cursor.accept('VALUE')) cursor.expect(':')
  const { value, format } = parseJsonInput(cursor)
  return { kind: 'JsonObjectMember', span: cursor.span(start), key, value, format }
}

/** Returns false for `NULL ON NULL` and true for `ABSENT ON NULL`. */
function parseNullTreatment(cursor: TokenCursor): boolean | undefined {
  if (!cursor.isOneOf('ABSENT', 'NULL')) return undefined
  const absent = cursor.expectOneOf('ABSENT', 'NULL') === 'ABSENT'
  cursor.expect('ON', 'NULL')
  return absent
}

function isReturning(cursor: TokenCursor): boolean {
  return cursor.is('RETURNING') && cursor.isIdentifierAt(1)
}

function parseReturning(cursor: TokenCursor): {
  returnedType: DataType | undefined
  outputFormat: JsonFormat | undefined
} {
  const returnedType = cursor.accept('RETURNING') ? parseType(cursor) : undefined
  const outputFormat = returnedType && cursor.accept('FORMAT') ? parseJsonFormat(cursor) : undefined
  return { returnedType, outputFormat }
}

export function parseJsonValueBehaviors(cursor: TokenCursor): {
  emptyBehavior: JsonValueBehavior | undefined
  errorBehavior: JsonValueBehavior | undefined
} {
  return parseBehaviors(cursor, (): JsonValueBehavior | undefined => {
    if (!cursor.isOneOf('ERROR', 'NULL', 'DEFAULT')) return undefined
    const behavior = cursor.expectOneOf('ERROR', 'NULL', 'DEFAULT')
    return behavior === 'DEFAULT' ? { behavior, value: cursor.rules.expression(cursor) } : { behavior }
  })
}

export function parseJsonQueryOptions(cursor: TokenCursor): JsonQueryOptions {
  const wrapperBehavior = parseWrapper(cursor)
  let quotesBehavior: JsonQueryOptions['quotesBehavior']
  if (cursor.isOneOf('KEEP', 'OMIT')) {
    quotesBehavior = cursor.expectOneOf('KEEP', 'OMIT')
    cursor.expect('QUOTES')
    if (cursor.isPair('ON', 'SCALAR')) cursor.expect('ON', 'SCALAR', 'STRING')
  }
  const behaviors = parseBehaviors(cursor, (): JsonQueryBehavior | undefined => {
    if (!cursor.isOneOf('ERROR', 'NULL', 'EMPTY')) return undefined
    const behavior = cursor.expectOneOf('ERROR', 'NULL', 'EMPTY')
    return behavior === 'EMPTY' ? `EMPTY ${cursor.expectOneOf('ARRAY', 'OBJECT')}` : behavior
  })
  return { wrapperBehavior, quotesBehavior, ...behaviors }
}

function parseWrapper(cursor: TokenCursor): JsonQueryOptions['wrapperBehavior'] {
  let wrapper: JsonQueryOptions['wrapperBehavior']
  if (cursor.accept('WITHOUT')) wrapper = 'WITHOUT'
  else if (cursor.accept('WITH')) {
    wrapper = cursor.accept('CONDITIONAL') ? 'CONDITIONAL' : 'UNCONDITIONAL'
    if (wrapper === 'UNCONDITIONAL') cursor.accept('UNCONDITIONAL')
  } else return undefined
  cursor.accept('ARRAY')
  cursor.expect('WRAPPER')
  return wrapper
}

/** Parses `x ON EMPTY` and then `y ON ERROR`, each optional. */
function parseBehaviors<B>(
  cursor: TokenCursor,
  behavior: () => B | undefined,
): { emptyBehavior: B | undefined; errorBehavior: B | undefined } {
  const first = behavior()
  if (first === undefined) return { emptyBehavior: undefined, errorBehavior: undefined }
  cursor.expect('ON')
  if (cursor.expectOneOf('EMPTY', 'ERROR') === 'ERROR') return { emptyBehavior: undefined, errorBehavior: first }
  const second = behavior()
  if (second !== undefined) cursor.expect('ON', 'ERROR')
  return { emptyBehavior: first, errorBehavior: second }
}
