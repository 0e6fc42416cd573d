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
import { analyzeWrittenRows, type RowStatement } from './row-changes.ts'
import { analyzePeriod, pointOf } from './table-points.ts'
import { checkReads, withNewRowFilter } from './table-policies.ts'
import type { PeriodReader, ResolvedMetadata, ResolveOptions, TableName } from './resolve.ts'
import type { Field } from './scope.ts'
import type { ColumnId, Expr, ReadView } from './tree.ts'

export interface QueryAnalysis extends AnalyzedQuery {
  /** The sources of scan columns: `catalog.schema.table.column`. */
  readonly sources: ReadonlyMap<ColumnId, string>
  readonly warnings: readonly Warning[]
  /** The types of the parameters as far as they were inferred, for DESCRIBE INPUT. */
  readonly parameterTypes: ReadonlyMap<number, SqlType>
  /** Columns that only queries inside row filters and column masks define. */
  readonly ofRules: ReadonlySet<ColumnId>
  readonly views: readonly ReadView[]
  /** Supplies further column ids, for nodes that are put around the query. */
  readonly ids: { next: number }
}

type AnalysisInput = StatementInput<ResolvedMetadata>

/** A query whose rights to read are not checked yet. Its columns may already be used. */
export interface UncheckedQuery {
  readonly columns: QueryAnalysis['columns']
  /** Checks the rights to read. @throws EngineError PERMISSION_DENIED */
  checked(): QueryAnalysis
}

/** Analyzes a whole query. @throws EngineError with Trino's name and position */
export function analyzeStatementQuery(input: AnalysisInput, query: Query, parameters: Parameters): QueryAnalysis {
  return analyzeUnchecked(input, query, parameters).checked()
}

/**
 * Same as `analyzeStatementQuery`, for statements that make further checks before the rights to read, as Trino does.
 */
export function analyzeUnchecked(input: AnalysisInput, query: Query, parameters: Parameters): UncheckedQuery {
  const context = createContext(input, parameters)
  const analyzed = input.budget.run(() => analyzeQuery(context, query, undefined))
  return uncheckedQuery(context, analyzed, parameters)
}

function uncheckedQuery(context: AnalysisContext, analyzed: AnalyzedQuery, parameters: Parameters): UncheckedQuery {
  const types = parameters.kind === 'describe' ? parameters.types : new Map<number, SqlType>()
  return {
    columns: analyzed.columns,
    checked() {
      context.budget.run(() => {
        checkReads(context, analyzed.node)
        verifyCorrelated(context, { node: analyzed.node, outputs: analyzed.columns.map(({ column }) => column) })
      })
      return {
        sources: context.sources,
        ...analyzed,
        warnings: context.warnings,
        parameterTypes: types,
        ofRules: context.ofRules,
        views: context.viewsRead.named,
        ids: context.ids,
      }
    },
  }
}

/** The rows that a statement writes which changes rows of a table, or rewrites its files. */
export function analyzeRowStatement(input: AnalysisInput, node: RowStatement, parameters: Parameters): QueryAnalysis {
  const context = createContext(input, parameters)
  const rows = input.budget.run(() => analyzeWrittenRows(context, node))
  return uncheckedQuery(context, rows, parameters).checked()
}

/**
 * Rows to be written to a table. If a row filter of the rules applies to the writing user, a row that does not match it
 * fails the statement.
 * @param rows with the table's columns, in the table's order
 * @param node names the table; its position is used in errors
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

/** For parts of a text that are analyzed before any table is known. */
export const NO_TABLES: ResolvedMetadata = {
  table: () => undefined,
  tableAt: () => undefined,
  hasVersions: () => false,
  hasCatalog: () => false,
  hasSchema: () => false,
}

/**
 * Finds out which versions of tables a statement names, for `resolve`. Errors are left to the analysis.
 * @param parametersOf the values of parameters of the statement; called when a version is named
 */
export function periodsOf(
  input: Omit<AnalysisInput, 'metadata'>,
  parametersOf: (input: AnalysisInput) => Parameters,
): NonNullable<ResolveOptions['periods']> {
  const reader = (parameters: (input: AnalysisInput) => Parameters): PeriodReader => {
    return (period, { catalog, schema }) => {
      const session = { ...input.session, ...(catalog && { catalog }), ...(schema && { schema }) }
      const given = { ...input, session, metadata: NO_TABLES }
      try {
        const context = createContext(given, parameters(given))
        const value = analyzePeriod(context, period)
        return value && pointOf(context, period, value)
      } catch (error) {
        if (error instanceof EngineError && error.errorName !== 'EXCEEDED_TIME_LIMIT') return undefined
        throw error
      }
    }
  }
  return { statement: reader(parametersOf), views: reader(() => ({ kind: 'values', values: [] })) }
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
    viewsRead: { count: 0, named: [] },
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
