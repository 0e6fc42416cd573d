import { evaluatePath, isTooBig, PathEvaluationError } from '../json-path/evaluate-path.ts'
import { parseJsonPath, type JsonPath } from '../json-path/json-path.ts'
import { sqlDouble } from './double-text.ts'
import { JsonReader, JsonSyntaxError } from './json-reader.ts'
import { isWholeNumber, quoteJson, writeJson } from './write-json.ts'
import { isContainer, isJsonNumber, type JsonValue } from './json-value.ts'
import { SqlFailure, type ScalarFunction } from './scalar-function.ts'
import { Signal } from '../../shared/quipu-error.ts'

// JSON_EXISTS, JSON_VALUE and JSON_QUERY: a path over a document, with values passed as members of a JSON object.

const MAX_CACHED = 200
const paths = new Map<string, JsonPath>()

function pathOf(text: string): JsonPath {
  let path = paths.get(text)
  if (path === undefined) {
    path = parseJsonPath(text)
    if (paths.size >= MAX_CACHED) paths.clear()
    paths.set(text, path)
  }
  return path
}

/** Trino's reader treats a blank text as null. */
const BLANK = /^[ \t\r\n]*$/

export function documentOf(input: string): JsonValue {
  if (BLANK.test(input)) return null
  try {
    return JsonReader.parse(input)
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    throw new SqlFailure('JSON_INPUT_CONVERSION_ERROR', 'conversion to JSON failed: ')
  }
}

export type Variables = ReadonlyMap<string, JsonValue>

/**
 * The values that are passed to a path: the members of a JSON object. A member is NO_DOCUMENT if its value could not be
 * read.
 */
export function variablesOf(passed: string): Variables {
  return (documentOf(passed) as { readonly members: Variables }).members
}

const NO_DOCUMENT = '?'

function itemsOf(input: string, path: string, passed: string): readonly JsonValue[] {
  return itemsAt(documentOf(input), path, variablesOf(passed))
}

/** The items that a path finds from `document` on. */
export function itemsAt(document: JsonValue, path: string, variables: Variables): readonly JsonValue[] {
  try {
    return evaluatePath(pathOf(path), document, variables)
  } catch (error) {
    if (!(error instanceof PathEvaluationError)) throw error
    throw new SqlFailure('PATH_EVALUATION_ERROR', error.message)
  }
}

function exists(input: string, path: string, passed: string, onError: string): boolean | null {
  try {
    return itemsOf(input, path, passed).length > 0
  } catch (error) {
    if (!(error instanceof SqlFailure) || onError === 'ERROR') throw error
    return onError === 'UNKNOWN' ? null : onError === 'TRUE'
  }
}

/** A scalar after a letter for its kind (s, i, d, b); `e` and `x` if the default on empty or on error applies. */
function value(input: string, path: string, passed: string, onEmpty: string, onError: string): string | null {
  return scalarOf(() => itemsOf(input, path, passed), onEmpty, onError)
}

/** JSON_VALUE for the items of `find`. */
export function scalarOf(find: () => readonly JsonValue[], onEmpty: string, onError: string): string | null {
  try {
    const items = find()
    if (items.length === 0) {
      if (onEmpty === 'ERROR') throw new EmptyResult()
      return onEmpty === 'DEFAULT' ? 'e' : null
    }
    const [item] = items as readonly [JsonValue]
    if (items.length > 1) throw resultError('JSON path found multiple items')
    if (isContainer(item) || (isJsonNumber(item) && isTooBig(item.number))) {
      throw resultError('JSON path found an item that cannot be converted to an SQL value')
    }
    return tagged(item)
  } catch (error) {
    if (error instanceof EmptyResult) throw resultError('JSON path found no items')
    if (!(error instanceof SqlFailure) || onError === 'ERROR') throw error
    return onError === 'DEFAULT' ? 'x' : null
  }
}

/** Signals ERROR ON EMPTY, which fails whatever ON ERROR says. */
class EmptyResult extends Signal {}

function resultError(reason: string): SqlFailure {
  return new SqlFailure('JSON_VALUE_RESULT_ERROR', `cannot extract SQL scalar from JSON: ${reason}`)
}

function tagged(item: JsonValue): string | null {
  if (item === null) return null
  if (typeof item === 'string') return `s${item}`
  if (typeof item === 'boolean') return `b${item}`
  if (!isJsonNumber(item)) return null
  return isWholeNumber(item.number) ? `i${BigInt(item.number)}` : `d${sqlDouble(Number(item.number))}`
}

/** `options`: wrapper, quotes, on empty, on error, separated by commas. */
function query(input: string, path: string, passed: string, options: string): string | null {
  return documentFrom(() => itemsOf(input, path, passed), options)
}

/** JSON_QUERY for the items of `find`. */
export function documentFrom(find: () => readonly JsonValue[], options: string): string | null {
  const [wrapper, quotes, onEmpty, onError] = options.split(',')
  const otherwise = (behavior: string | undefined, error: SqlFailure): string | null => {
    switch (behavior) {
      case 'ERROR':
        throw error
      case 'EMPTY ARRAY':
        return '[]'
      case 'EMPTY OBJECT':
        return '{}'
      default:
        return null
    }
  }
  let items: readonly JsonValue[]
  try {
    items = find()
  } catch (error) {
    if (!(error instanceof SqlFailure)) throw error
    return otherwise(onError, error)
  }
  if (items.length === 0) return otherwise(onEmpty, outputError('JSON path found no items'))
  const wraps =
    wrapper === 'UNCONDITIONAL' || (wrapper === 'CONDITIONAL' && (items.length > 1 || !isContainer(items[0]!)))
  const result: JsonValue | undefined = wraps ? items : items.length === 1 ? items[0] : undefined
  if (result === undefined) return otherwise(onError, outputError('JSON path found multiple items'))
  if (quotes === 'OMIT' && typeof result === 'string') return result
  return writeJson(result, false)
}

function outputError(reason: string): SqlFailure {
  return new SqlFailure('JSON_OUTPUT_CONVERSION_ERROR', `conversion from JSON failed: ${reason}`)
}

/** The document of a FORMAT JSON argument, written as Trino writes it. */
function document(input: string): string {
  return writeJson(documentOf(input), false)
}

/** A document that is passed to a path. An invalid document becomes NO_DOCUMENT: the path's ON ERROR handles it. */
function passed(input: string): string {
  try {
    return document(input)
  } catch (error) {
    if (!(error instanceof SqlFailure)) throw error
    return NO_DOCUMENT
  }
}

/** An object of alternating keys and documents. @param absent NULL values are left out */
function object(parts: readonly (string | null)[], unique: boolean, absent: boolean): string {
  const members = new Map<string, string>()
  for (let i = 0; i < parts.length; i += 2) {
    const name = parts[i]
    const member = parts[i + 1] ?? null
    if (name === null || name === undefined) {
      throw new SqlFailure('INVALID_FUNCTION_ARGUMENT', 'null value passed for JSON object key to JSON_OBJECT function')
    }
    if (member === null && absent) continue
    if (members.has(name)) {
      throw unique
        ? new SqlFailure('INVALID_FUNCTION_ARGUMENT', 'duplicate key passed to JSON_OBJECT function')
        : new SqlFailure('NOT_SUPPORTED', 'cannot construct a JSON object with duplicate key')
    }
    members.set(name, `${quoteJson(name)}:${member ?? 'null'}`)
  }
  return `{${hashOrder([...members.keys()])
    .map((name) => members.get(name))
    .join(',')}}`
}

/** Different keys in the order of Java's HashMap, in which Trino keeps the members of an object. */
function hashOrder(keys: readonly string[]): readonly string[] {
  let buckets = 16
  while (keys.length > 0.75 * buckets) buckets *= 2
  const bucketOf = (key: string): number => {
    let hash = 0
    for (let i = 0; i < key.length; i++) hash = (Math.imul(31, hash) + key.charCodeAt(i)) | 0
    return (hash ^ (hash >>> 16)) & (buckets - 1)
  }
  return keys
    .map((key) => ({ key, bucket: bucketOf(key) }))
    .sort((a, b) => a.bucket - b.bucket)
    .map(({ key }) => key)
}

export const sqlJsonScripts: readonly ScalarFunction[] = [
  { name: 'u_json_exists', parameters: ['VARCHAR', 'VARCHAR', 'VARCHAR', 'VARCHAR'], returns: 'BOOLEAN', call: exists },
  {
    name: 'u_json_value',
    parameters: ['VARCHAR', 'VARCHAR', 'VARCHAR', 'VARCHAR', 'VARCHAR'],
    returns: 'VARCHAR',
    call: value,
  },
  { name: 'u_json_query', parameters: ['VARCHAR', 'VARCHAR', 'VARCHAR', 'VARCHAR'], returns: 'VARCHAR', call: query },
  { name: 'u_json_document', parameters: ['VARCHAR'], returns: 'VARCHAR', call: document },
  { name: 'u_json_passed', parameters: ['VARCHAR'], returns: 'VARCHAR', call: passed },
  { name: 'u_json_object', parameters: ['VARCHAR[]', 'BOOLEAN', 'BOOLEAN'], returns: 'VARCHAR', call: object },
]
