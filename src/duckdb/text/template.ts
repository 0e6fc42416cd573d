import { codeOfModule, codeOfSource, type Sql } from './sql.ts'

/**
 * A mark in a template for a part of a call: `$1` … an argument, `$T1` … the DuckDB type of an argument, `$R` the type
 * of the result. For aggregates: `$D` DISTINCT, `$O` ORDER BY, `$N` IGNORE NULLS, `$F` FILTER and OVER, `$F(` a FILTER
 * that begins with the call's own condition and that the template closes, `$E` the OVER behind such a FILTER.
 */
export type Mark =
  | { readonly kind: 'argument'; readonly index: number }
  | { readonly kind: 'argumentType'; readonly index: number }
  | { readonly kind: 'resultType' | 'distinct' | 'orderBy' | 'ignoreNulls' | 'filterAndOver' | 'ownFilter' | 'over' }

const MARK = /\$(?:T(\d+)|(\d+)|F(\()?|([RDONE]))/g
const MARKS = { R: 'resultType', D: 'distinct', O: 'orderBy', N: 'ignoreNulls', E: 'over' } as const

/** Code of the program with marks, parsed once. */
export class Template {
  readonly parts: readonly (Sql | Mark)[]

  constructor(parts: readonly (Sql | Mark)[]) {
    this.parts = parts
  }
}

/** A template in the function table's notation. Only for text from the source: while modules are loaded. */
export function template(text: string): Template {
  return new Template(partsOf(text, (from, to) => codeOfModule(text.slice(from, to))))
}

const known = new WeakMap<TemplateStringsArray, readonly (readonly (Sql | Mark)[])[]>()

/** The code between the pieces of a tagged template, each with its marks. */
export function templateParts(strings: TemplateStringsArray): readonly (readonly (Sql | Mark)[])[] {
  let parts = known.get(strings)
  if (parts === undefined) {
    parts = strings.map((text, i) => partsOf(text, (from, to) => codeOfSource(strings, i, from, to)))
    known.set(strings, parts)
  }
  return parts
}

function partsOf(text: string, codeOf: (from: number, to: number) => Sql): readonly (Sql | Mark)[] {
  const parts: (Sql | Mark)[] = []
  let from = 0
  for (const match of text.matchAll(MARK)) {
    if (match.index > from) parts.push(codeOf(from, match.index))
    from = match.index + match[0].length
    parts.push(markOf(match))
  }
  if (from < text.length) parts.push(codeOf(from, text.length))
  return parts
}

function markOf([, typeAt, at, ownFilter, mark]: RegExpMatchArray): Mark {
  if (typeAt !== undefined) return { kind: 'argumentType', index: Number(typeAt) - 1 }
  if (at !== undefined) return { kind: 'argument', index: Number(at) - 1 }
  if (mark !== undefined) return { kind: MARKS[mark as keyof typeof MARKS] }
  return { kind: ownFilter === undefined ? 'filterAndOver' : 'ownFilter' }
}
