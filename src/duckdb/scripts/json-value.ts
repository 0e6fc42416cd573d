/**
 * A JSON value; numbers as written, objects as members in order. If a name occurs several times, `members` has its last
 * value, and the name is in `repeated`.
 */
export type JsonValue = null | boolean | string | JsonNumber | readonly JsonValue[] | JsonObject

export interface JsonNumber {
  readonly number: string
}

interface JsonObject {
  readonly members: ReadonlyMap<string, JsonValue>
  readonly repeated?: readonly string[]
}

export function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value)
}

export function isJsonNumber(value: JsonValue): value is JsonNumber {
  return value !== null && typeof value === 'object' && 'number' in value
}

export function isJsonObject(value: JsonValue): value is JsonObject {
  return value !== null && typeof value === 'object' && 'members' in value
}

export function isContainer(value: JsonValue): boolean {
  return isArray(value) || isJsonObject(value)
}
