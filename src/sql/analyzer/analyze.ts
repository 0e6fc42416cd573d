import { accessOf } from '../access-control.ts'
import type { Warning } from '../front-end.ts'
import type { StatementInput } from '../statement-input.ts'
import type { Expression } from '../syntax/ast.ts'
import type { Query } from '../syntax/ast-query.ts'
import { printExpression } from '../syntax/printer.ts'
import type { SqlType } from '../types/sql-type.ts'
import type { AnalysisContext, AnalyzedQuery, Parameters } from './context.ts'
import { analyzeExpression } from './expressions.ts'
import { analyzeQuery } from './query.ts'
import { checkReads } from './table-policies.ts'
import type { ResolvedMetadata } from './resolve.ts'
import type { ColumnId, Expr } from './tree.ts'

export interface QueryAnalysis extends AnalyzedQuery {
  /** Where the columns of scans come from: `catalog.schema.table.column`. */
  readonly sources: ReadonlyMap<ColumnId, string>
  readonly warnings: readonly Warning[]
  /** Types of the parameters as far as they were found out, for DESCRIBE INPUT. */
  readonly parameterTypes: ReadonlyMap<number, SqlType>
  /** The numbers of its columns end here: what is put around the query takes the next. */
  readonly ids: { next: number }
}

type AnalysisInput = StatementInput<ResolvedMetadata>

/** The meaning of a whole query. @throws EngineError with Trino's name and place */
export function analyzeStatementQuery(input: AnalysisInput, query: Query, parameters: Parameters): QueryAnalysis {
  const context = createContext(input, parameters)
  const analyzed = input.budget.run(() => {
    const found = analyzeQuery(context, query, undefined)
    checkReads(context, found.node)
    return found
  })
  const types = parameters.kind === 'describe' ? parameters.types : new Map<number, SqlType>()
  return {
    ...analyzed,
    sources: context.sources,
    warnings: context.warnings,
    parameterTypes: types,
    ids: context.ids,
  }
}

/** The values of `EXECUTE … USING`: expressions without columns. */
export function analyzeParameters(input: AnalysisInput, expressions: readonly Expression[]): readonly Expr[] {
  const context = createContext(input, { kind: 'values', values: [] })
  const scope = { fields: [], parent: undefined, boundary: true }
  return input.budget.run(() => expressions.map((expression) => analyzeExpression(context, expression, scope).expr))
}

function createContext(input: AnalysisInput, parameters: Parameters): AnalysisContext {
  const { session } = input
  return {
    ...input,
    ids: { next: 0 },
    parameters,
    sources: new Map(),
    views: [],
    origins: new WeakMap(),
    warnings: [],
    access: accessOf(session),
    named: [],
    read: new Set(),
    policies: [],
    print: printExpression,
    analyzeQuery,
  }
}
