import { EngineError } from '../shared/engine-error.ts'
import {
  analyzeParameters,
  analyzeStatementQuery,
  type AnalysisInput,
  type QueryAnalysis,
  type SourceText,
} from './analyzer/analyze.ts'
import { resolve } from './analyzer/resolve.ts'
import type { AnalyzedStatement, FrontEndTimes, MetadataPort, QueryType, SqlFrontEnd } from './front-end.ts'
import { renderAnalysis, resultColumn } from './renderer/render.ts'
import type { SessionContext } from './session.ts'
import { propertyValue } from './session/session-properties.ts'
import type { Query } from './syntax/ast-query.ts'
import type { Execute, ExecuteImmediate, Explain, ExplainAnalyze, Statement } from './syntax/ast-statements.ts'
import { describeInputQuery, describeOutputQuery, parameterTypesIn } from './statements/described-statements.ts'
import { deallocate, prepare, preparedText } from './statements/prepared-statements.ts'
import { refuse } from './statements/refused-statements.ts'
import { sessionEffect, useSchema, type SessionEffect } from './statements/session-statements.ts'
import { showQuery } from './statements/show-statements.ts'
import type { StatementInput } from './statements/statement-input.ts'
import { transactionEffect } from './statements/transaction-statements.ts'
import { checkWrite } from './statements/write-checks.ts'
import { analyzeWrite, isConnectorStatement } from './statements/write-statements.ts'
import { checkLimits, checkTextLength } from './syntax/limits.ts'
import { parseWithParameters, type ParsedStatement } from './syntax/parser.ts'
import { locate, textOrigin } from './syntax/span.ts'
import { endOfModules } from './text/sql.ts'
import { BOOLEAN, VARCHAR, type SqlType } from './types/sql-type.ts'

/** The front end: text to what is to be done, by Trino's rules. It keeps nothing between statements. */
export function createSqlFrontEnd(): SqlFrontEnd {
  // Its modules are loaded: no text becomes code from here on.
  endOfModules()
  return { analyzeStatement }
}

async function analyzeStatement(
  sql: string,
  session: SessionContext,
  metadata: MetadataPort,
  told?: (times: FrontEndTimes) => void,
): Promise<AnalyzedStatement> {
  const text: SourceText = { sql, origin: textOrigin }
  // SET TIME ZONE reaches the next statement as a session property: it goes before the client's own zone.
  const timeZone = propertyValue(session, 'time_zone_id') ?? session.timeZone
  try {
    const start = performance.now()
    const parsed = read(text)
    const parseMs = performance.now() - start
    told?.({ parseMs, resolveMs: 0, renderMs: 0 })
    const analyzed = await analyzeParsed({ text, ...parsed }, { ...session, timeZone }, metadata, [])
    told?.({ parseMs, ...timesOf(analyzed) })
    return analyzed
  } catch (error) {
    // Depths are counted; running out of stack is the last resort, where the caller left little of it.
    if (!(error instanceof RangeError)) throw error
    throw new EngineError('STACK_OVERFLOW', 'statement is too large (stack overflow during analysis)', { cause: error })
  }
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
        throw parameterMismatch(text, statement, parameterCount, using.length)
      }
      return analyzeSelect(text, statement, session, metadata, using, around, 'SELECT')
    }
    case 'Execute': {
      const prepared: SourceText = { sql: preparedText(session, statement.name.value), origin: textOrigin }
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
      return analyzeOther(statement, { ...text, session, metadata }, { count: parameterCount, using, around })
  }
}

/** Statements about the session and the catalogs: no data changes. */
async function analyzeOther(
  statement: Exclude<Statement, Query | Execute | ExecuteImmediate | Explain | ExplainAnalyze>,
  input: StatementInput,
  parameters: GivenParameters,
): Promise<AnalyzedStatement> {
  switch (statement.kind) {
    case 'Use':
      return remembered(await useSchema(input, statement))
    case 'SetSession':
    case 'ResetSession':
    case 'SetSessionAuthorization':
    case 'ResetSessionAuthorization':
    case 'SetTimeZone':
    case 'SetPath':
    case 'SetRole':
      return remembered(sessionEffect(input, statement))
    case 'StartTransaction':
    case 'Commit':
    case 'Rollback':
      return remembered(transactionEffect(input, statement))
    case 'Prepare':
      return remembered(prepare(input, statement))
    case 'Deallocate':
      return remembered(deallocate(input, statement))
    case 'DescribeInput':
      return analyzeGenerated(await describeInput(input, statement.name.value), input)
    case 'DescribeOutput':
      return analyzeGenerated(await describeOutput(input, statement.name.value), input)
    case 'ShowCatalogs':
    case 'ShowSchemas':
    case 'ShowTables':
    case 'ShowColumns':
    case 'ShowFunctions':
    case 'ShowSession':
    case 'ShowCreate':
    case 'ShowStats':
    case 'ShowGrants':
    case 'ShowRoles':
    case 'ShowRoleGrants':
      return analyzeGenerated(await showQuery(input, statement), input)
    default: {
      const analyze = innerQueries(input, parameters)
      await checkWrite(input, statement, async (query) => (await analyze(query)).columns)
      return isConnectorStatement(statement) ? analyzeWrite(input, statement, analyze) : refuse(input, statement)
    }
  }
}

/** The parameters of EXECUTE for a statement with `count` of them, in the text `around`. */
interface GivenParameters {
  readonly count: number
  readonly using: Execute['parameters']
  readonly around: SourceText
}

/** The meaning of the query inside a statement; analysed once however often it is asked for. */
function innerQueries(
  { sql, origin, session, metadata }: StatementInput,
  { count, using, around }: GivenParameters,
): (query: Query) => Promise<QueryAnalysis> {
  const known = new Map<Query, Promise<QueryAnalysis>>()
  const analyze = async (query: Query): Promise<QueryAnalysis> => {
    if (count !== using.length) throw parameterMismatch({ sql, origin }, query, count, using.length)
    const resolved = await resolve(query, session, metadata)
    const input = (text: SourceText): AnalysisInput => ({ session, metadata: resolved, text })
    const values = analyzeParameters(input(around), using)
    return analyzeStatementQuery(input({ sql, origin }), query, { kind: 'values', values })
  }
  return (query) => {
    const found = known.get(query) ?? analyze(query)
    known.set(query, found)
    return found
  }
}

function parameterMismatch(text: SourceText, node: Query, expected: number, found: number): EngineError {
  return new EngineError(
    'INVALID_PARAMETER_USAGE',
    `Incorrect number of parameters: expected ${expected} but found ${found}`,
    { location: locate(text.sql, node.span.at, text.origin) },
  )
}

function remembered({ updateType, changes }: SessionEffect): AnalyzedStatement {
  return { kind: 'session', queryType: 'DATA_DEFINITION', updateType, changes, warnings: [] }
}

/** A query of our own making. */
async function analyzeGenerated(sql: string, { session, metadata }: StatementInput): Promise<AnalyzedStatement> {
  const text: SourceText = { sql, origin: textOrigin }
  const { statement } = parseWithParameters(sql)
  if (statement.kind !== 'Query') throw new Error(`Generated text is no query: ${sql}`)
  return analyzeSelect(text, statement, session, metadata, [], text, 'DESCRIBE')
}

/** A prepared query without values for its parameters; undefined for any other statement. */
async function analyzePrepared({ session, metadata }: StatementInput, name: string) {
  const text: SourceText = { sql: preparedText(session, name), origin: textOrigin }
  const { statement, parameterCount } = read(text)
  if (statement.kind !== 'Query') return { parameterCount, query: undefined, analysis: undefined }
  const resolved = await resolve(statement, session, metadata)
  const input: AnalysisInput = { session, metadata: resolved, text }
  const analysis = analyzeStatementQuery(input, statement, { kind: 'describe', types: new Map() })
  return { parameterCount, query: statement, analysis }
}

async function describeInput(input: StatementInput, name: string): Promise<string> {
  const { parameterCount, analysis } = await analyzePrepared(input, name)
  const coerced = analysis === undefined ? new Map<number, SqlType>() : parameterTypesIn(analysis.node)
  const types = Array.from(
    { length: parameterCount },
    (_, index) => analysis?.parameterTypes.get(index) ?? coerced.get(index),
  )
  return describeInputQuery(types)
}

async function describeOutput(input: StatementInput, name: string): Promise<string> {
  const { query, analysis } = await analyzePrepared(input, name)
  if (analysis === undefined) return describeOutputQuery([], [])
  const items = query.body.kind === 'QuerySpecification' ? query.body.select.items : []
  const isList = items.every((item) => item.kind === 'SingleColumn')
  const aliased = isList ? items.map((item) => item.kind === 'SingleColumn' && item.alias !== undefined) : []
  return describeOutputQuery(renderAnalysis(analysis, input.session).columns, aliased)
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

function timesOf(analyzed: AnalyzedStatement): Omit<FrontEndTimes, 'parseMs'> {
  if (analyzed.kind === 'explain') return timesOf(analyzed.statement)
  const { renderMs = 0, resolveMs = 0 } = analyzed.kind === 'query' ? analyzed : {}
  return { renderMs, resolveMs }
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
  const asked = performance.now()
  const resolved = await resolve(query, session, metadata)
  const resolveMs = performance.now() - asked
  const input = (source: SourceText): AnalysisInput => ({
    session,
    metadata: resolved,
    text: source,
  })
  const values = analyzeParameters(input(around), using)
  const analysis = analyzeStatementQuery(input(text), query, { kind: 'values', values })
  const start = performance.now()
  const rendered = renderAnalysis(analysis, session)
  const renderMs = performance.now() - start
  return { kind: 'query', queryType, ...rendered, warnings: analysis.warnings, renderMs, resolveMs }
}
