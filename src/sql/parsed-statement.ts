import { measureWork, type WorkTimes } from '../shared/cpu-budget.ts'
import { EngineError, type ErrorLocation } from '../shared/engine-error.ts'
import type { ExecuteImmediate, Statement } from './syntax/ast-statements.ts'
import { parseWithParameters } from './syntax/parser.ts'
import { locate, textOrigin, type SourceText } from './syntax/span.ts'

/*
 * The first half of the front end: from a text to its syntax. It needs no metadata and no session beyond the prepared
 * statements. The second half, `bind`, gives the syntax a meaning.
 */

/** The prepared statements that the client sent with the statement, by name. */
export type PreparedTexts = Readonly<Record<string, string>>

/** The syntax of a client's text: a statement, or the error of a text that does not parse. */
export type ParsedStatement = ValidStatement | InvalidStatement

interface ParsedText {
  readonly text: SourceText
  /** The time that parsing took. */
  readonly times: WorkTimes
}

export interface ValidStatement extends ParsedText {
  readonly kind: 'valid'
  readonly tree: Statement
  /** The number of `?` in the whole text. */
  readonly parameterCount: number
  /**
   * The text that EXECUTE, EXECUTE IMMEDIATE, DESCRIBE INPUT or DESCRIBE OUTPUT refers to, also below EXPLAIN and
   * PREPARE. Undefined for every other statement, and if the client sent no prepared statement with that name.
   */
  readonly inner: StatementText | undefined
  /** The approximate memory of the tree, in bytes. */
  readonly treeBytes: number
}

export interface InvalidStatement extends ParsedText {
  readonly kind: 'invalid'
  /** SYNTAX_ERROR with Trino's message and position. */
  readonly error: EngineError
}

/**
 * The approximate bytes of a syntax tree per token of its text. Measured: 68 (lists of numbers) to 131
 * (test/conformance).
 */
const TREE_BYTES_PER_TOKEN = 130

/** A text of a client. It is parsed when its syntax is first needed, and then keeps the result. */
export class StatementText {
  readonly sql: string
  readonly prepared: PreparedStatements
  readonly #origin: ErrorLocation
  #parsed: ParsedStatement | undefined

  /**
   * @param prepared the prepared statements that the text may execute
   * @param origin the position of the text inside another text
   */
  constructor(sql: string, prepared: PreparedTexts | PreparedStatements = {}, origin: ErrorLocation = textOrigin) {
    this.sql = sql
    this.prepared = prepared instanceof PreparedStatements ? prepared : new PreparedStatements(prepared)
    this.#origin = origin
  }

  /** The result of `parse`, if the text was parsed before. */
  get parsed(): ParsedStatement | undefined {
    return this.#parsed
  }

  /**
   * Parses the text, unless it was parsed before. The work counts for the current CPU budget.
   * @throws the error of that budget; then a later call parses the text from its beginning
   */
  parse(): ParsedStatement {
    this.#parsed ??= parseText(this, this.#origin)
    return this.#parsed
  }

  /** Frees the memory of the syntax trees. The next call of `parse` parses the text again. */
  forget(): void {
    this.#parsed = undefined
    this.prepared.forget()
  }
}

/** The prepared statements of one session, each parsed at most once. */
class PreparedStatements {
  readonly sent: PreparedTexts
  /** By name, as the client wrote it. */
  readonly texts: ReadonlyMap<string, StatementText>

  constructor(sent: PreparedTexts) {
    this.sent = sent
    this.texts = new Map(Object.entries(sent).map(([name, sql]) => [name, new StatementText(sql, this)]))
  }

  /** Finds a statement by its name, in any case. */
  find(name: string): StatementText | undefined {
    const wanted = name.toLowerCase()
    for (const [known, text] of this.texts) if (known.toLowerCase() === wanted) return text
    return undefined
  }

  /** Frees the memory of the syntax trees. */
  forget(): void {
    for (const text of this.texts.values()) if (text.parsed) text.forget()
  }
}

function parseText({ sql, prepared }: StatementText, origin: ErrorLocation): ParsedStatement {
  const text: SourceText = { sql, origin }
  const { value, times } = measureWork(() => treeOrError(text))
  if (value instanceof EngineError) return { kind: 'invalid', text, times, error: value }
  const { statement: tree, parameterCount, tokenCount } = value
  const inner = innerText(tree, text, prepared)
  return { kind: 'valid', text, times, tree, parameterCount, inner, treeBytes: tokenCount * TREE_BYTES_PER_TOKEN }
}

function treeOrError({ sql, origin }: SourceText): ReturnType<typeof parseWithParameters> | EngineError {
  try {
    return parseWithParameters(sql, origin)
  } catch (error) {
    // Any other error is that of the CPU budget: it does not say whether the text is a statement.
    if (error instanceof EngineError && error.errorName === 'SYNTAX_ERROR') return error
    throw error
  }
}

function innerText(statement: Statement, text: SourceText, prepared: PreparedStatements): StatementText | undefined {
  switch (statement.kind) {
    case 'Explain':
    case 'ExplainAnalyze':
    case 'Prepare':
      return innerText(statement.statement, text, prepared)
    case 'Execute':
    case 'DescribeInput':
    case 'DescribeOutput':
      return prepared.find(statement.name.value)
    case 'ExecuteImmediate':
      return new StatementText(statement.statement.value, prepared, originOf(text, statement))
    default:
      return undefined
  }
}

/** The text of EXECUTE IMMEDIATE begins after its opening quote. */
function originOf(text: SourceText, { statement }: ExecuteImmediate): ErrorLocation {
  const { lineNumber, columnNumber } = locate(text.sql, statement.span.start, text.origin)
  return { lineNumber, columnNumber: columnNumber + 1 }
}
