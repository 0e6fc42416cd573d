/** A number that JavaScript cannot hold exactly, as the text that the server sent. */
export class ExactNumber {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toString(): string {
    return this.text
  }
}

/** A value of a result: text, number, boolean, null, or a list or map of values. */
export type Value =
  | string
  | number
  | boolean
  | null
  | ExactNumber
  | readonly Value[]
  | { readonly [key: string]: Value }

/**
 * Parses JSON without losing digits: a number whose text JavaScript would change becomes an ExactNumber. Browsers give
 * the text of a number since 2023-2025; an older browser rounds numbers beyond 2^53.
 */
export function parseExact(json: string): unknown {
  return JSON.parse(json, function (_key, value: unknown, context?: { readonly source?: string }) {
    const source = context?.source
    return typeof value === 'number' && source !== undefined && String(value) !== source
      ? new ExactNumber(source)
      : value
  } as (this: unknown, key: string, value: unknown) => unknown)
}

/** The JSON of a value, with every number as the server sent it. */
export function exactJson(value: Value): string {
  if (value instanceof ExactNumber) return value.text
  if (Array.isArray(value)) return `[${(value as readonly Value[]).map(exactJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value as { readonly [key: string]: Value })
  return `{${entries.map(([key, one]) => `${JSON.stringify(key)}:${exactJson(one)}`).join(',')}}`
}

/** The text of a value in a cell: a string as it is, anything else as JSON. */
export function cellText(value: Value): string {
  return typeof value === 'string' ? value : exactJson(value)
}
