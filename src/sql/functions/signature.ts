import { simpleKinds, type SqlType } from '../types/sql-type.ts'

/**
 * A type in a signature: a variable (`T`, `K1`: upper case), a type with variables as parameters (`varchar(x)`,
 * `decimal(p,s)`, `array(T)`, `function(T,U)`), or a plain type.
 */
export type TypePattern =
  | { readonly kind: 'variable'; readonly name: string }
  /** Written `any`: accepts every type and keeps it. */
  | { readonly kind: 'any' }
  | { readonly kind: 'plain'; readonly type: SqlType }
  /** A type whose parameters are numbers or names of variables: decimal, varchar, char, time, timestamp. */
  | { readonly kind: 'sized'; readonly base: SizedKind; readonly parameters: readonly (number | string)[] }
  | { readonly kind: 'array' | 'qdigest'; readonly element: TypePattern }
  | { readonly kind: 'map'; readonly key: TypePattern; readonly value: TypePattern }
  | { readonly kind: 'row'; readonly fields: readonly TypePattern[] }
  | { readonly kind: 'function'; readonly parameters: readonly TypePattern[]; readonly result: TypePattern }

export type SizedKind =
  | 'decimal'
  | 'varchar'
  | 'char'
  | 'time'
  | 'timestamp'
  | 'time with time zone'
  | 'timestamp with time zone'

export interface Signature {
  readonly name: string
  readonly parameters: readonly TypePattern[]
  /** Whether the last parameter may be repeated, or omitted if `parameters` has more than one. */
  readonly variadic: boolean
  /** The abilities that type variables need. */
  readonly constraints: Readonly<Record<string, 'comparable' | 'orderable'>>
  /** Type variables in order of appearance. */
  readonly variables: readonly string[]
  /** The signature as written, for messages. */
  readonly text: string
}

const plainNames = new Map<string, SqlType>(simpleKinds.map((kind) => [kind.toLowerCase(), { kind }]))
const SIZED = new Set<string>(['decimal', 'varchar', 'char', 'time', 'timestamp'])
const VARIABLE = /^[A-Z][0-9]?$/

/** Reads `name(type, …) where T orderable, K comparable`; a last type followed by `...` is variadic. */
export function parseSignature(text: string): Signature {
  const [call = '', where = ''] = text.split(' where ')
  const open = call.indexOf('(')
  const name = call.slice(0, open)
  const inner = call.slice(open + 1, call.lastIndexOf(')')).trim()
  const variadic = inner.endsWith('...')
  const parts = splitTopLevel(variadic ? inner.slice(0, -3) : inner)
  const parameters = parts.map(parseTypePattern)
  const variables: string[] = []
  for (const parameter of parameters) collectVariables(parameter, variables)
  const constraints: Record<string, 'comparable' | 'orderable'> = {}
  for (const [, variable, ability] of where.matchAll(/(\w+) (comparable|orderable)/g)) {
    constraints[variable!] = ability as 'comparable' | 'orderable'
  }
  return { name, parameters, variadic, constraints, variables, text: call }
}

/** Reads a type of a signature. */
export function parseTypePattern(text: string): TypePattern {
  const written = text.trim()
  if (VARIABLE.test(written)) return { kind: 'variable', name: written }
  if (written === 'any') return { kind: 'any' }
  const plain = plainNames.get(written.toLowerCase())
  if (plain !== undefined) return { kind: 'plain', type: plain }
  if (written === 'varchar') return { kind: 'plain', type: { kind: 'varchar', length: undefined } }
  const match = /^(\w+)\((.*)\)( with time zone)?$/.exec(written)
  if (match === null) throw new Error(`Not a type of a signature: ${text}`)
  const [, base = '', inside = '', zone = ''] = match
  const parts = splitTopLevel(inside)
  if (SIZED.has(base)) {
    const parameters = parts.map((part) => (/^\d+$/.test(part) ? Number(part) : part))
    return { kind: 'sized', base: (base + zone) as SizedKind, parameters }
  }
  const patterns = parts.map(parseTypePattern)
  switch (base) {
    case 'array':
    case 'qdigest':
      return { kind: base, element: patterns[0]! }
    case 'map':
      return { kind: 'map', key: patterns[0]!, value: patterns[1]! }
    case 'row':
      return { kind: 'row', fields: patterns }
    case 'function':
      return { kind: 'function', parameters: patterns.slice(0, -1), result: patterns.at(-1)! }
    default:
      throw new Error(`Not a type of a signature: ${text}`)
  }
}

function splitTopLevel(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '(') depth++
    else if (text[i] === ')') depth--
    else if (text[i] === ',' && depth === 0) {
      parts.push(text.slice(start, i).trim())
      start = i + 1
    }
  }
  const last = text.slice(start).trim()
  if (last !== '') parts.push(last)
  return parts
}

function collectVariables(pattern: TypePattern, into: string[]): void {
  switch (pattern.kind) {
    case 'variable':
      if (!into.includes(pattern.name)) into.push(pattern.name)
      return
    case 'array':
    case 'qdigest':
      return collectVariables(pattern.element, into)
    case 'map':
      collectVariables(pattern.key, into)
      return collectVariables(pattern.value, into)
    case 'row':
      return pattern.fields.forEach((field) => collectVariables(field, into))
    case 'function':
      pattern.parameters.forEach((parameter) => collectVariables(parameter, into))
      return collectVariables(pattern.result, into)
    case 'any':
    case 'plain':
    case 'sized':
  }
}
