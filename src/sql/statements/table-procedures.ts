import type { ConnectorTable } from '../../connectors/spi/connector.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { dataSizeOf, durationOf } from '../../shared/quantities.ts'
import { analyzeParameters, NO_TABLES, type QueryAnalysis } from '../analyzer/analyze.ts'
import { errorAt } from '../analyzer/context.ts'
import type { RowStatement } from '../analyzer/row-changes.ts'
import type { TableName } from '../analyzer/resolve.ts'
import { boundRows, resultColumn } from '../bound-rows.ts'
import type { QueryType } from '../front-end.ts'
import type { StatementInput } from '../statement-input.ts'
import type { Expression } from '../syntax/ast.ts'
import type { TableExecute } from '../syntax/ast-statements.ts'
import { printExpression } from '../syntax/printer.ts'
import { BIGINT } from '../types/sql-type.ts'
import { allow, asAnalyzed, definition, findObject, type BoundWrite } from './bound-write.ts'

/** Finds the rows that a statement writes. */
export type RowAnalysis = (node: RowStatement) => Promise<QueryAnalysis>

/**
 * The procedures of `ALTER TABLE … EXECUTE`, each with its arguments and the kinds of their values. Trino's Iceberg
 * connector has procedures and arguments with the same names, and more.
 */
const PROCEDURES = {
  OPTIMIZE: { file_size_threshold: 'size' },
  EXPIRE_SNAPSHOTS: { retention_threshold: 'duration' },
} as const satisfies Readonly<Record<string, Readonly<Record<string, 'size' | 'duration'>>>>
type Procedure = keyof typeof PROCEDURES

const DEFAULT_RETENTION = '7d'

/**
 * The change of a checked `ALTER TABLE … EXECUTE`.
 * @throws EngineError PROCEDURE_NOT_FOUND, INVALID_ARGUMENTS, DUPLICATE_PROPERTY, INVALID_PROCEDURE_ARGUMENT,
 *   EXPRESSION_NOT_CONSTANT, NOT_SUPPORTED, AUTOCOMMIT_WRITE_CONFLICT
 */
export async function analyzeTableProcedure(
  input: StatementInput,
  node: TableExecute,
  rows: RowAnalysis,
): Promise<BoundWrite> {
  const { name, found } = await findObject(input, node.table)
  const procedure = node.procedure.value.toUpperCase()
  if (!isProcedure(procedure) || input.metadata.abilities(name.catalog)?.alterTable !== true) {
    throw new EngineError('PROCEDURE_NOT_FOUND', `Table procedure not registered: ${procedure}`)
  }
  allow(input, name.catalog, { ability: 'alterTable', doing: 'table procedures' })
  if (node.where !== undefined) {
    throw new EngineError('NOT_SUPPORTED', `WHERE not supported for procedure ${procedure}`)
  }
  const given = argumentsOf(input, node, name, procedure)
  const bound = {
    queryType: 'ALTER_TABLE_EXECUTE' as QueryType,
    columns: [resultColumn('rows', BIGINT, input.session)],
  }
  switch (procedure) {
    case 'OPTIMIZE':
      return { ...(await rewrite(input, node, { name, found, given }, rows)), ...bound }
    case 'EXPIRE_SNAPSHOTS': {
      const retention = given.get('retention_threshold') ?? DEFAULT_RETENTION
      const { startTimeMillis: startedAt } = input.session
      const change = { kind: 'expireVersions', schema: name.schema, table: name.table, retention, startedAt } as const
      return { ...definition(name.catalog, 'ALTER TABLE EXECUTE', change, {}), ...bound }
    }
  }
}

function isProcedure(name: string): name is Procedure {
  return Object.hasOwn(PROCEDURES, name)
}

async function rewrite(
  input: StatementInput,
  node: TableExecute,
  {
    name,
    found,
    given,
  }: { readonly name: TableName; readonly found: ConnectorTable | undefined; readonly given: Arguments },
  rows: RowAnalysis,
): Promise<BoundWrite> {
  const { catalog, schema, table } = name
  const threshold = given.get('file_size_threshold')
  const small = threshold === undefined ? {} : { smallBytes: dataSizeOf(threshold)!.amount }
  const analysis = await rows(node)
  const source = input.budget.run(() => boundRows(analysis, input.session))
  const { node: scan } = source.query
  if (scan.kind !== 'scan') throw new Error('EXECUTE optimize reads its table as it is')
  const rewritten = { ...scan, handle: { ...scan.handle, rewrite: true, ...small } }
  const read = found?.version === undefined ? {} : { version: found.version }
  const change = { kind: 'rewriteTable', schema, table, ...read, ...small } as const
  return {
    ...definition(catalog, 'ALTER TABLE EXECUTE', change, {}),
    ...(found && { analyzedTable: asAnalyzed(found) }),
    source: { ...source, query: { ...source.query, node: rewritten, wholeTable: true } },
  }
}

// ---- Arguments

/** The texts of the given arguments, by lower-case name. */
type Arguments = ReadonlyMap<string, string>

/** Source: Trino 476, StatementAnalyzer.visitTableExecute and PropertyUtil. */
function argumentsOf(
  input: StatementInput,
  node: TableExecute,
  { catalog }: TableName,
  procedure: Procedure,
): Arguments {
  const known: ReadonlyMap<string, 'size' | 'duration'> = new Map(Object.entries(PROCEDURES[procedure]))
  const names = [...known.keys()]
  const named = node.arguments.filter(({ name }) => name !== undefined).length
  if (named > 0 && named < node.arguments.length)
    throw errorAt(input, node, 'INVALID_ARGUMENTS', 'Named and positional arguments cannot be mixed')
  if (named === 0 && node.arguments.length > names.length)
    throw errorAt(input, node, 'INVALID_ARGUMENTS', 'Too many positional arguments')
  const written = node.arguments.map(({ name, value }, index) => ({ name: name?.value.toLowerCase() ?? names[index]!, value })) // prettier-ignore
  const given = new Map<string, string>()
  for (const { name, value } of written) {
    if (given.has(name)) throw errorAt(input, node, 'DUPLICATE_PROPERTY', `Duplicate named argument: ${name}`)
    const property = `'${catalog}' table procedure '${procedure}' property '${name}'`
    const kind = known.get(name)
    if (kind === undefined) throw invalid(`Catalog ${property} does not exist`)
    given.set(name, valueOf(input, value, kind, `catalog ${property}`))
  }
  return given
}

function valueOf(input: StatementInput, expression: Expression, kind: 'size' | 'duration', described: string): string {
  const [value] = analyzeParameters({ ...input, metadata: NO_TABLES }, [expression])
  if (value?.kind !== 'constant' || (value.type.kind !== 'varchar' && value.type.kind !== 'unknown'))
    throw invalid(`Invalid value for ${described}: Cannot convert [${printExpression(expression)}] to varchar`)
  if (value.value === null) throw invalid(`Invalid null value for ${described} from [${printExpression(expression)}]`)
  const text = String(value.value)
  const quantity = kind === 'size' ? dataSizeOf(text) : durationOf(text)
  if (quantity) return text
  const trouble =
    kind === 'size' ? 'size is not a valid data size string' : 'duration is not a valid data duration string'
  throw invalid(`Unable to set ${described} to ['${text}']: ${trouble}: ${text}`)
}

function invalid(message: string): EngineError {
  return new EngineError('INVALID_PROCEDURE_ARGUMENT', message)
}
