import { JsonReader, JsonSyntaxError } from './json-reader.ts'
import { canonicalNumber, isWholeNumber, quoteJson, quoteJsonPlain, wholeCharacters, writeJson } from './write-json.ts'
import { isContainer, isJsonNumber, type JsonValue } from './json-value.ts'
import { castJson, jsonText } from './json-cast.ts'
import { tidied } from './json-tidy.ts'
import { invalidArgument, type ScalarFunction } from './scalar-function.ts'

/** The canonical form of a text; null if the text already has that form. */
function parsedJson(text: string): string | null {
  const parsed = tidied(text) ?? parseJson(text)
  return parsed === text ? null : parsed
}

function parseJson(text: string): string {
  try {
    return JsonReader.canonical(text)
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw invalidArgument(`Cannot convert value to JSON: '${text}'`)
    throw error
  }
}

const paths = new Map<string, readonly string[]>()

/** The steps of a path: `$`, `.name`, `[0]`, `["any"]` and nothing else; undefined for any other text. */
export function stepsOf(path: string): readonly string[] | undefined {
  if (!path.startsWith('$')) return undefined
  const steps: string[] = []
  const step = /\.([\p{L}\p{N}_]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]/uy
  step.lastIndex = 1
  while (step.lastIndex < path.length) {
    const match = step.exec(path)
    if (match === null) return undefined
    steps.push(match[1] ?? match[2] ?? match[3]!.replaceAll(/\\(.)/g, '$1'))
  }
  return steps
}

function pathOf(text: string): readonly string[] {
  const known = paths.get(text)
  if (known !== undefined) return known
  const steps = stepsOf(text)
  if (steps === undefined) throw invalidArgument(`Invalid JSON path: '${text}'`)
  if (paths.size > 1000) paths.clear()
  paths.set(text, steps)
  return steps
}

/** Reads the value at a path; null if there is none, or if the document is invalid before it. */
function at<T>(text: string, path: string, read: (reader: JsonReader) => T): T | null {
  const steps = pathOf(path)
  const reader = new JsonReader(text)
  try {
    return reader.seek(steps) ? read(reader) : null
  } catch (error) {
    if (error instanceof JsonSyntaxError) return null
    throw error
  }
}

function document(text: string): JsonValue | undefined {
  try {
    return JsonReader.parse(text)
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined
    throw error
  }
}

function extract(text: string, path: string): string | null {
  return at(text, path, (reader) => reader.copy())
}

function extractScalar(text: string, path: string): string | null {
  const value = at(text, path, (reader) => reader.value())
  if (value === null || isContainer(value)) return null
  if (typeof value === 'string') return wholeCharacters(value)
  return typeof value === 'boolean' ? String(value) : (value as { readonly number: string }).number
}

function size(text: string, path: string): bigint | null {
  return at(text, path, (reader) => reader.count())
}

/** Reads the elements of an array one by one, up to the wanted element: faults behind it are not noticed. */
function elements<T>(text: string, read: (reader: JsonReader) => T): T | null {
  try {
    return read(new JsonReader(text))
  } catch (error) {
    if (error instanceof JsonSyntaxError) return null
    throw error
  }
}

function arrayLength(text: string): bigint | null {
  return elements(text, (reader) => {
    let count = 0n
    const isNone = reader.find((each) => {
      each.value()
      count++
      return false
    })
    return isNone === undefined ? null : count
  })
}

/** An element; text without quotes, numbers as they are written. */
function arrayGet(text: string, index: bigint): string | null {
  return elements(text, (reader) => {
    // An index from the end needs all elements.
    const items: JsonValue[] = []
    let left = index
    const isThere = reader.find((each) => {
      if (index < 0n || left === 0n) items.push(each.value())
      else each.pass()
      return left-- === 0n
    })
    if (index < 0n) return -index > BigInt(items.length) ? null : elementText(items.at(Number(index))!)
    return isThere === true ? elementText(items[0]!) : null
  })
}

function elementText(item: JsonValue): string | null {
  if (item === null) return null
  if (typeof item === 'string') return wholeCharacters(item)
  return isJsonNumber(item) ? item.number : writeJson(item, false, quoteJsonPlain)
}

function arrayContains(text: string, kind: string, wanted: string): boolean | null {
  return elements(text, (reader) => reader.find((each) => isWanted(each.value(), kind, wanted)) ?? null)
}

function isWanted(item: JsonValue, kind: string, wanted: string): boolean {
  if (item === null) return false
  switch (kind) {
    case 'text':
      return item === wanted
    case 'boolean':
      return typeof item === 'boolean' && String(item) === wanted
    default: {
      if (!isJsonNumber(item)) return false
      const isWhole = isWholeNumber(item.number)
      if (kind === 'integer') return isWhole && canonicalNumber(item.number) === wanted
      return !isWhole && Number.isFinite(Number(item.number)) && Number(item.number) === Number(wanted)
    }
  }
}

function isScalar(text: string): boolean {
  const value = document(text)
  if (value === undefined) throw invalidArgument(`Invalid JSON value: ${text}`)
  return !isContainer(value)
}

export const jsonScripts: readonly ScalarFunction[] = [
  { name: 'u_json_parsed', parameters: ['VARCHAR'], returns: 'VARCHAR', call: parsedJson },
  { name: 'u_json_quote', parameters: ['VARCHAR'], returns: 'VARCHAR', call: quoteJson },
  { name: 'u_json_extract', parameters: ['VARCHAR', 'VARCHAR'], returns: 'VARCHAR', call: extract },
  { name: 'u_json_extract_scalar', parameters: ['VARCHAR', 'VARCHAR'], returns: 'VARCHAR', call: extractScalar },
  { name: 'u_json_size', parameters: ['VARCHAR', 'VARCHAR'], returns: 'BIGINT', call: size },
  { name: 'u_json_array_length', parameters: ['VARCHAR'], returns: 'BIGINT', call: arrayLength },
  { name: 'u_json_array_get', parameters: ['VARCHAR', 'BIGINT'], returns: 'VARCHAR', call: arrayGet },
  {
    name: 'u_json_array_contains',
    parameters: ['VARCHAR', 'VARCHAR', 'VARCHAR'],
    returns: 'BOOLEAN',
    call: arrayContains,
  },
  { name: 'u_is_json_scalar', parameters: ['VARCHAR'], returns: 'BOOLEAN', call: isScalar },
  { name: 'u_json_text', parameters: ['VARCHAR'], returns: 'VARCHAR', call: jsonText },
  { name: 'u_json_cast', parameters: ['VARCHAR', 'VARCHAR'], returns: 'VARCHAR', call: castJson },
]
