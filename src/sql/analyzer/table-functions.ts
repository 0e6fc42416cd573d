import { EngineError } from '../../shared/engine-error.ts'
import type { Expression } from '../syntax/ast.ts'
import type { Relation, TableFunctionArgument, TableFunctionInvocation } from '../syntax/ast-query.ts'
import { BIGINT } from '../types/sql-type.ts'
import { canCoerce } from '../types/coercion.ts'
import { typeName } from '../types/type-text.ts'
import { constant } from './build.ts'
import { errorAt, newId, noteRead, type AnalysisContext } from './context.ts'
import { analyzeExpression } from './expressions.ts'
import type { Field, Scope } from './scope.ts'
import type { RelationNode } from './tree.ts'

interface AnalyzedRelation {
  readonly node: RelationNode
  readonly fields: readonly Field[]
}

/** Analyzes a table argument. It is passed in because relations and table functions are mutually recursive. */
type AnalyzeRelation = (relation: Relation) => AnalyzedRelation

const parameters = ['START', 'STOP', 'STEP'] as const

export function analyzeTableFunction(
  context: AnalysisContext,
  node: TableFunctionInvocation,
  scope: Scope,
  analyze: AnalyzeRelation,
): AnalyzedRelation {
  const name = node.name.parts.map((part) => part.value.toLowerCase()).join('.')
  switch (name) {
    case 'sequence':
    case 'system.builtin.sequence':
      return analyzeSequence(context, node, scope)
    case 'exclude_columns':
    case 'system.builtin.exclude_columns':
      return analyzeExcludeColumns(context, node, analyze)
    default:
      throw errorAt(context, node.name, 'FUNCTION_NOT_FOUND', `Table function '${name}' not registered`)
  }
}

/** Analyzes `TABLE(sequence(start => 0, stop, step => 1))`. */
function analyzeSequence(context: AnalysisContext, node: TableFunctionInvocation, scope: Scope): AnalyzedRelation {
  const given = new Map<string, Expression>()
  for (const [key, argument] of argumentsOf(context, node, parameters)) {
    const { value } = argument
    if (value.kind === 'TableFunctionTableArgument' || value.kind === 'TableFunctionDescriptorArgument') {
      throw unexpected(context, argument, key, 'expression')
    }
    given.set(key, value)
  }
  const number = (key: string, otherwise: bigint | undefined): bigint => {
    const expression = given.get(key)
    if (expression === undefined) {
      if (otherwise === undefined) {
        throw errorAt(context, node.arguments[0] ?? node, 'MISSING_ARGUMENT', `Missing argument: ${key}`)
      }
      return otherwise
    }
    const { expr } = analyzeExpression(context, expression, { ...scope, fields: [] })
    if (!canCoerce(expr.type, BIGINT)) {
      throw errorAt(
        context,
        expression,
        'TYPE_MISMATCH',
        `Expected value of type bigint for argument ${key}, got ${typeName(expr.type)}`,
      )
    }
    const value = constant(expr)
    if (value === undefined) {
      throw errorAt(context, expression, 'EXPRESSION_NOT_CONSTANT', `Argument ${key} must be a constant`)
    }
    if (value === null) {
      throw errorAt(context, expression, 'INVALID_FUNCTION_ARGUMENT', `Invalid argument ${key}: null`)
    }
    return BigInt(String(value))
  }
  const start = number('START', 0n)
  const stop = number('STOP', undefined)
  const step = number('STEP', 1n)
  if (step === 0n || (step > 0n && stop < start) || (step < 0n && stop > start)) {
    throw errorAt(
      context,
      node,
      'INVALID_FUNCTION_ARGUMENT',
      step < 0n
        ? 'Step must be positive for sequence [start, stop] with start <= stop'
        : step === 0n
          ? 'Step must be nonzero'
          : 'Step must be negative for sequence [start, stop] with start > stop',
    )
  }
  const id = newId(context)
  return {
    node: { kind: 'sequence', id, start, stop, step },
    fields: [{ name: 'sequential_number', relation: undefined, type: BIGINT, column: id }],
  }
}

/** The arguments by parameter name. */
function argumentsOf(
  context: AnalysisContext,
  node: TableFunctionInvocation,
  names: readonly string[],
): ReadonlyMap<string, TableFunctionArgument> {
  if (node.arguments.length > names.length) {
    throw errorAt(
      context,
      node.arguments[0]!,
      'INVALID_ARGUMENTS',
      `Too many arguments. Expected at most ${names.length} arguments, got ${node.arguments.length} arguments`,
    )
  }
  const given = new Map<string, TableFunctionArgument>()
  node.arguments.forEach((argument, i) => {
    const key = argument.name === undefined ? names[i]! : argument.name.value.toUpperCase()
    if (given.has(key)) {
      throw errorAt(context, argument, 'INVALID_FUNCTION_ARGUMENT', `Duplicate argument name: ${key}`)
    }
    if (!names.includes(key)) {
      throw errorAt(context, argument, 'INVALID_FUNCTION_ARGUMENT', `Unexpected argument name: ${key}`)
    }
    given.set(key, argument)
  })
  return given
}

function unexpected(
  context: AnalysisContext,
  argument: TableFunctionArgument,
  key: string,
  wanted: 'expression' | 'table' | 'descriptor',
): Error {
  const { kind } = argument.value
  const got =
    kind === 'TableFunctionTableArgument'
      ? 'table'
      : kind === 'TableFunctionDescriptorArgument'
        ? 'descriptor'
        : 'expression'
  const message = `Invalid argument ${key}. Expected ${wanted}, got ${got}`
  return errorAt(context, argument, 'INVALID_FUNCTION_ARGUMENT', message)
}

/** Analyzes `TABLE(exclude_columns(input => TABLE(t), columns => DESCRIPTOR(a, b)))`. */
function analyzeExcludeColumns(
  context: AnalysisContext,
  node: TableFunctionInvocation,
  analyze: AnalyzeRelation,
): AnalyzedRelation {
  const given = argumentsOf(context, node, ['INPUT', 'COLUMNS'])
  const missing = (key: string): Error =>
    errorAt(context, node.arguments[0] ?? node, 'MISSING_ARGUMENT', `Missing argument: ${key}`)
  const input = given.get('INPUT')
  if (input === undefined) throw missing('INPUT')
  const table = input.value
  if (table.kind !== 'TableFunctionTableArgument') throw unexpected(context, input, 'INPUT', 'table')
  const relation = analyze(table.table)
  const clause = table.partitionBy !== undefined ? 'Partitioning' : table.orderBy !== undefined ? 'Ordering' : undefined
  if (clause !== undefined) {
    const message = `Invalid argument INPUT. ${clause} specified for table argument with row semantics`
    throw errorAt(context, input, 'INVALID_FUNCTION_ARGUMENT', message)
  }
  const columns = given.get('COLUMNS')
  if (columns === undefined) throw missing('COLUMNS')
  const descriptor = columns.value
  if (descriptor.kind !== 'TableFunctionDescriptorArgument') throw unexpected(context, columns, 'COLUMNS', 'descriptor')
  const invalid = (message: string): EngineError => new EngineError('INVALID_FUNCTION_ARGUMENT', message)
  if (descriptor.fields === undefined) throw invalid('COLUMNS descriptor is null')
  if (descriptor.fields.some((field) => field.type !== undefined)) throw invalid('COLUMNS descriptor contains types')
  const excluded = new Set(descriptor.fields.map((field) => field.name.value.toLowerCase()))
  const fields = relation.fields.filter((field) => field.hidden !== true)
  const present = new Set(fields.map((field) => field.name?.toLowerCase()))
  const absent = [...excluded].filter((name) => !present.has(name))
  if (absent.length > 0) throw invalid(`Excluded columns: [${absent.join(', ')}] not present in the table`)
  const kept = fields.filter((field) => field.name === undefined || !excluded.has(field.name.toLowerCase()))
  if (kept.length === 0) throw invalid('All columns are excluded')
  noteRead(context, kept)
  return { node: relation.node, fields: kept.map((field) => ({ ...field, relation: undefined })) }
}
