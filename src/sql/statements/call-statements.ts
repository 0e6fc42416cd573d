import { EngineError } from '../../shared/engine-error.ts'
import { accessOf } from '../access-control.ts'
import type { QueryAnalysis } from '../analyzer/analyze.ts'
import { errorAt } from '../analyzer/context.ts'
import { someNode } from '../analyzer/walk.ts'
import { boundRows } from '../bound-rows.ts'
import type { BoundStatement } from '../front-end.ts'
import type { StatementInput } from '../statement-input.ts'
import type { Expression } from '../syntax/ast.ts'
import type { Query, SelectItem } from '../syntax/ast-query.ts'
import type { Call, CallArgument } from '../syntax/ast-statements.ts'
import type { Span } from '../syntax/span.ts'
import { canCoerce } from '../types/coercion.ts'
import { VARCHAR } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { plainQuery, plainSelect } from './plain-query.ts'

export type BoundCall = Extract<BoundStatement, { kind: 'call' }>

/** The only supported procedure, `system.runtime.kill_query`. Its arguments are texts; the second is optional. */
const PROCEDURE = ['system', 'runtime', 'kill_query'] as const
const PARAMETERS = [
  { name: 'QUERY_ID', required: true },
  { name: 'MESSAGE', required: false },
] as const

/**
 * Turns CALL into a query of one row: the argument values in the order of the procedure's parameters.
 * @param analyze analyzes a query in the statement
 * @throws EngineError as Trino: PROCEDURE_NOT_FOUND, INVALID_ARGUMENTS, TYPE_MISMATCH, EXPRESSION_NOT_CONSTANT;
 * PERMISSION_DENIED by the rules on procedures; NOT_SUPPORTED within a transaction
 */
export async function analyzeProcedureCall(
  input: StatementInput,
  node: Call,
  analyze: (query: Query) => Promise<QueryAnalysis>,
): Promise<BoundCall> {
  const { transactionId } = input.session
  if (transactionId !== undefined && transactionId !== 'NONE')
    throw new EngineError('NOT_SUPPORTED', 'Procedures cannot be called within a transaction (use autocommit mode)')
  checkName(input, node)
  const given = argumentsByParameter(input, node)
  const values = PARAMETERS.map(
    ({ name }) => given.get(name)?.value ?? { kind: 'NullLiteral' as const, span: node.span },
  )
  const analysis = await constant(() => analyze(rowOf(values, node.span)), input, node)
  for (const [index, { type }] of analysis.columns.entries())
    if (!canCoerce(type, VARCHAR))
      throw errorAt(
        input,
        values[index]!,
        'TYPE_MISMATCH',
        `Cannot cast type ${typeName(type)} to ${typeName(VARCHAR)}`,
      )
  if (someNode(analysis.node, ({ kind }) => kind === 'scan')) throw notConstant(input, node)
  accessOf(input.session)?.checkProcedure(...PROCEDURE)
  return {
    kind: 'call',
    queryType: 'DATA_DEFINITION',
    updateType: 'CALL',
    values: boundRows(analysis, input.session).query,
    warnings: analysis.warnings,
  }
}

/** Checks the procedure's name; missing parts come from the session. */
function checkName(input: StatementInput, node: Call): void {
  const parts = node.name.parts.map(({ value }) => value.toLowerCase())
  const { catalog = '', schema = '' } = input.session
  const whole = [...[catalog, schema].slice(0, Math.max(0, PROCEDURE.length - parts.length)), ...parts]
  if (whole.join('.') === PROCEDURE.join('.')) return
  const [named, ...rest] = whole
  if (named === '') {
    throw errorAt(input, node, 'MISSING_CATALOG_NAME', 'Catalog must be specified when session catalog is not set')
  }
  if (!input.metadata.catalogs().includes(named!)) {
    throw errorAt(input, node, 'CATALOG_NOT_FOUND', `Catalog '${named}' not found`)
  }
  throw new EngineError('PROCEDURE_NOT_FOUND', `Procedure not registered: ${rest.join('.')}`)
}

/** The arguments by parameter name. @throws EngineError INVALID_ARGUMENTS, with checks in Trino's order */
function argumentsByParameter(input: StatementInput, node: Call): ReadonlyMap<string, CallArgument> {
  const invalid = (message: string, at: Call | CallArgument = node): EngineError =>
    errorAt(input, at, 'INVALID_ARGUMENTS', message)
  const named = node.arguments.filter(({ name }) => name !== undefined)
  if (named.length > 0 && named.length < node.arguments.length)
    throw invalid('Named and positional arguments cannot be mixed')
  const given = new Map<string, CallArgument>()
  for (const [index, argument] of node.arguments.entries()) {
    const name = argument.name ? canonical(argument.name) : PARAMETERS[index]?.name
    if (name === undefined) throw invalid('Too many arguments for procedure')
    if (given.has(name)) throw invalid(`Duplicate procedure argument: ${name}`, argument)
    if (!PARAMETERS.some((parameter) => parameter.name === name))
      throw invalid(`Unknown argument name: ${name}`, argument)
    given.set(name, argument)
  }
  const missing = PARAMETERS.find(({ name, required }) => required && !given.has(name))
  if (missing) throw invalid(`Required procedure argument '${missing.name}' is missing`)
  return given
}

function canonical({ value, quoted }: NonNullable<CallArgument['name']>): string {
  return quoted ? value : value.toUpperCase()
}

/** Reports a column reference as a value that is not constant. */
async function constant<T>(analyzed: () => Promise<T>, input: StatementInput, node: Call): Promise<T> {
  try {
    return await analyzed()
  } catch (error) {
    throw error instanceof EngineError && error.errorName === 'COLUMN_NOT_FOUND' ? notConstant(input, node) : error
  }
}

function notConstant(input: StatementInput, node: Call): EngineError {
  const message = 'Constant expression cannot contain column references'
  return errorAt(input, node.arguments[0] ?? node, 'EXPRESSION_NOT_CONSTANT', message)
}

/** Builds `SELECT value, …`. */
function rowOf(values: readonly Expression[], span: Span): Query {
  const items = values.map((expression): SelectItem => ({
    kind: 'SingleColumn',
    span,
    expression,
    alias: undefined,
  }))
  return plainQuery(span, plainSelect(span, items))
}
