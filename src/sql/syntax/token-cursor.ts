import { tick } from '../../shared/cpu-budget.ts'
import { EngineError, type ErrorLocation } from '../../shared/engine-error.ts'
import type { Expression } from './ast.ts'
import type { Query } from './ast-query.ts'
import type { Statement } from './ast-statements.ts'
import { nonReservedWords } from './keywords.ts'
import { MAX_DEPTH, tokenize, type Tokens } from './lexer.ts'
import { locate, type Span } from './span.ts'
import { Signal } from '../../shared/quipu-error.ts'

/** Productions that lower ones call recursively: expressions contain queries, and queries contain expressions. */
export interface Productions {
  expression(cursor: TokenCursor): Expression
  valueExpression(cursor: TokenCursor): Expression
  primaryExpression(cursor: TokenCursor): Expression
  query(cursor: TokenCursor): Query
  statement(cursor: TokenCursor): Statement
}

/** Thrown when a token does not fit; becomes the statement's error once the expected tokens are known. */
export class Mismatch extends Signal {
  readonly tokenIndex: number

  constructor(tokenIndex: number) {
    super('mismatched input')
    this.tokenIndex = tokenIndex
  }
}

// A mismatch is caught and rethrown as the statement's error, so its own stack trace is never used.
const withoutStack = <T>(make: () => T): T => {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 0
  try {
    return make()
  } finally {
    Error.stackTraceLimit = limit
  }
}

const identifierTypes: ReadonlySet<string> = new Set([
  'IDENTIFIER',
  'QUOTED_IDENTIFIER',
  'BACKQUOTED_IDENTIFIER',
  'DIGIT_IDENTIFIER',
  ...nonReservedWords,
])

const queryContinuations: ReadonlySet<string> = new Set([
  'UNION',
  'EXCEPT',
  'INTERSECT',
  'ORDER',
  'LIMIT',
  'OFFSET',
  'FETCH',
])

const labels: Readonly<Record<string, string>> = {
  EOF: '<EOF>',
  INTEGER_VALUE: '<integer>',
  STRING_LITERAL: '<string>',
}

/**
 * A position in the tokens of a text. In the second pass over a text that does not parse, `target` is the failed token,
 * at which the cursor records the tokens that would have been accepted.
 */
export class TokenCursor {
  readonly text: string
  readonly rules: Productions
  readonly origin: ErrorLocation
  readonly expected = new Set<string>()
  /** The type of the current token. */
  type: string
  /** The index of the current token. */
  index = 0
  /** The number of `?` seen so far. */
  parameterCount = 0
  /** The first error of a kind that Trino reports only if the text otherwise parses. */
  deferred: EngineError | undefined
  /** The height of the tree just parsed; productions with children keep the maximum of siblings. */
  height = 0
  /** The last primary expression: `e.*` is allowed only on a primary. */
  lastPrimary: Expression | undefined

  private readonly tokens: Tokens
  private readonly target: number
  private muted = false
  private depth = 0
  private matches: Int32Array | undefined

  constructor(text: string, rules: Productions, origin: ErrorLocation, tokens?: Tokens, target?: number) {
    this.text = text
    this.rules = rules
    this.origin = origin
    this.tokens = tokens ?? tokenize(text)
    this.target = target ?? -1
    this.type = this.tokens.types[0]!
    if (this.tokens.tooDeepAt !== undefined) this.tooDeep(this.tokens.tooDeepAt)
  }

  /** A second cursor over the same tokens, which records the tokens expected at `target`. */
  noting(target: number): TokenCursor {
    return new TokenCursor(this.text, this.rules, this.origin, this.tokens, target)
  }

  /** The offset at which the current token begins. */
  get start(): number {
    return this.tokens.startOffsets[this.index]!
  }

  startOf(index: number): number {
    return this.tokens.startOffsets[index]!
  }

  /** The offset at which the previous token ended. */
  get lastEnd(): number {
    return this.index === 0 ? 0 : this.tokens.endOffsets[this.index - 1]!
  }

  /** The type of the token `ahead` positions further; EOF past the end. */
  peek(ahead: number): string {
    return this.tokens.types[this.index + ahead] ?? 'EOF'
  }

  textOf(index: number): string {
    return this.tokens.types[index] === 'EOF'
      ? '<EOF>'
      : this.text.slice(this.tokens.startOffsets[index], this.tokens.endOffsets[index])
  }

  /** The span from `start` to the end of the previous token. */
  span(start: number, at = start): Span {
    return { start, end: this.lastEnd, at }
  }

  advance(): void {
    this.index++
    this.type = this.tokens.types[this.index]!
  }

  is(type: string): boolean {
    if (this.type === type) return true
    if (this.index === this.target) this.note(labels[type] ?? `'${type}'`)
    return false
  }

  isOneOf(...types: readonly string[]): boolean {
    for (const type of types) if (this.is(type)) return true
    return false
  }

  /** Whether the current token is `first`, followed by `second`. */
  isPair(first: string, second: string): boolean {
    return this.is(first) && this.peek(1) === second
  }

  accept(type: string): boolean {
    if (!this.is(type)) return false
    this.advance()
    return true
  }

  acceptPair(first: string, second: string): boolean {
    if (!this.isPair(first, second)) return false
    this.advance()
    this.advance()
    return true
  }

  expect(...types: readonly string[]): void {
    for (const type of types) if (!this.accept(type)) this.fail()
  }

  /** Consumes one of these tokens. */
  expectOneOf<T extends string>(...types: readonly T[]): T {
    for (const type of types) if (this.accept(type)) return type
    return this.fail()
  }

  isIdentifier(): boolean {
    if (identifierTypes.has(this.type)) return true
    this.note('<identifier>')
    return false
  }

  isIdentifierAt(ahead: number): boolean {
    return identifierTypes.has(this.peek(ahead))
  }

  /**
   * Records what would be accepted here. @param mute set if the production stands for everything that it may begin with
   */
  note(label: string, mute = false): void {
    if (this.index !== this.target || this.muted) return
    this.expected.add(label)
    if (mute) this.muted = true
  }

  /** Whether the current token is the failed one, in the second pass. */
  isTarget(): boolean {
    return this.index === this.target
  }

  fail(index = this.index): never {
    throw withoutStack(() => new Mismatch(index))
  }

  /** Parses a list of at least one item, separated by commas. */
  list<T>(item: (cursor: TokenCursor) => T): T[] {
    const items = [item(this)]
    while (this.accept(',')) items.push(item(this))
    return items
  }

  parenthesized<T>(item: (cursor: TokenCursor) => T): T {
    this.expect('(')
    const value = item(this)
    this.expect(')')
    return value
  }

  /** Runs a production that may contain itself; counts the nesting depth of the text and the height of the tree. */
  nested<T>(production: (cursor: TokenCursor) => T): T {
    const siblings = this.enter()
    const node = production(this)
    this.leave(siblings)
    return node
  }

  /** The first half of `nested`, for productions that save stack; its result goes to `leave`. */
  enter(): number {
    tick()
    if (++this.depth > MAX_DEPTH) this.tooDeep()
    const siblings = this.height
    this.height = 0
    return siblings
  }

  leave(siblings: number): void {
    this.grow()
    if (siblings > this.height) this.height = siblings
    this.depth--
  }

  /** Adds one level above the tree just parsed. */
  grow(): void {
    if (++this.height > MAX_DEPTH) this.tooDeep()
  }

  tooDeep(offset = this.start): never {
    throw this.error(`statement is too large (nested deeper than ${MAX_DEPTH})`, offset)
  }

  error(message: string, offset: number): EngineError {
    return new EngineError('SYNTAX_ERROR', message, { location: locate(this.text, offset, this.origin) })
  }

  /**
   * Records an error that Trino finds while it builds the tree: it is reported only if the text parses, and then the
   * first one.
   */
  defer(message: string, offset: number): void {
    this.deferred ??= this.error(message, offset)
  }

  /** The index of the parenthesis or bracket that closes the one at `open`; the last token if it is not closed. */
  closeOf(open: number): number {
    this.matches ??= matchParentheses(this.tokens.types)
    return this.matches[open]!
  }

  /**
   * The position of `type` inside the parentheses that open at `open`, before `stop`, ignoring nested parentheses; -1
   * if not found.
   */
  findInside(open: number, type: string, stop: string): number {
    const { types } = this.tokens
    const close = this.closeOf(open)
    for (let at = open + 1; at < close; at++) {
      const here = types[at]!
      if (here === type) return at
      if (here === stop) return -1
      if (here === '(' || here === '[') at = this.closeOf(at)
    }
    return -1
  }

  /**
   * Whether the parentheses here contain a query, and not an expression or a relation that begins with a query.
   * @param directly whether `((SELECT 1))` must not count
   */
  holdsQuery(directly = false): boolean {
    const { types } = this.tokens
    if (this.type !== '(') return false
    for (let open = this.index, level = 0; level <= MAX_DEPTH; open++, level++) {
      const inner = types[open + 1]!
      if (inner === 'SELECT' || inner === 'VALUES' || inner === 'WITH') return level === 0 || inner !== 'WITH'
      if (inner === 'TABLE') return types[open + 2] !== '('
      if (inner !== '(') return false
      const close = this.closeOf(open + 1)
      const after = types[close + 1] ?? 'EOF'
      if (queryContinuations.has(after)) return queryStarts.has(this.firstInside(open + 1))
      if (after !== ')' || directly) return false
    }
    return true
  }

  /** The first token after a run of opening parentheses. */
  private firstInside(open: number): string {
    const { types } = this.tokens
    let at = open
    for (let level = 0; types[at] === '(' && level <= MAX_DEPTH; level++) at++
    return types[at]!
  }
}

const queryStarts: ReadonlySet<string> = new Set(['SELECT', 'VALUES', 'TABLE', 'WITH', '('])

function matchParentheses(types: readonly string[]): Int32Array {
  const matches = new Int32Array(types.length).fill(types.length - 1)
  const open: number[] = []
  for (let at = 0; at < types.length; at++) {
    const type = types[at]
    if (type === '(' || type === '[') {
      open.push(at)
    } else if (type === ')' || type === ']') {
      const from = open.pop()
      if (from !== undefined) matches[from] = at
    }
  }
  return matches
}
