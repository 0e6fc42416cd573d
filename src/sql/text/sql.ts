/**
 * DuckDB SQL as it is put together: a tree whose leaves are code (written in this program's source), names, string
 * literals and numbers. Leaves are made by the functions below and by nothing else, and the tree becomes text once, by
 * `toText`; so nothing that came with a statement can ever be read as code, and nothing is ever searched for or replaced
 * in text that is rendered.
 */

/** Text that stands in the source: a literal type, never `string`. */
type Written<T extends string> = string extends T ? never : T

type Kind = 'code' | 'name' | 'literal' | 'number' | 'tree'

let make: (kind: Kind, parts: readonly (string | Sql)[]) => Sql
let partsOf: (piece: Sql) => readonly (string | Sql)[]
let kindOf: (piece: Sql) => Kind

/** A piece of DuckDB SQL. Opaque: made by `sql`, `code`, `name`, `literal`, `integer`, `joined` … and nothing else. */
export class Sql {
  readonly #kind: Kind
  /** Of a tree code as text and other pieces; of a leaf its one text. */
  readonly #parts: readonly (string | Sql)[]
  /** Characters of its text. */
  readonly length: number

  private constructor(kind: Kind, parts: readonly (string | Sql)[]) {
    this.#kind = kind
    this.#parts = parts
    let length = 0
    for (const part of parts) length += part.length
    this.length = length
  }

  static {
    make = (kind, parts) => new Sql(kind, parts)
    partsOf = (piece) => piece.#parts
    kindOf = (piece) => piece.#kind
  }

  /** A piece in a string would be text again, which could be read as code. */
  toString(): never {
    throw new TypeError('SQL is put together with sql`…`, not as text')
  }
}

/** Nothing. */
export const EMPTY: Sql = tree([])

/** SQL as it is written in the source around other pieces: sql`CAST(${value} AS ${type})`. */
export function sql(strings: TemplateStringsArray, ...pieces: readonly Sql[]): Sql {
  const parts: (string | Sql)[] = []
  for (let i = 0; i < strings.length; i++) {
    parts.push(strings[i]!)
    if (i < pieces.length) parts.push(pieces[i]!)
  }
  return tree(parts)
}

/** A word that is chosen in the source: the type of the argument is a union of literals, never `string`. */
export function code<const T extends string>(text: Written<T>): Sql {
  return tree([text])
}

/** A name as it is: made by the program, a letter and then letters, digits and underlines. */
export function plainName(text: string): Sql {
  if (!/^[A-Za-z_]\w*$/.test(text)) throw new TypeError(`Not a plain name: ${JSON.stringify(text)}`)
  return make('name', [text])
}

/** Any text as a quoted identifier. DuckDB has none with NUL in it. */
export function name(text: string): Sql {
  if (text.includes('\0')) throw new TypeError('A name holds no NUL')
  return make('name', [`"${text.replaceAll('"', '""')}"`])
}

/** Any text as a string literal: `'it''s'`; NUL, which no statement of DuckDB may hold, becomes `chr(0)`. */
export function literal(text: string): Sql {
  const quoted = (part: string): Sql => make('literal', [`'${part.replaceAll("'", "''")}'`])
  const [first = '', ...rest] = text.split('\0')
  if (rest.length === 0) return quoted(first)
  return sql`(${rest.reduce((before, part) => sql`${before}||chr(0)||${quoted(part)}`, quoted(first))})`
}

/** Digits of a whole number, with its sign. */
export function integer(value: number | bigint): Sql {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) throw new TypeError(`Not a whole number: ${value}`)
  return make('number', [String(value)])
}

/** A number as it is written: digits with an optional fraction. */
export function digits(text: string): Sql {
  if (!/^-?\d+(?:\.\d+)?$/.test(text)) throw new TypeError(`Not a number: ${JSON.stringify(text)}`)
  return make('number', [text])
}

/** The pieces with a separator between them. */
export function joined<const T extends string>(pieces: readonly Sql[], separator: Written<T>): Sql {
  return tree(pieces.flatMap((piece, i) => (i === 0 ? [piece] : [separator, piece])))
}

/** Code of the program that is made when it starts, before there is any statement: templates of functions, macros. */
export function codeOfModule(text: string): Sql {
  return tree([text])
}

export function isEmpty(piece: Sql): boolean {
  return piece.length === 0
}

export function isLeaf(piece: Sql, kind: Exclude<Kind, 'tree'>): boolean {
  return kindOf(piece) === kind
}

/** Whether the text of both is the same. */
export function sameSql(a: Sql, b: Sql): boolean {
  return a === b || (a.length === b.length && toText(a) === toText(b))
}

/** What is read of a tree, in its order: code (all that stands together as one text), or a leaf of another kind. */
export type Token =
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'leaf'; readonly piece: Sql }
  /** One of the pieces that were asked for; what is below it is not read. */
  | { readonly kind: 'known'; readonly index: number }

/** The tree from left to right; each of `known`, by identity, as one token with its number. */
export function tokensOf(piece: Sql, known: ReadonlyMap<Sql, number> = new Map()): readonly Token[] {
  const tokens: Token[] = []
  let written = ''
  const flush = (): void => {
    if (written !== '') tokens.push({ kind: 'code', text: written })
    written = ''
  }
  const visit = (one: Sql): void => {
    const index = known.get(one)
    if (index !== undefined) {
      flush()
      tokens.push({ kind: 'known', index })
      return
    }
    const kind = kindOf(one)
    if (kind !== 'tree' && kind !== 'code') {
      flush()
      tokens.push({ kind: 'leaf', piece: one })
      return
    }
    for (const part of partsOf(one)) {
      if (typeof part === 'string') written += part
      else visit(part)
    }
  }
  visit(piece)
  flush()
  return tokens
}

/** The text, once all is put together. */
export function toText(piece: Sql): string {
  let text = ''
  const collect = (one: Sql): void => {
    for (const part of partsOf(one)) {
      if (typeof part === 'string') text += part
      else collect(part)
    }
  }
  collect(piece)
  return text
}

/** A tree of one piece is that piece. */
function tree(given: readonly (string | Sql)[]): Sql {
  const parts = given.filter((part) => part.length > 0)
  const [only] = parts
  if (parts.length === 1 && only instanceof Sql) return only
  return make(parts.every((part) => typeof part === 'string') ? 'code' : 'tree', parts)
}
