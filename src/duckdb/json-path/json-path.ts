import { Signal } from '../../shared/quipu-error.ts'

/** SQL/JSON paths (ISO 9075-2, 9.46), by Trino's grammar JsonPath.g4. */
export interface JsonPath {
  readonly lax: boolean
  readonly root: PathNode
}

export type PathNode =
  | { readonly kind: 'context' | 'current' | 'last' | 'null' }
  | { readonly kind: 'literal'; readonly value: string | boolean | { readonly number: string } }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'member'; readonly base: PathNode; readonly name: string | undefined }
  | { readonly kind: 'descendant'; readonly base: PathNode; readonly name: string }
  | { readonly kind: 'elements'; readonly base: PathNode; readonly subscripts: readonly Subscript[] | undefined }
  | { readonly kind: 'filter'; readonly base: PathNode; readonly predicate: PathPredicate }
  | { readonly kind: 'method'; readonly base: PathNode; readonly method: PathMethod }
  | { readonly kind: 'unary'; readonly sign: '+' | '-'; readonly base: PathNode }
  | {
      readonly kind: 'binary'
      readonly operator: '+' | '-' | '*' | '/' | '%'
      readonly left: PathNode
      readonly right: PathNode
    }

export interface Subscript {
  readonly from: PathNode
  readonly to: PathNode | undefined
}

const pathMethods = ['type', 'size', 'double', 'ceiling', 'floor', 'abs', 'keyvalue'] as const
type PathMethod = (typeof pathMethods)[number]

export type PathPredicate =
  | { readonly kind: 'and' | 'or'; readonly left: PathPredicate; readonly right: PathPredicate }
  | { readonly kind: 'not' | 'isUnknown'; readonly predicate: PathPredicate }
  | {
      readonly kind: 'compare'
      readonly operator: '==' | '<>' | '<' | '<=' | '>' | '>='
      readonly left: PathNode
      readonly right: PathNode
    }
  | { readonly kind: 'exists'; readonly path: PathNode }
  | { readonly kind: 'startsWith'; readonly path: PathNode; readonly prefix: PathNode }

/** The text is not a path; `offset` counts UTF-16 units from its start. */
export class PathSyntaxError extends Signal {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

/** LIKE_REGEX and datetime() are in the grammar, but Trino does not support them either. */
export class PathNotSupported extends Signal {}

/** Tokens; blanks are those of Trino's grammar. */
const TOKEN =
  /[ \t\r\n]*(?:([A-Za-z_$@][\w$]*)|(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|"((?:[^"]|"")*)"|'((?:[^']|'')*)'|(&&|\|\||==|<>|!=|<=|>=|\.\.|[^ \t\r\n]))/y

interface Token {
  readonly kind: 'word' | 'number' | 'string' | 'symbol' | 'end'
  readonly text: string
  readonly at: number
}

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = []
  TOKEN.lastIndex = 0
  for (let match = TOKEN.exec(text); match !== null; match = TOKEN.exec(text)) {
    const [whole, word, number, double, single, symbol] = match
    const at = match.index + whole.search(/[^ \t\r\n]/)
    if (word !== undefined) tokens.push({ kind: 'word', text: word, at })
    else if (number !== undefined) tokens.push({ kind: 'number', text: number, at })
    else if (double !== undefined) tokens.push({ kind: 'string', text: double.replaceAll('""', '"'), at })
    else if (single !== undefined) tokens.push({ kind: 'string', text: single.replaceAll("''", "'"), at })
    else tokens.push({ kind: 'symbol', text: symbol!, at })
  }
  tokens.push({ kind: 'end', text: '<EOF>', at: text.length })
  return tokens
}

const MAX_DEPTH = 200

/** @throws PathSyntaxError, PathNotSupported */
export function parseJsonPath(text: string): JsonPath {
  const parser = new PathParser(tokensOf(text))
  return parser.path()
}

class PathParser {
  private at = 0
  private depth = 0
  private readonly tokens: readonly Token[]

  constructor(tokens: readonly Token[]) {
    this.tokens = tokens
  }

  path(): JsonPath {
    const mode = this.peek()
    if (!this.takeWord('lax') && !this.takeWord('strict')) {
      throw new PathSyntaxError(`mismatched input '${mode.text}' expecting {'lax', 'strict'}`, mode.at)
    }
    const root = this.expression()
    if (this.peek().kind !== 'end') this.fail('<EOF>')
    return { lax: mode.text.toLowerCase() === 'lax', root }
  }

  private expression(): PathNode {
    let left = this.product()
    for (;;) {
      const operator = this.takeSymbol('+') ? '+' : this.takeSymbol('-') ? '-' : undefined
      if (operator === undefined) return left
      left = { kind: 'binary', operator, left, right: this.product() }
    }
  }

  private product(): PathNode {
    let left = this.unary()
    for (;;) {
      const operator = (['*', '/', '%'] as const).find((symbol) => this.takeSymbol(symbol))
      if (operator === undefined) return left
      left = { kind: 'binary', operator, left, right: this.unary() }
    }
  }

  private unary(): PathNode {
    if (++this.depth > MAX_DEPTH) this.fail('a shorter path')
    const sign = this.takeSymbol('-') ? '-' : this.takeSymbol('+') ? '+' : undefined
    const node: PathNode = sign === undefined ? this.accessor() : { kind: 'unary', sign, base: this.unary() }
    this.depth--
    return node
  }

  private accessor(): PathNode {
    let base = this.primary()
    for (;;) {
      if (this.takeSymbol('..')) base = { kind: 'descendant', base, name: this.memberName() }
      else if (this.takeSymbol('.')) base = this.afterDot(base)
      else if (this.takeSymbol('[')) base = { kind: 'elements', base, subscripts: this.subscripts() }
      else if (this.takeSymbol('?')) {
        this.expect('(')
        base = { kind: 'filter', base, predicate: this.disjunction() }
        this.expect(')')
      } else return base
    }
  }

  private afterDot(base: PathNode): PathNode {
    if (this.takeSymbol('*')) return { kind: 'member', base, name: undefined }
    const token = this.peek()
    if (token.kind === 'word' && token.text.toLowerCase() === 'datetime' && this.tokens[this.at + 1]?.text === '(') {
      throw new PathNotSupported('datetime method in JSON path is not yet supported')
    }
    const method = pathMethods.find((name) => name === token.text.toLowerCase())
    if (token.kind === 'word' && method !== undefined && this.tokens[this.at + 1]?.text === '(') {
      this.at += 2
      this.expect(')')
      return { kind: 'method', base, method }
    }
    return { kind: 'member', base, name: this.memberName() }
  }

  private memberName(): string {
    const token = this.peek()
    if (token.kind !== 'word' && token.kind !== 'string') this.fail('<identifier>')
    this.at++
    return token.text
  }

  private subscripts(): readonly Subscript[] | undefined {
    if (this.takeSymbol('*')) {
      this.expect(']')
      return undefined
    }
    const subscripts: Subscript[] = []
    do {
      const from = this.expression()
      subscripts.push({ from, to: this.takeWord('to') ? this.expression() : undefined })
    } while (this.takeSymbol(','))
    this.expect(']')
    return subscripts
  }

  private primary(): PathNode {
    const token = this.peek()
    this.at++
    switch (token.kind) {
      case 'number':
        return { kind: 'literal', value: { number: token.text } }
      case 'string':
        return { kind: 'literal', value: token.text }
      case 'word': {
        if (token.text === '$') return { kind: 'context' }
        if (token.text === '@') return { kind: 'current' }
        if (token.text.startsWith('$')) return { kind: 'variable', name: token.text.slice(1) }
        const word = token.text.toLowerCase()
        if (word === 'true' || word === 'false') return { kind: 'literal', value: word === 'true' }
        if (word === 'null') return { kind: 'null' }
        if (word === 'last') return { kind: 'last' }
        break
      }
      case 'symbol':
        if (token.text === '(') {
          const inner = this.expression()
          this.expect(')')
          return inner
        }
        if (token.text === '@') return { kind: 'current' }
        break
    }
    this.at--
    return this.fail('<path>')
  }

  private disjunction(): PathPredicate {
    let left = this.conjunction()
    while (this.takeSymbol('||')) left = { kind: 'or', left, right: this.conjunction() }
    return left
  }

  private conjunction(): PathPredicate {
    let left = this.predicate()
    while (this.takeSymbol('&&')) left = { kind: 'and', left, right: this.predicate() }
    return left
  }

  private predicate(): PathPredicate {
    if (this.takeSymbol('!')) return { kind: 'not', predicate: this.predicate() }
    if (this.takeWord('exists')) {
      this.expect('(')
      const path = this.expression()
      this.expect(')')
      return { kind: 'exists', path }
    }
    const start = this.at
    if (this.takeSymbol('(')) {
      // A predicate in parentheses, or the first operand of a comparison: only the following tokens decide.
      try {
        const inner = this.disjunction()
        this.expect(')')
        if (this.takeWord('is')) {
          if (!this.takeWord('unknown')) this.fail(`'unknown'`)
          return { kind: 'isUnknown', predicate: inner }
        }
        return inner
      } catch (error) {
        if (!(error instanceof PathSyntaxError)) throw error
        this.at = start
      }
    }
    return this.comparison()
  }

  private comparison(): PathPredicate {
    const left = this.expression()
    if (this.takeWord('starts')) {
      if (!this.takeWord('with')) this.fail(`'with'`)
      return { kind: 'startsWith', path: left, prefix: this.primary() }
    }
    if (this.takeWord('like_regex'))
      throw new PathNotSupported('like_regex predicate in JSON path is not yet supported')
    const token = this.peek()
    const operators = { '==': '==', '<>': '<>', '!=': '<>', '<': '<', '<=': '<=', '>': '>', '>=': '>=' } as const
    const operator = operators[token.text as keyof typeof operators]
    if (token.kind !== 'symbol' || operator === undefined) return this.fail('<comparison>')
    this.at++
    return { kind: 'compare', operator, left, right: this.expression() }
  }

  private peek(): Token {
    return this.tokens[this.at]!
  }

  private takeSymbol(symbol: string): boolean {
    const token = this.peek()
    if (token.kind !== 'symbol' || token.text !== symbol) return false
    this.at++
    return true
  }

  private takeWord(word: string): boolean {
    const token = this.peek()
    if (token.kind !== 'word' || token.text.toLowerCase() !== word) return false
    this.at++
    return true
  }

  private expect(symbol: string): void {
    if (!this.takeSymbol(symbol)) this.fail(`'${symbol}'`)
  }

  private fail(expected: string): never {
    const token = this.peek()
    throw new PathSyntaxError(`mismatched input '${token.text}' expecting ${expected}`, token.at)
  }
}
