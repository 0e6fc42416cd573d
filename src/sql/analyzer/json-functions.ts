import { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { parseJsonPath, type JsonPath, PathNotSupported, PathSyntaxError } from '../../duckdb/json-path/json-path.ts'
import type { Expression, StringLiteral } from '../syntax/ast.ts'
import type { Node } from '../syntax/ast-node.ts'
import type { DataType } from '../syntax/ast-types.ts'
import type {
  JsonArray,
  JsonExists,
  JsonFormat,
  JsonObject,
  JsonPathInvocation,
  JsonQuery,
  JsonValueCall,
  JsonValueBehavior,
} from '../syntax/ast-json.ts'
import { locate } from '../syntax/span.ts'
import { canCast, canCoerce } from '../types/coercion.ts'
import {
  anonymousRow,
  array,
  BIGINT,
  BOOLEAN,
  DOUBLE,
  INTEGER,
  isCharacter,
  isNumeric,
  JSON_TYPE,
  sameType,
  VARBINARY,
  VARCHAR,
  type SqlType,
} from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { plainPath, type PlainPath } from '../../duckdb/json-path/plain-path.ts'
import { castTo, constantOf, letIn } from './build.ts'
import { typeOfPath } from './json-path-types.ts'
import { errorAt, locatedAt, newId, type ExpressionState } from './context.ts'
import { dataTypeText, typeOf } from './data-types.ts'
import { verifyScalar } from './expression-state.ts'
import { functionOf } from './literals.ts'
import type { EngineFunction, Expr } from './tree.ts'
import { isQuery, someExpr } from './walk.ts'

/** Analyzes JSON_EXISTS, JSON_VALUE, JSON_QUERY, JSON_OBJECT and JSON_ARRAY. */
export function analyzeJsonFunction(
  state: ExpressionState,
  node: JsonExists | JsonValueCall | JsonQuery | JsonObject | JsonArray,
): Expr {
  switch (node.kind) {
    case 'JsonExists':
      return pathCall('json_exists', BOOLEAN, valueInvocation(state, 'JSON_EXISTS', node.pathInvocation), [
        textConstant(node.errorBehavior ?? 'FALSE'),
      ])
    case 'JsonValue':
      return jsonValue(state, node)
    case 'JsonQuery': {
      const options = [
        node.wrapperBehavior ?? 'WITHOUT',
        node.quotesBehavior ?? 'KEEP',
        node.emptyBehavior ?? 'NULL',
        node.errorBehavior ?? 'NULL',
      ]
      const type = returnedType(state, node, node.returnedType, VARCHAR)
      if ((node.wrapperBehavior === 'CONDITIONAL' || node.wrapperBehavior === 'UNCONDITIONAL') && node.quotesBehavior) {
        const message = `${node.quotesBehavior} QUOTES behavior specified with WITH ${node.wrapperBehavior} ARRAY WRAPPER behavior`
        throw errorAt(state.context, node, 'INVALID_FUNCTION_ARGUMENT', message)
      }
      const called = valueInvocation(state, 'JSON_QUERY', node.pathInvocation)
      const isPlain = options[0] === 'WITHOUT' && options[1] === 'KEEP'
      const found = isPlain ? called : { ...called, plain: undefined }
      const value = pathCall('json_query', VARCHAR, found, [textConstant(options.join(','))])
      return output(state, node, value, type, node.outputFormat)
    }
    case 'JsonObject':
      return jsonObject(state, node)
    case 'JsonArray':
      return jsonArray(state, node)
    default:
      return unreachable(node)
  }
}

/** The path invocation of a JSON function. Its path must not have a name; only a path of JSON_TABLE may. */
function valueInvocation(state: ExpressionState, name: string, node: JsonPathInvocation): Invocation {
  if (node.pathName !== undefined) {
    const message = `JSON path name is not allowed in ${name} function`
    throw errorAt(state.context, node.pathName, 'INVALID_PATH', message)
  }
  return invocation(state, node)
}

export function engineCall(name: EngineFunction, type: SqlType, args: readonly Expr[]): Expr {
  return { kind: 'engineCall', type, name, arguments: args }
}

export function textConstant(value: string): Expr {
  return constantOf(VARCHAR, value)
}

interface Invocation {
  /** Document, path and passed values: the first arguments of every path function. */
  readonly args: readonly [Expr, Expr, Expr]
  /** The type of the path's result, if the path alone determines it. */
  readonly type: SqlType | undefined
  /** The path in a form that DuckDB can evaluate; undefined if it cannot. */
  readonly plain: PlainPath | undefined
}

/** Evaluates a path in DuckDB if the result is certain to be the same, otherwise in JavaScript. */
function pathCall(
  name: 'json_exists' | 'json_value' | 'json_query',
  type: SqlType,
  called: Invocation,
  rest: readonly Expr[],
): Expr {
  const { args, plain } = called
  if (plain === undefined) return engineCall(`u_${name}`, type, [...args, ...rest])
  const [input, ...others] = args
  const known = [textConstant(plain.pointer), textConstant(plain.unlike)]
  return engineCall(`q_${name}`, type, [input, ...known, ...others, ...rest])
}

export function invocation(state: ExpressionState, node: JsonPathInvocation): Invocation {
  const { jsonPath } = node
  const path = verifyPath(state, jsonPath)
  const value = state.analyze(node.inputExpression)
  const input = readable(state, node.inputExpression, value, node.inputFormat ?? 'JSON')
  const names = new Set<string>()
  const parts = node.pathParameters.flatMap(({ name, parameter, format }) => {
    const key = name.quoted ? name.value : name.value.toUpperCase()
    if (names.has(key)) {
      const message = `${key} JSON path parameter is specified more than once`
      throw errorAt(state.context, name, 'DUPLICATE_PARAMETER_NAME', message)
    }
    names.add(key)
    return [textConstant(key), document(state, parameter, format, 'u_json_passed')]
  })
  const type = typeOfPath(path, [...names], (message) => {
    throw errorAt(state.context, jsonPath, 'INVALID_PATH', message)
  })
  const passed = parts.length === 0 ? textConstant('{}') : objectOf(parts, { unique: false, absent: false })
  // An invalid document passed as a parameter is an error even if the path does not use it, so JavaScript must check
  // it.
  const plain = node.pathParameters.some(({ format }) => format !== undefined) ? undefined : plainPath(path)
  return { args: [input, textConstant(jsonPath.value), passed], type, plain }
}

export function verifyPath(state: ExpressionState, literal: StringLiteral): JsonPath {
  try {
    return parseJsonPath(literal.value)
  } catch (error) {
    if (error instanceof PathNotSupported) throw errorAt(state.context, literal, 'NOT_SUPPORTED', error.message)
    if (!(error instanceof PathSyntaxError)) throw error
    const { sql, origin } = state.context.text
    const start = locate(sql, literal.span.start, origin)
    // The path begins after the quote. As in Trino, line breaks in the path are not counted.
    const columnNumber = start.columnNumber + 1 + error.offset
    throw new EngineError('SYNTAX_ERROR', error.message, { location: { ...start, columnNumber } })
  }
}

/** Converts a JSON input to text. */
function readable(state: ExpressionState, node: Expression, value: Expr, format: JsonFormat): Expr {
  const { type } = value
  if (type.kind === 'unknown') return castTo(value, VARCHAR)
  if (format === 'JSON' && (isCharacter(type) || type.kind === 'json')) return value
  if (type.kind === 'varbinary' && (format === 'JSON' || format === 'UTF8')) return functionOf('from_utf8', [value])
  const shown = format === 'JSON' ? 'JSON' : `JSON ENCODING ${format}`
  if (type.kind === 'varbinary') {
    throw errorAt(state.context, node, 'NOT_SUPPORTED', `Reading JSON in ${shown} is not supported`)
  }
  throw errorAt(
    state.context,
    node,
    'TYPE_MISMATCH',
    `Cannot read input of type ${typeName(type)} as JSON using formatting ${shown}`,
  )
}

/** Whether the expression is a JSON function that returns a document. */
function isDocument(node: Expression): boolean {
  return node.kind === 'JsonQuery' || node.kind === 'JsonObject' || node.kind === 'JsonArray'
}

/**
 * Converts a value to a JSON document: JSON functions and FORMAT JSON give documents, all other values become scalars.
 */
function document(
  state: ExpressionState,
  node: Expression,
  format: JsonFormat | undefined,
  reader: 'u_json_document' | 'u_json_passed' = 'u_json_document',
): Expr {
  const value = state.analyze(node)
  if (isDocument(node)) return value
  if (format !== undefined) {
    return engineCall(reader, JSON_TYPE, [readable(state, node, value, format)])
  }
  const { type } = value
  if (type.kind === 'unknown') return castTo(value, JSON_TYPE)
  if (type.kind !== 'json' && canCast(type, JSON_TYPE) && !['array', 'map', 'row'].includes(type.kind)) {
    return castTo(value, JSON_TYPE)
  }
  if (!canCast(type, VARCHAR)) {
    throw errorAt(
      state.context,
      node,
      'NOT_SUPPORTED',
      `Unsupported type of value passed to JSON function: ${typeName(type)}`,
    )
  }
  return castTo(castTo(value, VARCHAR), JSON_TYPE)
}

function listOf(items: readonly Expr[]): Expr {
  return { kind: 'array', type: array(VARCHAR), items }
}

function orNull(value: Expr): Expr {
  return { kind: 'coalesce', type: VARCHAR, operands: [value, textConstant('null')] }
}

/** Builds a JSON object; `parts` alternate between keys and documents. */
function objectOf(parts: readonly Expr[], { unique, absent }: { unique: boolean; absent: boolean }): Expr {
  return engineCall('u_json_object', VARCHAR, [listOf(parts), constantOf(BOOLEAN, unique), constantOf(BOOLEAN, absent)])
}

function jsonObject(state: ExpressionState, node: JsonObject): Expr {
  const type = returnedType(state, node, node.returnedType, VARCHAR)
  const members = node.members.map((member) => {
    const key = state.analyze(member.key)
    if (!isCharacter(key.type)) {
      throw errorAt(
        state.context,
        member.key,
        'INVALID_FUNCTION_ARGUMENT',
        `Invalid type of JSON object key: ${typeName(key.type)}`,
      )
    }
    if (node.uniqueKeys && (member.format !== undefined || isDocument(member.value))) {
      const message =
        'WITH UNIQUE KEYS behavior is not supported for JSON_OBJECT function when input expression has FORMAT'
      throw errorAt(state.context, node, 'NOT_SUPPORTED', message)
    }
    // Trailing blanks of a char key are removed.
    const name = key.type.kind === 'char' ? functionOf('rtrim', [key, textConstant(' ')]) : key
    return { key: castTo(name, VARCHAR), value: document(state, member.value, member.format) }
  })
  const parts = members.flatMap(({ key, value }) => [key, value])
  const object = objectOf(parts, { unique: node.uniqueKeys, absent: node.absentOnNull })
  return output(state, node, object, type, node.outputFormat)
}

function jsonArray(state: ExpressionState, node: JsonArray): Expr {
  const type = returnedType(state, node, node.returnedType, VARCHAR)
  const items = node.elements.map(({ value, format }) => {
    const item = document(state, value, format)
    return node.absentOnNull ? item : orNull(item)
  })
  const joined = engineCall('array_to_string', VARCHAR, [listOf(items), textConstant(',')])
  return output(
    state,
    node,
    engineCall('concat', VARCHAR, [textConstant('['), joined, textConstant(']')]),
    type,
    node.outputFormat,
  )
}

export function returnedType(
  state: ExpressionState,
  node: Node<string>,
  written: DataType | undefined,
  otherwise: SqlType,
): SqlType {
  if (written === undefined) return otherwise
  try {
    return typeOf(written)
  } catch (error) {
    if (!(error instanceof EngineError) || error.errorName !== 'TYPE_NOT_FOUND') throw error
    throw errorAt(state.context, node, 'TYPE_MISMATCH', `Unknown type: ${dataTypeText(written)}`)
  }
}

/** Converts a document to the type in RETURNING. */
export function output(
  state: ExpressionState,
  node: Node<string>,
  value: Expr,
  type: SqlType,
  format: JsonFormat = 'JSON',
): Expr {
  if (isCharacter(type) && format === 'JSON') return castTo(value, type)
  if (sameType(type, VARBINARY) && (format === 'JSON' || format === 'UTF8')) return functionOf('to_utf8', [value])
  throw errorAt(
    state.context,
    node,
    'TYPE_MISMATCH',
    `Cannot output JSON value as ${typeName(type)} using formatting ${format === 'JSON' ? 'JSON' : `JSON ENCODING ${format}`}`,
  )
}

// ---- JSON_VALUE

function jsonValue(state: ExpressionState, node: JsonValueCall): Expr {
  const type = returnedType(state, node, node.returnedType, VARCHAR)
  if (node.returnedType !== undefined && !isScalar(type)) {
    const message = `Invalid return type of function JSON_VALUE: ${dataTypeText(node.returnedType)}`
    throw errorAt(state.context, node, 'TYPE_MISMATCH', message)
  }
  const called = valueInvocation(state, 'JSON_VALUE', node.pathInvocation)
  const { type: found } = called
  if (found !== undefined && !canCast(found, type)) {
    const message = `Return type of JSON path: ${typeName(found)} incompatible with return type of function JSON_VALUE: ${typeName(type)}`
    throw errorAt(state.context, node, 'TYPE_MISMATCH', message)
  }
  const onEmpty = defaultOf(state, node.emptyBehavior, type, 'ON EMPTY')
  const onError = defaultOf(state, node.errorBehavior, type, 'ON ERROR')
  const value = pathCall('json_value', VARCHAR, called, [
    textConstant(node.emptyBehavior?.behavior ?? 'NULL'),
    textConstant(node.errorBehavior?.behavior ?? 'NULL'),
  ])
  if (onEmpty === undefined && onError === undefined && sameType(type, VARCHAR)) return bodyOf(value)
  const fails = node.errorBehavior?.behavior === 'ERROR'
  const id = newId(state.context)
  const queries = [onEmpty, onError].some((each) => each !== undefined && someExpr(each, isQuery))
  if (!queries) return letIn(id, value, (tagged) => scalarOf(tagged, type, onEmpty, onError, fails))
  // The body of a `let` cannot contain queries, so the defaults are bound together with the value.
  const items = [value, onEmpty ?? constantOf(type, null), onError ?? constantOf(type, null)]
  const all: Expr = { kind: 'row', type: anonymousRow(items.map((item) => item.type)), items }
  return letIn(id, all, (base) => {
    const [tagged, empty, failed] = items.map((item, index): Expr => ({
      kind: 'field',
      type: item.type,
      base,
      index,
    })) as [Expr, Expr, Expr]
    return scalarOf(tagged, type, onEmpty && empty, onError && failed, fails)
  })
}

/** Whether JSON_VALUE may return the type. */
function isScalar(type: SqlType): boolean {
  if (isCharacter(type) || isNumeric(type)) return true
  return /^(?:boolean|date|time|time with time zone|timestamp|timestamp with time zone)$/.test(type.kind)
}

/**
 * The value of a JSON_TABLE column from the scalar that the engine found. Its defaults must be scalars, whatever the
 * column type.
 */
export function tableValue(
  state: ExpressionState,
  tagged: Expr,
  type: SqlType,
  onEmpty: JsonValueBehavior | undefined,
  onError: JsonValueBehavior | undefined,
): Expr {
  const scalar = (node: Expression): void =>
    verifyScalar(state.context, node, state.found, 'default expression for JSON_TABLE column')
  const [empty, failed] = [
    defaultOf(state, onEmpty, type, 'ON EMPTY', scalar),
    defaultOf(state, onError, type, 'ON ERROR', scalar),
  ]
  return scalarOf(tagged, type, empty, failed, onError?.behavior === 'ERROR')
}

function bodyOf(tagged: Expr): Expr {
  return engineCall('substr', VARCHAR, [tagged, constantOf(INTEGER, '2')])
}

/** Converts the engine's tagged text to the requested type. The first letter of the text is the kind of the scalar. */
function scalarOf(
  tagged: Expr,
  type: SqlType,
  onEmpty: Expr | undefined,
  onError: Expr | undefined,
  fails: boolean,
): Expr {
  const body = bodyOf(tagged)
  const tag = engineCall('left', VARCHAR, [tagged, constantOf(INTEGER, '1')])
  const is = (letter: string): Expr => ({
    kind: 'compare',
    type: BOOLEAN,
    operator: '=',
    left: tag,
    right: textConstant(letter),
  })
  const through = (letter: string, inner: SqlType): { readonly when: Expr; readonly then: Expr }[] =>
    canCast(inner, type) ? [{ when: is(letter), then: converted(castTo(body, inner), type) }] : []
  // A text is cut to its length; any other scalar must fit the type.
  const isText = sameType(type, VARCHAR)
  const scalar: Expr = {
    kind: 'case',
    type,
    branches: isText
      ? [{ when: { kind: 'constant', type: BOOLEAN, value: true }, then: converted(body, type) }]
      : [...through('s', VARCHAR), ...through('i', BIGINT), ...through('d', DOUBLE), ...through('b', BOOLEAN)],
    otherwise: undefined,
  }
  const tried: Expr = { kind: 'try', type, value: scalar }
  const failure = engineCall('u_raise', type, [
    textConstant('JSON_VALUE_RESULT_ERROR: cannot extract SQL scalar from JSON'),
  ])
  const guarded: Expr =
    fails && !isText ? { kind: 'coalesce', type, operands: [tried, failure] } : fails ? scalar : tried
  const branches = [
    ...(onEmpty === undefined ? [] : [{ when: is('e'), then: onEmpty }]),
    ...(onError === undefined ? [] : [{ when: is('x'), then: onError }]),
    { when: { kind: 'isNull', type: BOOLEAN, value: tagged } as const, then: constantOf(type, null) },
  ]
  const otherwise: Expr = onError === undefined ? guarded : { kind: 'coalesce', type, operands: [guarded, onError] }
  return { kind: 'case', type, branches, otherwise }
}

function converted(value: Expr, type: SqlType): Expr {
  return sameType(value.type, type) ? value : { kind: 'cast', type, value, safe: false }
}

function defaultOf(
  state: ExpressionState,
  behavior: JsonValueBehavior | undefined,
  type: SqlType,
  clause: 'ON EMPTY' | 'ON ERROR',
  verify?: (node: Expression) => void,
): Expr | undefined {
  if (behavior?.behavior !== 'DEFAULT') return undefined
  const { value: node } = behavior
  const value = state.analyze(node)
  verify?.(node)
  return locatedAt(state.context, node, () => {
    if (canCoerce(value.type, type)) return castTo(value, type)
    throw new EngineError(
      'TYPE_MISMATCH',
      `Function JSON_VALUE default ${clause} result must evaluate to a ${typeName(type)} (actual: ${typeName(value.type)})`,
    )
  })
}
