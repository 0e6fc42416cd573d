import type { CpuBudget, CpuBudgetOptions } from '../shared/cpu-budget.ts'
import {
  analyzeParameters,
  analyzeRowStatement,
  analyzeStatementQuery,
  analyzeUnchecked,
  periodsOf,
  type QueryAnalysis,
  type UncheckedQuery,
} from './analyzer/analyze.ts'
import { errorAt, type Parameters } from './analyzer/context.ts'
import { accessOf, shownName } from './access-control.ts'
import { lineageOf } from './analyzer/lineage.ts'
import { qualify, resolve, type ResolvedMetadata } from './analyzer/resolve.ts'
import { changedTableOf, type RowStatement } from './analyzer/row-changes.ts'
import { boundRows, resultColumn } from './bound-rows.ts'
import type { BindInput, BoundStatement, QueryType, SqlFrontEnd, Warning } from './front-end.ts'
import type { ParsedStatement, StatementText, ValidStatement } from './parsed-statement.ts'
import { asStatementError, planningBudget, PLANNING_CPU_MS } from './planning-limits.ts'
import type { SessionContext } from './session.ts'
import { checkSent, sentBy, warningsOfSetting, withoutPower } from './session/sent-properties.ts'
import { propertyValue } from './session/session-properties.ts'
import type { QualifiedName } from './syntax/ast-node.ts'
import type { Query } from './syntax/ast-query.ts'
import type {
  DescribeInput,
  DescribeOutput,
  Execute,
  ExecuteImmediate,
  Explain,
  ExplainAnalyze,
  Statement,
} from './syntax/ast-statements.ts'
import { analyzeProcedureCall } from './statements/call-statements.ts'
import { describeInputQuery, describeOutputQuery, parameterTypesIn } from './statements/described-statements.ts'
import { checkPrepared, deallocate, notPrepared, prepare } from './statements/prepared-statements.ts'
import { explainedDefinition } from './statements/explained-definition.ts'
import { createFunction, dropFunction } from './statements/function-statements.ts'
import { refuse } from './statements/refused-statements.ts'
import { sessionEffect, useSchema, withSession, type SessionEffect } from './statements/session-statements.ts'
import { rowsQuery, type RowsQuery } from './statements/rows-query.ts'
import { takesLiterals, withLiterals } from './statements/literal-parameters.ts'
import { showQuery } from './statements/show-statements.ts'
import type { StatementInput } from './statement-input.ts'
import { transactionEffect } from './statements/transaction-statements.ts'
import { checkWrite } from './statements/write-checks.ts'
import { isRowStatement } from './statements/row-change-statements.ts'
import { analyzeWrite, isConnectorStatement } from './statements/write-statements.ts'
import { checkLimits, checkTextLength } from './syntax/limits.ts'
import type { SourceText } from './syntax/span.ts'
import { endOfModules } from '../duckdb/text/sql.ts'
import { BOOLEAN, VARCHAR, type SqlType } from './types/sql-type.ts'

export interface FrontEndOptions extends CpuBudgetOptions {
  readonly planningCpuMs?: number
}

/**
 * Creates the front end, which parses and binds statements by Trino's rules. It keeps no state between statements. A
 * statement whose planning takes more CPU time than `planningCpuMs` fails with EXCEEDED_TIME_LIMIT. A statement that
 * holds the event loop for longer than `holdMs` throws `HoldsLoop`, and the caller restarts it elsewhere.
 */
export function createSqlFrontEnd({ planningCpuMs = PLANNING_CPU_MS, ...loop }: FrontEndOptions = {}): SqlFrontEnd {
  // All modules are loaded: from here on no text is accepted as code.
  endOfModules()
  return {
    parse(text, session) {
      checkTextLength(text.sql)
      return text.parsed ?? planningBudget(planningCpuMs, session, loop).run(() => text.parse())
    },
    budgetOf: (parsed, session) => planningBudget(planningCpuMs, session, { ...loop, before: parsed.times }),
    bind: bindStatement,
  }
}

async function bindStatement(
  parsed: ParsedStatement,
  { session, onTimes, ...given }: BindInput,
): Promise<BoundStatement> {
  // SET TIME ZONE reaches the next statement as a session property, which overrides the client's zone.
  const timeZone = propertyValue(session, 'time_zone_id') ?? session.timeZone
  try {
    const statement = given.budget.run(() => withinLimits(parsed))
    const { text, tree, times, parameterCount: count, inner } = statement
    const parseMs = times.heldMs
    onTimes?.({ parseMs, resolveMs: 0, renderMs: 0 })
    checkProperties(session)
    const input: StatementInput = { session: { ...session, timeZone }, ...given, text }
    const bound = await bindTree(input, tree, { count, using: [], around: text, inner })
    onTimes?.({ parseMs, resolveMs: resolveMsOf(bound), renderMs: 0 })
    return withWarnings(bound, [
      ...warningsOfSetting(sentBy(session), session),
      ...withoutPower(Object.keys(session.propertyRules?.overridden ?? {}), session),
    ])
  } catch (error) {
    throw asStatementError(error)
  }
}

/** Properties that a client sends with a statement are checked like SET SESSION and need the same right. */
function checkProperties(session: StatementInput['session']): void {
  const access = accessOf(session)
  for (const property of access ? Object.keys(sentBy(session)) : []) {
    const [name, catalog] = property.split('.').reverse()
    access?.checkSetProperty(catalog, name!)
  }
  checkSent(session)
}

function withWarnings(analyzed: BoundStatement, more: readonly Warning[]): BoundStatement {
  return more.length === 0 ? analyzed : { ...analyzed, warnings: [...analyzed.warnings, ...more] }
}

/** Checks that a text is a statement within limits that DuckDB can plan. */
function withinLimits(parsed: ParsedStatement): ValidStatement {
  if (parsed.kind === 'invalid') throw parsed.error
  checkLimits(parsed.text.sql, parsed.tree, parsed.text.origin)
  return parsed
}

/** Parses a text that the statement executes or describes. */
function parseInner(inner: StatementText, budget: CpuBudget): ValidStatement {
  checkTextLength(inner.sql)
  return budget.run(() => withinLimits(inner.parse()))
}

/** The parameters of EXECUTE in the text `around`, for a statement with `count` parameters. */
interface GivenParameters {
  readonly count: number
  readonly using: Execute['parameters']
  readonly around: SourceText
  /** The text that the statement executes or describes. */
  readonly inner: StatementText | undefined
}

async function bindTree(
  input: StatementInput,
  statement: Statement,
  parameters: GivenParameters,
): Promise<BoundStatement> {
  const execute = (executed: StatementText, using: Execute['parameters']): Promise<BoundStatement> => {
    const { text, tree, parameterCount: count, inner } = parseInner(executed, input.budget)
    checkPrepared(tree)
    return bindTree({ ...input, text }, tree, { count, using, around: input.text, inner })
  }
  switch (statement.kind) {
    case 'Query':
      return analyzeWithSession(input, statement, parameters)
    case 'Execute':
    case 'ExecuteImmediate':
      return execute(executedBy(statement, parameters), statement.parameters)
    case 'Explain':
    case 'ExplainAnalyze':
      return analyzeExplain(input, statement, parameters)
    default:
      return analyzeOther(statement, input, parameters)
  }
}

/** The text that a statement executes or describes. @throws EngineError NOT_FOUND */
function executedBy(
  statement: Execute | ExecuteImmediate | DescribeInput | DescribeOutput,
  { inner }: GivenParameters,
): StatementText {
  if (inner) return inner
  throw notPrepared(statement.kind === 'ExecuteImmediate' ? statement.statement.value : statement.name.value)
}

/** Analyzes statements about the session and the catalogs; they change no data. */
async function analyzeOther(
  statement: Exclude<Statement, Query | Execute | ExecuteImmediate | Explain | ExplainAnalyze>,
  input: StatementInput,
  parameters: GivenParameters,
): Promise<BoundStatement> {
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
      return remembered(sessionEffect(input, statement), input.session)
    case 'StartTransaction':
    case 'Commit':
    case 'Rollback':
      return remembered(transactionEffect(input, statement))
    case 'Prepare':
      return remembered(prepare(input, statement))
    case 'Deallocate':
      return remembered(deallocate(input, statement))
    case 'DescribeInput':
      return analyzeGenerated(
        rowsQuery(await describeInput(input, executedBy(statement, parameters)), statement.span),
        input,
      )
    case 'DescribeOutput':
      return analyzeGenerated(
        rowsQuery(await describeOutput(input, executedBy(statement, parameters)), statement.span),
        input,
      )
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
    case 'Call':
      return analyzeProcedureCall(input, statement, checked(innerQueries(input, parameters)))
    case 'DropFunction':
      return remembered(dropFunction(input, statement))
    case 'CreateFunction':
      return createFunction(input, statement)
    default: {
      if (takesLiterals(statement) && parameters.count > 0) {
        verifyCount(input, statement, parameters)
        return analyzeOther(withLiterals(statement, parameters.using), input, { ...parameters, count: 0, using: [] })
      }
      const asked: StatementInput = { ...input, ...partOf(statement, input) }
      const analyze = innerQueries(asked, parameters)
      await checkWrite(input, statement, async (query) => (await analyze(query)).columns)
      if (isConnectorStatement(statement)) {
        return analyzeWrite(input, statement, {
          query: checked(analyze),
          rows: (node) => analyzeRows(asked, node, parameters),
        })
      }
      return refuse(input, statement)
    }
  }
}

/** How the query inside a statement is analyzed. The query of a view is planned when the view is read. */
function partOf(statement: Statement, { session }: StatementInput): Pick<StatementInput, 'unplanned' | 'defined'> {
  switch (statement.kind) {
    case 'CreateView':
    case 'CreateMaterializedView':
      return { unplanned: true, defined: { label: labelOf(statement.name, session), refreshed: false } }
    case 'RefreshMaterializedView':
      return { defined: { label: labelOf(statement.name, session), refreshed: true } }
    default:
      return {}
  }
}

function labelOf(name: QualifiedName, session: SessionContext): string {
  return shownName(qualify(name, session))
}

/** Analyzes the query inside a statement; each query is analyzed at most once. */
function innerQueries(input: StatementInput, parameters: GivenParameters): (query: Query) => Promise<UncheckedQuery> {
  const known = new Map<Query, Promise<UncheckedQuery>>()
  return (query) => {
    const found = known.get(query) ?? analyzeQuery(input, query, parameters).then(({ query: analyzed }) => analyzed)
    known.set(query, found)
    return found
  }
}

function checked(analyze: (query: Query) => Promise<UncheckedQuery>): (query: Query) => Promise<QueryAnalysis> {
  return async (query) => (await analyze(query)).checked()
}

async function analyzeQuery(
  input: StatementInput,
  query: Query,
  parameters: GivenParameters,
): Promise<{ readonly query: UncheckedQuery; readonly resolveMs: number }> {
  verifyCount(input, query, parameters)
  const start = performance.now()
  const metadata = await resolve(query, input, { periods: periodsOf(input, (given) => valuesOf(given, parameters)) })
  const resolveMs = performance.now() - start
  const given = { ...input, metadata }
  return { query: analyzeUnchecked(given, query, valuesOf(given, parameters)), resolveMs }
}

async function analyzeRows(
  input: StatementInput,
  node: RowStatement,
  parameters: GivenParameters,
): Promise<QueryAnalysis> {
  verifyCount(input, node, parameters)
  const given = await withTarget(input, node, (asked) => valuesOf(asked, parameters))
  return analyzeRowStatement(given, node, valuesOf(given, parameters))
}

/** The input with the tables that the statement names, the changed one included. */
async function withTarget(
  input: StatementInput,
  node: RowStatement,
  parametersOf: (given: StatementInput<ResolvedMetadata>) => Parameters,
): Promise<StatementInput<ResolvedMetadata>> {
  const changed = qualify(changedTableOf(node), input.session)
  return { ...input, metadata: await resolve(node, input, { changed, periods: periodsOf(input, parametersOf) }) }
}

function verifyCount(input: StatementInput, node: Statement, { count, using }: GivenParameters): void {
  if (count === using.length) return
  const message = `Incorrect number of parameters: expected ${count} but found ${using.length}`
  throw errorAt(input, node, 'INVALID_PARAMETER_USAGE', message)
}

function valuesOf(input: StatementInput<ResolvedMetadata>, { using, around }: GivenParameters): Parameters {
  return { kind: 'values', values: analyzeParameters({ ...input, text: around }, using) }
}

function remembered({ updateType, changes }: SessionEffect, session?: SessionContext): BoundStatement {
  const set = Object.fromEntries(
    changes.flatMap((change) => (change.kind === 'SetSession' ? [[change.name, change.value]] : [])),
  ) as Readonly<Record<string, string>>
  const warnings = session ? warningsOfSetting(set, session) : []
  return { kind: 'session', queryType: 'DATA_DEFINITION', updateType, changes, warnings }
}

async function analyzeWithSession(
  input: StatementInput,
  query: Query,
  parameters: GivenParameters,
): Promise<BoundStatement> {
  const { session, set, own } = withSession(input, query)
  const analyzed = await analyzeSelect({ ...input, session }, query, parameters, 'SELECT')
  if (analyzed.kind !== 'query' || Object.keys(set).length === 0) return analyzed
  return withWarnings({ ...analyzed, properties: own }, warningsOfSetting(set, input.session))
}

/** Analyzes a query that Quipu generates. */
function analyzeGenerated(query: Query, input: StatementInput): Promise<BoundStatement> {
  return analyzeSelect(input, query, { count: 0, using: [], around: input.text, inner: undefined }, 'DESCRIBE')
}

/** A prepared statement as DESCRIBE sees it: without values for its parameters. */
interface Prepared {
  readonly parameterCount: number
  /** The query whose columns are described; undefined for statements that return no rows of a query. */
  readonly query: Query | undefined
  /** The statement returns the number of rows that it writes. */
  readonly countsRows: boolean
  /** The analysis of the query, or of the rows that the statement writes. */
  readonly analysis: QueryAnalysis | undefined
}

async function analyzePrepared(input: StatementInput, prepared: StatementText): Promise<Prepared> {
  const { text, tree: statement, parameterCount } = parseInner(prepared, input.budget)
  const described = (): Parameters => ({ kind: 'describe', types: new Map() })
  const inside: StatementInput = { ...input, text, unplanned: true }
  if (isRowStatement(statement)) {
    // These statements contain no query, so the checks need no columns of one.
    await checkWrite(inside, statement, () => Promise.resolve([]))
    const analysis = analyzeRowStatement(await withTarget(inside, statement, described), statement, described())
    return { parameterCount, query: undefined, countsRows: true, analysis }
  }
  const countsRows = statement.kind === 'CreateTableAsSelect' || statement.kind === 'Insert'
  const query = countsRows ? statement.query : statement.kind === 'Query' ? statement : undefined
  if (query === undefined) return { parameterCount, query, countsRows, analysis: undefined }
  const metadata = await resolve(query, inside, { periods: periodsOf(inside, described) })
  const analysis = analyzeStatementQuery({ ...inside, metadata }, query, described())
  return { parameterCount, query, countsRows, analysis }
}

async function describeInput(input: StatementInput, prepared: StatementText): Promise<RowsQuery> {
  const { parameterCount, analysis } = await analyzePrepared(input, prepared)
  const coerced = analysis === undefined ? new Map<number, SqlType>() : parameterTypesIn(analysis.node)
  const types = Array.from(
    { length: parameterCount },
    (_, index) => analysis?.parameterTypes.get(index) ?? coerced.get(index),
  )
  return describeInputQuery(types)
}

async function describeOutput(input: StatementInput, prepared: StatementText): Promise<RowsQuery> {
  const { countsRows, query, analysis } = await analyzePrepared(input, prepared)
  if (countsRows) return describeOutputQuery([{ name: 'rows', type: 'bigint', lineage: [] }], [false])
  if (analysis === undefined || query === undefined) return describeOutputQuery([], [])
  const items = query.body.kind === 'QuerySpecification' ? query.body.select.items : []
  const isList = items.every((item) => item.kind === 'SingleColumn')
  const aliased = isList ? items.map((item) => item.kind === 'SingleColumn' && item.alias !== undefined) : []
  const { columns } = input.budget.run(() => boundRows(analysis, input.session))
  const { columns: sources } = lineageOf(analysis, 'IDENTITY')
  // A computed column belongs to no table; a masked column belongs to its own table.
  const origin = (index: number): readonly string[] =>
    (sources[index] ?? []).filter(({ direct }) => direct === 'IDENTITY').map(({ source }) => source)
  return describeOutputQuery(
    columns.map(({ name, type }, index) => ({ name, type, lineage: origin(index) })),
    aliased,
  )
}

async function analyzeExplain(
  input: StatementInput,
  explain: Explain | ExplainAnalyze,
  parameters: GivenParameters,
): Promise<BoundStatement> {
  const { session } = input
  const analyze = explain.kind === 'ExplainAnalyze'
  const options = analyze ? [] : explain.options
  const planType = options.flatMap((option) => (option.kind === 'ExplainType' ? [option.type] : []))[0] ?? 'DISTRIBUTED'
  const asked: StatementInput = planType === 'VALIDATE' ? { ...input, unplanned: true } : input
  const statement = await bindTree(asked, explain.statement, parameters)
  const format = options.flatMap((option) => (option.kind === 'ExplainFormat' ? [option.format] : []))[0]
  return {
    kind: 'explain',
    queryType: 'EXPLAIN',
    analyze,
    verbose: analyze && explain.verbose,
    planType,
    format: format ?? (planType === 'IO' ? 'JSON' : 'TEXT'),
    statement,
    ...(statement.queryType === 'DATA_DEFINITION' && {
      definition: explainedDefinition(executedTree(explain.statement, parameters)),
    }),
    columns: [
      planType === 'VALIDATE' ? resultColumn('Valid', BOOLEAN, session) : resultColumn('Query Plan', VARCHAR, session),
    ],
    warnings: statement.warnings,
  }
}

/** The statement itself, or the one that it executes. */
function executedTree(statement: Statement, parameters: GivenParameters): Statement {
  if (statement.kind !== 'Execute' && statement.kind !== 'ExecuteImmediate') return statement
  const parsed = executedBy(statement, parameters).parse()
  return parsed.kind === 'valid' ? parsed.tree : statement
}

function resolveMsOf(bound: BoundStatement): number {
  if (bound.kind === 'explain') return resolveMsOf(bound.statement)
  return (bound.kind === 'query' && bound.resolveMs) || 0
}

async function analyzeSelect(
  input: StatementInput,
  query: Query,
  parameters: GivenParameters,
  queryType: QueryType,
): Promise<BoundStatement> {
  const { query: analyzed, resolveMs } = await analyzeQuery(input, query, parameters)
  const analysis = analyzed.checked()
  const rows = input.budget.run(() => boundRows(analysis, input.session))
  return { kind: 'query', queryType, ...rows, warnings: analysis.warnings, resolveMs }
}
