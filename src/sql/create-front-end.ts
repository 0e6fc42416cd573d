import { EngineError } from '../shared/engine-error.ts'
import { analyzeParameters, analyzeStatementQuery, type AnalysisInput, type SourceText } from './analyzer/analyze.ts'
import { printSource } from './analyzer/print.ts'
import { resolve } from './analyzer/resolve.ts'
import type { AnalyzedStatement, MetadataPort, QueryType, SqlFrontEnd } from './front-end.ts'
import { renderAnalysis, resultColumn } from './renderer/render.ts'
import type { SessionContext } from './session.ts'
import type { Query } from './syntax/ast-query.ts'
import type { Execute, ExecuteImmediate, Explain, ExplainAnalyze, Statement } from './syntax/ast-statements.ts'
import { checkLimits, checkTextLength } from './syntax/limits.ts'
import { parseWithParameters, type ParsedStatement } from './syntax/parser.ts'
import { locate, textOrigin } from './syntax/span.ts'
import { BOOLEAN, VARCHAR } from './types/sql-type.ts'

/** The front end: text to what is to be done, by Trino's rules. It keeps nothing between statements. */
export function createSqlFrontEnd(): SqlFrontEnd {
  return { analyzeStatement }
}

async function analyzeStatement(
  sql: string,
  session: SessionContext,
  metadata: MetadataPort,
): Promise<AnalyzedStatement> {
  const text: SourceText = { sql, origin: textOrigin }
  return analyzeParsed({ text, ...read(text) }, session, metadata, [])
}

/** Parsed, and within what DuckDB is known to plan. */
function read({ sql, origin }: SourceText): ParsedStatement {
  checkTextLength(sql)
  const parsed = parseWithParameters(sql, origin)
  checkLimits(sql, parsed.statement, origin)
  return parsed
}

interface Parsed {
  readonly text: SourceText
  readonly statement: Statement
  readonly parameterCount: number
}

/** `using` are the parameters of EXECUTE, in the text `around`. */
async function analyzeParsed(
  { text, statement, parameterCount }: Parsed,
  session: SessionContext,
  metadata: MetadataPort,
  using: Execute['parameters'],
  around: SourceText = text,
): Promise<AnalyzedStatement> {
  switch (statement.kind) {
    case 'Query': {
      if (parameterCount !== using.length) {
        throw new EngineError(
          'INVALID_PARAMETER_USAGE',
          `Incorrect number of parameters: expected ${parameterCount} but found ${using.length}`,
          { location: locate(text.sql, statement.span.at, text.origin) },
        )
      }
      return analyzeSelect(text, statement, session, metadata, using, around, 'SELECT')
    }
    case 'Execute': {
      const sql = Object.entries(session.preparedStatements).find(
        ([name]) => name.toLowerCase() === statement.name.value.toLowerCase(),
      )?.[1]
      if (sql === undefined) {
        throw new EngineError('NOT_FOUND', `Prepared statement not found: ${statement.name.value}`)
      }
      const prepared: SourceText = { sql, origin: textOrigin }
      return analyzeParsed({ text: prepared, ...read(prepared) }, session, metadata, statement.parameters, text)
    }
    case 'ExecuteImmediate': {
      const inner = { sql: statement.statement.value, origin: originOf(text, statement) }
      return analyzeParsed({ text: inner, ...read(inner) }, session, metadata, statement.parameters, text)
    }
    case 'Explain':
    case 'ExplainAnalyze':
      return analyzeExplain({ text, statement, parameterCount }, session, metadata, using, around)
    default:
      throw new EngineError('NOT_SUPPORTED', `This statement is not supported: ${statement.kind}`, {
        location: locate(text.sql, statement.span.at, text.origin),
      })
  }
}

async function analyzeExplain(
  parsed: Parsed & { readonly statement: Explain | ExplainAnalyze },
  session: SessionContext,
  metadata: MetadataPort,
  using: Execute['parameters'],
  around: SourceText,
): Promise<AnalyzedStatement> {
  const { statement: explain } = parsed
  const statement = await analyzeParsed({ ...parsed, statement: explain.statement }, session, metadata, using, around)
  const analyze = explain.kind === 'ExplainAnalyze'
  const options = analyze ? [] : explain.options
  const planType = options.flatMap((option) => (option.kind === 'ExplainType' ? [option.type] : []))[0] ?? 'DISTRIBUTED'
  const format = options.flatMap((option) => (option.kind === 'ExplainFormat' ? [option.format] : []))[0]
  return {
    kind: 'explain',
    queryType: 'EXPLAIN',
    analyze,
    verbose: analyze && explain.verbose,
    planType,
    format: format ?? (planType === 'IO' ? 'JSON' : 'TEXT'),
    statement,
    columns: [
      planType === 'VALIDATE' ? resultColumn('Valid', BOOLEAN, session) : resultColumn('Query Plan', VARCHAR, session),
    ],
    warnings: statement.warnings,
  }
}

/** The text of EXECUTE IMMEDIATE begins right behind its opening quote. */
function originOf(text: SourceText, { statement }: ExecuteImmediate): SourceText['origin'] {
  const { lineNumber, columnNumber } = locate(text.sql, statement.span.start, text.origin)
  return { lineNumber, columnNumber: columnNumber + 1 }
}

async function analyzeSelect(
  text: SourceText,
  query: Query,
  session: SessionContext,
  metadata: MetadataPort,
  using: Execute['parameters'],
  around: SourceText,
  queryType: QueryType,
): Promise<AnalyzedStatement> {
  const resolved = await resolve(query, session, metadata)
  const input = (source: SourceText): AnalysisInput => ({
    session,
    metadata: resolved,
    text: source,
    print: (expression) => printSource(source.sql, expression),
  })
  const values = analyzeParameters(input(around), using)
  const analysis = analyzeStatementQuery(input(text), query, { kind: 'values', values })
  const rendered = renderAnalysis(analysis, session)
  return { kind: 'query', queryType, ...rendered, warnings: analysis.warnings }
}
