import { tick } from '../../shared/cpu-budget.ts'

/**
 * DuckDB SQL under construction: a tree whose leaves are code (written in this program's source), names, string
 * literals and numbers. Only the functions below make leaves, and only `toText` turns the tree into text, once. So no
 * text from a statement can ever be read as code, and rendered text is never searched or replaced.
 */
import { EngineError } from '../../shared/engine-error.ts'

/** Text from the source: a literal type or a union of such, never `string` nor a pattern like `a${string}`. */
type Written<T extends string> = T extends unknown ? (Record<never, 1> extends Record<T, 1> ? never : T) : never

type Kind = 'code' | 'name' | 'literal' | 'number' | 'tree'

let make: (kind: Kind, parts: readonly (string | Sql)[]) => Sql
let partsOf: (piece: Sql) => readonly (string | Sql)[]
let kindOf: (piece: Sql) => Kind

/** A piece of DuckDB SQL. Opaque: only `sql`, `code`, `name`, `literal`, `integer`, `joined` … make one. */
export class Sql {
  readonly #kind: Kind
  /** For a tree: code as text, and other pieces; for a leaf: its single text. */
  readonly #parts: readonly (string | Sql)[]
  /** Characters of the text. */
  readonly length: number

  private constructor(kind: Kind, parts: readonly (string | Sql)[]) {
    this.#kind = kind
    this.#parts = parts
    let length = 0
    for (let i = 0; i < parts.length; i++) length += parts[i]!.length
    this.length = length
  }

  static {
    make = (kind, parts) => new Sql(kind, parts)
    partsOf = (piece) => piece.#parts
    kindOf = (piece) => piece.#kind
  }

  /** Refuses the conversion: a piece in a string would be text again, which could be read as code. */
  toString(): never {
    throw new TypeError('SQL is put together with sql`…`, not as text')
  }
}

/** The empty piece. */
export const EMPTY: Sql = tree([])

/** SQL from the source around other pieces: sql`CAST(${value} AS ${type})`. */
export function sql(strings: TemplateStringsArray, ...pieces: readonly Sql[]): Sql {
  const parts: (string | Sql)[] = []
  for (let i = 0; i < strings.length; i++) {
    const written = strings[i]!
    if (written.length > 0) parts.push(written)
    if (i < pieces.length) add(parts, pieces[i]!)
  }
  return tree(parts)
}

/** A word from the source: the type of the argument is a union of literals, never `string`. */
export function code<const T extends string>(text: T & Written<T>): Sql {
  return tree([text])
}

/** An unquoted name, made by the program: a letter and then letters, digits and underscores. */
export function plainName(text: string): Sql {
  if (!/^[A-Za-z_]\w*$/.test(text)) throw new TypeError(`Not a plain name: ${JSON.stringify(text)}`)
  return make('name', [text])
}

/**
 * Any text as a quoted identifier.
 * @throws EngineError NOT_SUPPORTED for a name with NUL, which DuckDB's statements cannot contain
 */
export function name(text: string): Sql {
  if (text.includes('\0')) throw new EngineError('NOT_SUPPORTED', 'A column whose name holds NUL cannot be read')
  return make('name', [`"${text.replaceAll('"', '""')}"`])
}

/** Any text as a string literal: `'it''s'`; NUL, which DuckDB's statements cannot contain, becomes `chr(0)`. */
export function literal(text: string): Sql {
  const quoted = (part: string): Sql => make('literal', [`'${part.replaceAll("'", "''")}'`])
  const [first = '', ...rest] = text.split('\0')
  if (rest.length === 0) return quoted(first)
  return sql`(${joined([first, ...rest].map(quoted), '||chr(0)||')})`
}

/** Digits of a whole number, with its sign. */
export function integer(value: number | bigint): Sql {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) throw new TypeError(`Not a whole number: ${value}`)
  return make('number', [String(value)])
}

/** A number as it is written: digits, a fraction, an exponent. */
export function digits(text: string): Sql {
  if (!/^-?(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?$/.test(text))
    throw new TypeError(`Not a number: ${JSON.stringify(text)}`)
  return make('number', [text])
}

/** The pieces with a separator between them. */
export function joined<const T extends string>(pieces: readonly Sql[], separator: T & Written<T>): Sql {
  const parts: (string | Sql)[] = []
  for (let i = 0; i < pieces.length; i++) {
    if (i > 0 && separator.length > 0) parts.push(separator)
    add(parts, pieces[i]!)
  }
  return tree(parts)
}

/** Adds a piece. A string that got past the types is refused here: it would be code. */
function add(parts: (string | Sql)[], piece: Sql): void {
  if (!(piece instanceof Sql)) throw new TypeError('A piece of SQL is no text')
  if (piece.length > 0) parts.push(piece)
}

let started = false

/** Ends the making of code from strings: called once all modules are loaded. */
export function endOfModules(): void {
  started = true
}

/** Code of the program that is made at its start, before there is any statement: templates of functions, macros. */
export function codeOfModule(text: string): Sql {
  if (started) throw new Error('Templates are made while the program starts')
  return tree([text])
}

/** A part of the source text between the pieces of a tagged template. */
export function codeOfSource(strings: TemplateStringsArray, index: number, from: number, to: number): Sql {
  if (!Object.isFrozen(strings)) throw new TypeError('Not a template of the source')
  return tree([strings[index]!.slice(from, to)])
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

/** A token of a tree, in the order of the tree. */
export type SqlToken =
  /** Code and numbers, with adjacent texts joined. */
  | { readonly kind: 'code'; readonly text: string }
  /** A name or a literal. */
  | { readonly kind: 'leaf'; readonly piece: Sql }
  /** One of the known pieces; its content is not read. */
  | { readonly kind: 'known'; readonly index: number }

/** The tokens of a tree from left to right; a piece of `known`, by identity, is one token with its number. */
export function tokensOfSql(piece: Sql, known: ReadonlyMap<Sql, number> = new Map()): readonly SqlToken[] {
  const tokens: SqlToken[] = []
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
    if (kind === 'name' || kind === 'literal') {
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

/**
 * The form of a piece: its code, with `x` for each name, `''` for each literal and `0` or `-0` for each number. A test
 * of a form thus tests only the program's own text. With `most`: only its beginning, of at least as many characters.
 */
export function formOf(piece: Sql, most = Infinity): string {
  let form = ''
  const visit = (one: Sql): void => {
    const kind = kindOf(one)
    if (kind === 'name') form += 'x'
    else if (kind === 'literal') form += `''`
    else if (kind === 'number') form += String(partsOf(one)[0]).startsWith('-') ? '-0' : '0'
    else {
      for (const part of partsOf(one)) {
        if (form.length >= most) return
        if (typeof part === 'string') form += part
        else visit(part)
      }
    }
  }
  visit(piece)
  return form
}

/** Turns the complete tree into text. */
export function toText(piece: Sql): string {
  const texts: string[] = []
  collect(piece, texts)
  return texts.join('')
}

function collect(piece: Sql, texts: string[]): void {
  tick()
  const parts = partsOf(piece)
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]!
    if (typeof part === 'string') texts.push(part)
    else collect(part, texts)
  }
}

/** Makes a tree from parts that are not empty. A tree of one piece is that piece. */
function tree(parts: readonly (string | Sql)[]): Sql {
  const [only] = parts
  if (only instanceof Sql && parts.length === 1) return only
  const written = only === undefined || (typeof only === 'string' && parts.length === 1)
  return make(written ? 'code' : 'tree', parts)
}
