/**
 * The wall before DuckDB: reads every text that an engine receives token by token, before the engine runs it, and
 * refuses texts that do not have the form of rendered statements. It trusts no earlier stage: a literal that became
 * code somewhere before is refused here.
 *
 * - One SELECT, with common tables, subqueries and set operations; nothing else.
 * - Every called function is on the list of the renderings (`EngineVocabulary`), by its bare name.
 * - FROM reads common tables of the statement, scans of the batch (`"$s0"`), subqueries, and a few table functions.
 *   Names of common tables are letters and numbers as the renderer makes them: none names a file or a view of DuckDB.
 * - A word that DuckDB reserves is allowed in one position, or nowhere.
 */
import type { MacroDefinitions } from './engine-macros.ts'
import { RefusedStatement, tokensOf, type Token } from './statement-tokens.ts'

/** The functions and macros that statements may call. */
export interface EngineVocabulary {
  /** Functions and macros, lower case: each computes its value from its arguments alone. */
  readonly functions: ReadonlySet<string>
  /** Functions that may stand in FROM, lower case. */
  readonly tableFunctions: ReadonlySet<string>
  /**
   * The functions that run in JavaScript, wholly or in part: they block the engine's thread that handles the
   * statements.
   */
  readonly scripted: ReadonlySet<string>
  /** The definitions of the functions that an engine has to create before a statement calls them. */
  readonly macros: MacroDefinitions
}

/** The facts about a text that passed the check. */
export interface ReadText {
  /** Whether the text calls a function that runs in JavaScript. */
  readonly scripted: boolean
  /** The macros that it calls. */
  readonly macros: ReadonlySet<string>
  /** The positions where it reads scans, in the order of its text. */
  readonly scans: readonly ScanPosition[]
}

/** A position of `"$s0"` in FROM. */
export interface ScanPosition {
  readonly scan: number
  /** Offsets in the text: of the first character of the name, and of the character behind the name. */
  readonly from: number
  readonly to: number
}

/**
 * @param scans how many scans the statement may read: `"$s0"`, `"$s1"` …
 * @throws RefusedStatement when the text is not one SELECT of that form
 */
export function checkStatement(sql: string, scans: number, vocabulary: EngineVocabulary): ReadText {
  return guarded(() => new Reading(sql, vocabulary, scans).statement())
}

/** @throws RefusedStatement when the text is not one expression that could stand in such a SELECT */
export function checkExpression(sql: string, vocabulary: EngineVocabulary): ReadText {
  return guarded(() => new Reading(sql, vocabulary, 0).expression())
}

/** @throws RefusedStatement when the text is not the name of a type */
export function checkType(sql: string): void {
  guarded(() => new Reading(sql, NO_VOCABULARY, 0).typeName())
}

/** Turns an overflow of the stack into a refusal: deeper texts would overflow this reader's stack, and DuckDB's. */
function guarded<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof RangeError ? new RefusedStatement('nested too deeply', 0) : error
  }
}

/** A vocabulary without functions. */
export const NO_VOCABULARY: EngineVocabulary = {
  functions: new Set(),
  tableFunctions: new Set(),
  scripted: new Set(),
  macros: new Map(),
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))

/** Keywords of DuckDB that cannot be names, or can be taken for syntax where a name stands (`duckdb_keywords()`). */
export const RESERVED = words(
  'all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default ' +
    'deferrable desc describe distinct do else end except false fetch for foreign from group having in initially intersect ' +
    'into lambda lateral leading limit not null offset on only or order pivot pivot_longer pivot_wider placing primary ' +
    'qualify references returning select show some summarize symmetric table then to trailing true union unique unpivot ' +
    'using variadic when where window with anti asof at authorization binary by collation columns concurrently cross ' +
    'freeze full generated glob ilike inner is isnull join left like map natural notnull outer overlaps positional right ' +
    'semi similar struct tablesample try_cast unpack verbose',
)
/** The reserved words that are allowed within expressions. */
const IN_EXPRESSIONS = words(
  'all and any as asc between both case cast desc distinct else end exists false filter ignore in is lambda like not null ' +
    'nulls on or over then true try_cast when map struct glob ilike',
)
/** Words after which a parenthesis opens no call. */
const BEFORE_PARENTHESIS = words(
  'all and any as between by case distinct else exists filter in like not on or over sets then when',
)
/** Words that end an expression of SELECT, or open a clause that only SELECT has. */
const CLAUSES = words(
  'select from where group having order limit offset union intersect except with values join inner left right full ' +
    'cross lateral',
)
const SET_OPERATIONS = words('union intersect except')
const JOIN_KINDS = words('inner left right full cross join')
/** Types whose names take arguments. */
const SIZED_TYPES = words('decimal numeric varchar char struct map enum union time timestamp')
/**
 * The name of a common table, made by the renderer. No table or view of DuckDB, no file and no scan has such a name.
 */
const TABLE_NAME = /^[a-z]\d+(?:_\d+)?$/
/** The name of a scan, made by the renderer. */
const SCAN_NAME = /^\$s(\d+)$/
/** No unquoted word has a `$` in it, so the name of a scan is always quoted. */
const QUOTE_LENGTH = 1
const MAX_DEPTH = 2_000

class Reading {
  readonly #tokens: readonly Token[]
  readonly #vocabulary: EngineVocabulary
  readonly #tables = new Set<string>()
  readonly #scans: number
  readonly #scanPositions: ScanPosition[] = []
  #next = 0
  #depth = 0
  readonly #macros = new Set<string>()
  #scripted = false

  constructor(sql: string, vocabulary: EngineVocabulary, scans: number) {
    this.#tokens = tokensOf(sql)
    this.#vocabulary = vocabulary
    this.#scans = scans
  }

  statement(): ReadText {
    this.#query()
    return this.#whole()
  }

  expression(): ReadText {
    this.#terms(false)
    return this.#whole()
  }

  #whole(): ReadText {
    this.#end()
    return { scripted: this.#scripted, macros: this.#macros, scans: this.#scanPositions }
  }

  /** `DECIMAL(9,2)[]`, `STRUCT("a" INTEGER, b ENUM('x'))`, `TIMESTAMP WITH TIME ZONE`. */
  typeName(): void {
    this.#type()
    this.#end()
  }

  #type(): void {
    const name = this.#peek()
    if (name.kind !== 'word' || (RESERVED.has(name.text) && !SIZED_TYPES.has(name.text))) this.#refuse('no type')
    this.#next++
    if (this.#takeWord('with')) {
      this.#word('time')
      this.#word('zone')
    }
    if (this.#isOperator('(')) {
      if (!SIZED_TYPES.has(name.text)) this.#refuse('a type with arguments')
      this.#within('(', () => this.#list(() => this.#typeArgument()))
    }
    while (this.#takeOperator('[')) {
      if (this.#peek().kind === 'number') this.#next++
      this.#operator(']')
    }
  }

  #typeArgument(): void {
    const { kind } = this.#peek()
    if (kind === 'number' || kind === 'string') {
      this.#next++
      return
    }
    // A field: its name, then its type. If the next token ends the field, it is a type alone.
    const after = this.#tokens[this.#next + 1]!
    if (kind === 'quoted' || (kind === 'word' && after.kind === 'word' && after.text !== 'with')) this.#next++
    this.#type()
  }

  // ---- Queries

  #query(): void {
    if (++this.#depth > MAX_DEPTH) this.#refuse('nested too deeply')
    if (this.#takeWord('with')) this.#list(() => this.#commonTable())
    this.#queryTerm()
    this.#queryRest()
    this.#depth--
  }

  /** The clauses that may follow a query: set operations, order, limit. */
  #queryRest(): void {
    while (SET_OPERATIONS.has(this.#wordHere())) {
      this.#next++
      this.#takeWord('all')
      this.#queryTerm()
    }
    if (this.#takeWord('order')) {
      this.#word('by')
      this.#terms(true)
    }
    if (this.#takeWord('limit')) this.#terms(false)
    if (this.#takeWord('offset')) this.#terms(false)
  }

  #queryTerm(): void {
    if (this.#isOperator('(')) this.#within('(', () => this.#query())
    else if (this.#takeWord('values')) this.#list(() => this.#within('(', () => this.#terms(true)))
    else {
      this.#word('select')
      this.#select()
    }
  }

  #select(): void {
    this.#terms(true)
    if (this.#takeWord('from')) this.#tablesOfFrom()
    if (this.#takeWord('where')) this.#terms(false)
    if (this.#takeWord('group')) {
      this.#word('by')
      this.#terms(true)
    }
    if (this.#takeWord('having')) this.#terms(false)
  }

  /** `w0 AS (…)`, `w0 AS NOT MATERIALIZED (…)`. */
  #commonTable(): void {
    const { text, kind } = this.#peek()
    if ((kind !== 'word' && kind !== 'quoted') || !TABLE_NAME.test(text)) this.#refuse('a name of a common table')
    this.#next++
    if (this.#isOperator('(')) this.#columnNames()
    this.#word('as')
    if (this.#takeWord('not')) this.#word('materialized')
    else this.#takeWord('materialized')
    this.#within('(', () => this.#query())
    this.#tables.add(text)
  }

  // ---- FROM

  #tablesOfFrom(): void {
    this.#list(() => this.#joined())
  }

  #joined(): void {
    this.#table()
    this.#joins()
  }

  #joins(): void {
    while (JOIN_KINDS.has(this.#wordHere())) {
      if (!this.#takeWord('join')) {
        this.#next++
        this.#takeWord('outer')
        this.#word('join')
      }
      this.#table()
      if (this.#takeWord('on')) this.#terms(false)
    }
  }

  #table(): void {
    const lateral = this.#takeWord('lateral')
    if (this.#isOperator('(')) this.#tableInParentheses()
    else if (lateral) this.#refuse('LATERAL of something else than a query')
    else this.#namedTable()
    this.#alias()
  }

  #namedTable(): void {
    const { kind, text } = this.#peek()
    if (kind !== 'word' && kind !== 'quoted') this.#refuse('no table')
    this.#next++
    if (this.#isOperator('(')) {
      if (kind !== 'word' || !this.#vocabulary.tableFunctions.has(text)) this.#refuse(`the table function ${text}`, 1)
      this.#within('(', () => this.#terms(true))
    } else if (!this.#isScan(text) && !this.#tables.has(text)) this.#refuse('a table that is none of the statement', 1)
  }

  /** Records the position of the token before, which has this name, when it is a scan. */
  #isScan(name: string): boolean {
    const scan = SCAN_NAME.exec(name)?.[1]
    if (scan === undefined || Number(scan) >= this.#scans) return false
    const { at } = this.#tokens[this.#next - 1]!
    this.#scanPositions.push({ scan: Number(scan), from: at, to: at + name.length + 2 * QUOTE_LENGTH })
    return true
  }

  /** @returns whether the parentheses hold a query, not a join: only then may a set operation follow. */
  #tableInParentheses(): boolean {
    return this.#within('(', () => {
      const word = this.#wordHere()
      if (word === 'select' || word === 'with' || word === 'values') {
        this.#query()
        return true
      }
      if (this.#isOperator('(')) {
        if (this.#tableInParentheses()) {
          if (this.#isOperator(')')) return true
          if (SET_OPERATIONS.has(this.#wordHere()) || ['order', 'limit', 'offset'].includes(this.#wordHere())) {
            this.#queryRest()
            return true
          }
        }
        this.#alias()
      } else this.#table()
      this.#joins()
      return false
    })
  }

  #alias(): void {
    const said = this.#takeWord('as')
    const { kind, text } = this.#peek()
    const isName = kind === 'quoted' || (kind === 'word' && !RESERVED.has(text))
    if (!isName) {
      if (said) this.#refuse('no name')
      return
    }
    this.#next++
    if (this.#isOperator('(')) this.#columnNames()
  }

  #columnNames(): void {
    this.#within('(', () =>
      this.#list(() => {
        const { kind, text } = this.#peek()
        if (kind !== 'quoted' && (kind !== 'word' || RESERVED.has(text))) this.#refuse('no name of a column')
        this.#next++
      }),
    )
  }

  // ---- Expressions

  /** Reads expressions up to a clause, a closing bracket, or, unless it is a list, a comma. */
  #terms(list: boolean): void {
    for (;;) {
      const token = this.#peek()
      switch (token.kind) {
        case 'end':
          return
        case 'word':
          if (this.#isCall()) this.#call()
          else if (!this.#expressionWord()) return
          break
        case 'quoted':
        case 'string':
        case 'number':
          this.#next++
          if (this.#isOperator('(')) this.#refuse('a call of something else than a name')
          break
        case 'operator':
          switch (token.text) {
            case '(':
              this.#parenthesis()
              break
            case '[':
            case '{':
              this.#within(token.text, () => this.#terms(true))
              break
            case ')':
            case ']':
            case '}':
              return
            case ',':
              if (!list) return
              this.#next++
              break
            case '.':
              this.#field()
              break
            default:
              this.#next++
          }
      }
    }
  }

  #parenthesis(): void {
    const before = this.#tokens[this.#next - 1]
    if (before?.kind === 'operator' && (before.text === ')' || before.text === ']' || before.text === '}')) {
      // `DISTINCT ON (…) (…)` would be legal; a call of a bracketed expression would not.
      this.#refuse('a parenthesis after a bracket')
    }
    this.#within('(', () => {
      const word = this.#wordHere()
      if (word === 'select' || word === 'with' || word === 'values') this.#query()
      else this.#arguments()
    })
  }

  #isCall(): boolean {
    const after = this.#tokens[this.#next + 1]!
    const { text } = this.#peek()
    return (
      after.kind === 'operator' && after.text === '(' && (!CLAUSES.has(text) || text === 'left' || text === 'right')
    )
  }

  #call(): void {
    const { text } = this.#peek()
    if (SIZED_TYPES.has(text) && this.#isAfterCast()) return this.#type()
    this.#next++
    if (BEFORE_PARENTHESIS.has(text)) this.#parenthesis()
    else if (this.#vocabulary.functions.has(text) || text === 'cast' || text === 'try_cast') {
      this.#scripted ||= this.#vocabulary.scripted.has(text)
      if (this.#vocabulary.macros.has(text)) this.#macros.add(text)
      this.#within('(', () => this.#arguments())
    } else this.#refuse(`the function ${text}`, 1)
  }

  /** Whether the position is after `AS` or `::`, where a type may stand. */
  #isAfterCast(): boolean {
    if (this.#wordBefore(1) === 'as') return true
    const [first, second] = [this.#tokens[this.#next - 2], this.#tokens[this.#next - 1]]
    return [first, second].every((token) => token?.kind === 'operator' && token.text === ':')
  }

  /**
   * The content of a call's parentheses, or of those of OVER and FILTER: expressions, and clauses of aggregates and
   * windows.
   */
  #arguments(): void {
    if (this.#takeWord('where')) this.#terms(false)
    else {
      this.#terms(true)
      if (this.#takeWord('order')) {
        this.#word('by')
        this.#terms(true)
      }
    }
  }

  /** @returns false for a word that ends the expression */
  #expressionWord(): boolean {
    const { text } = this.#peek()
    const before = this.#wordBefore(1)
    // TIMESTAMP WITH TIME ZONE
    if (text === 'with' && before === 'timestamp') {
      this.#next++
      this.#word('time')
      return true
    }
    if (text === 'by' && before === 'partition') {
      this.#next++
      return true
    }
    if (CLAUSES.has(text)) {
      // IS [NOT] DISTINCT FROM
      if (text === 'from' && before === 'distinct' && this.#isComparedBefore()) {
        this.#next++
        return true
      }
      if (before === 'as') this.#refuse('a keyword as a name')
      return false
    }
    if (RESERVED.has(text) && !IN_EXPRESSIONS.has(text)) this.#refuse(`the word ${text.toUpperCase()}`)
    this.#next++
    return true
  }

  #isComparedBefore(): boolean {
    return this.#wordBefore(2) === 'is' || (this.#wordBefore(2) === 'not' && this.#wordBefore(3) === 'is')
  }

  /** `.name`, which must not be called. */
  #field(): void {
    this.#next++
    const { kind, text } = this.#peek()
    if (kind !== 'quoted' && (kind !== 'word' || RESERVED.has(text))) this.#refuse('no name of a field')
    this.#next++
    if (this.#isOperator('(')) this.#refuse('a call of a qualified name')
  }

  // ---- Tokens

  #peek(): Token {
    return this.#tokens[this.#next]!
  }

  #wordHere(): string {
    const { kind, text } = this.#peek()
    return kind === 'word' ? text : ''
  }

  /** The word that is `back` tokens before; '' for any other token, also for a quoted name. */
  #wordBefore(back: number): string {
    const token = this.#tokens[this.#next - back]
    return token?.kind === 'word' ? token.text : ''
  }

  #takeWord(word: string): boolean {
    if (this.#wordHere() !== word) return false
    this.#next++
    return true
  }

  #word(word: string): void {
    if (!this.#takeWord(word)) this.#refuse(`no ${word.toUpperCase()}`)
  }

  #isOperator(text: string): boolean {
    const token = this.#peek()
    return token.kind === 'operator' && token.text === text
  }

  #takeOperator(text: string): boolean {
    if (!this.#isOperator(text)) return false
    this.#next++
    return true
  }

  #operator(text: string): void {
    if (!this.#takeOperator(text)) this.#refuse(`no ${text}`)
  }

  #within<T>(open: '(' | '[' | '{', read: () => T): T {
    if (++this.#depth > MAX_DEPTH) this.#refuse('nested too deeply')
    this.#operator(open)
    const result = read()
    this.#operator(open === '(' ? ')' : open === '[' ? ']' : '}')
    this.#depth--
    return result
  }

  #list(item: () => void): void {
    do item()
    while (this.#takeOperator(','))
  }

  #end(): void {
    if (this.#peek().kind !== 'end') this.#refuse('something after its end')
  }

  #refuse(what: string, back = 0): never {
    throw new RefusedStatement(what, this.#tokens[this.#next - back]!.at)
  }
}
