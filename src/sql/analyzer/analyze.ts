import { accessOf } from '../access-control.ts'
import type { Warning } from '../front-end.ts'
import type { StatementInput } from '../statement-input.ts'
import type { Expression } from '../syntax/ast.ts'
import type { Query } from '../syntax/ast-query.ts'
import type { Span } from '../syntax/span.ts'
import { printExpression } from '../syntax/printer.ts'
import type { SqlType } from '../types/sql-type.ts'
import { errorAt, type AnalysisContext, type AnalyzedQuery, type Parameters } from './context.ts'
import { verifyCorrelated } from './correlation.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { analyzeExpression } from './expressions.ts'
import { analyzeQuery } from './query.ts'
import { checkReads, withNewRowFilter } from './table-policies.ts'
import type { ResolvedMetadata, TableName } from './resolve.ts'
import type { Field } from './scope.ts'
import type { ColumnId, Expr } from './tree.ts'

export interface QueryAnalysis extends AnalyzedQuery {
  /** Where the columns of scans come from: `catalog.schema.table.column`. */
  readonly sources: ReadonlyMap<ColumnId, string>
  readonly warnings: readonly Warning[]
  /** Types of the parameters as far as they were found out, for DESCRIBE INPUT. */
  readonly parameterTypes: ReadonlyMap<number, SqlType>
  /** Columns that only queries within filters and masks of the rules make. */
  readonly ofRules: ReadonlySet<ColumnId>
  /** The numbers of its columns end here: what is put around the query takes the next. */
  readonly ids: { next: number }
}

type AnalysisInput = StatementInput<ResolvedMetadata>

/** A query of which it is not asked yet who may read what it reads: its columns may be told of. */
export interface UncheckedQuery {
  readonly columns: QueryAnalysis['columns']
  /** @throws EngineError PERMISSION_DENIED */
  checked(): QueryAnalysis
}

/** The meaning of a whole query. @throws EngineError with Trino's name and place */
export function analyzeStatementQuery(input: AnalysisInput, query: Query, parameters: Parameters): QueryAnalysis {
  return analyzeUnchecked(input, query, parameters).checked()
}

/** As `analyzeStatementQuery`, for a statement that has more to ask before, in Trino's order. */
export function analyzeUnchecked(input: AnalysisInput, query: Query, parameters: Parameters): UncheckedQuery {
  const context = createContext(input, parameters)
  const analyzed = input.budget.run(() => analyzeQuery(context, query, undefined))
  const types = parameters.kind === 'describe' ? parameters.types : new Map<number, SqlType>()
  return {
    columns: analyzed.columns,
    checked() {
      input.budget.run(() => {
        checkReads(context, analyzed.node)
        verifyCorrelated(context, { node: analyzed.node, outputs: analyzed.columns.map(({ column }) => column) })
      })
      return {
        sources: context.sources,
        ...analyzed,
        warnings: context.warnings,
        parameterTypes: types,
        ofRules: context.ofRules,
        ids: context.ids,
      }
    },
  }
}

/**
 * Rows that are to be written to a table, by whoever writes them: where the rules have a filter for him, one that it
 * does not hold for ends the statement.
 * @param rows with the table's columns, in its order
 * @param node what names the table, for errors
 */
export function analyzeNewRows(
  input: AnalysisInput,
  rows: QueryAnalysis,
  node: { readonly span: Span },
  table: TableName,
): QueryAnalysis {
  const made = createContext(input, { kind: 'values', values: [] })
  const context = { ...made, ids: rows.ids, ofRules: new Set(rows.ofRules) }
  return input.budget.run(() => {
    const fields = rows.columns.map((column): Field => ({ ...column, relation: [table.table] }))
    const { node: passing } = withNewRowFilter(context, node, table, { node: rows.node, fields })
    checkReads(context, passing)
    verifyCorrelated(context)
    return { ...rows, node: passing, ofRules: context.ofRules }
  })
}

/** The values of `EXECUTE … USING`: expressions without columns. */
export function analyzeParameters(input: AnalysisInput, expressions: readonly Expression[]): readonly Expr[] {
  const context = createContext(input, { kind: 'values', values: [] })
  const scope = { fields: [], parent: undefined, boundary: true }
  return input.budget.run(() => {
    const values = expressions.map((expression) => {
      try {
        return analyzeExpression(context, expression, scope).expr
      } catch (error) {
        if (!(error instanceof EngineError) || error.errorName !== 'COLUMN_NOT_FOUND') throw error
        const message = 'Constant expression cannot contain column references'
        throw errorAt(context, expression, 'EXPRESSION_NOT_CONSTANT', message)
      }
    })
    verifyCorrelated(context)
    return values
  })
}

function createContext(input: AnalysisInput, parameters: Parameters): AnalysisContext {
  const { session } = input
  return {
    analyzeQuery,
    ...input,
    ids: { next: 0 },
    parameters,
    sources: new Map(),
    views: [],
    viewsRead: { count: 0 },
    origins: new WeakMap(),
    warnings: [],
    access: accessOf(session),
    named: [],
    read: new Set(),
    correlated: [],
    policies: [],
    ofRules: new Set(),
    print: printExpression,
  }
}
