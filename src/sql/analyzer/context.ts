import { tick } from '../../shared/cpu-budget.ts'
import { EngineError, type ErrorName } from '../../shared/engine-error.ts'
import type { AccessControl, ObjectName } from '../access-control.ts'
import type { Warning } from '../front-end.ts'
import type { ResolvedFunction } from '../functions/resolve-function.ts'
import type { Expression, FunctionCall, GroupingOperation, Listagg, SubqueryExpression } from '../syntax/ast.ts'
import type { Node } from '../syntax/ast-node.ts'
import type { Query } from '../syntax/ast-query.ts'
import type { FunctionSpecification } from '../syntax/ast-routines.ts'
import { locate, type Span } from '../syntax/span.ts'
import type { SqlType } from '../types/sql-type.ts'
import type { StatementInput } from '../statement-input.ts'
import type { ResolvedMetadata } from './resolve.ts'
import type { Field, Scope } from './scope.ts'
import type { ColumnId, Expr, GroupingExpr, LambdaArgumentExpr, ReadView, RelationNode, Routine } from './tree.ts'

/** State shared by all parts of the analysis of one text. */
export interface AnalysisContext extends StatementInput<ResolvedMetadata> {
  /** Supplies ids of columns, common tables and lambda arguments, unique in the statement. */
  readonly ids: { next: number }
  readonly parameters: Parameters
  /** The sources of scanned columns, for lineage: `catalog.schema.table.column`. */
  readonly sources: Map<ColumnId, string>
  /** The views under analysis, outermost first. */
  readonly views: readonly string[]
  /** The number of views analyzed so far, and the views; a view counts each time it is read. */
  readonly viewsRead: { count: number; readonly named: ReadView[] }
  /** The syntax nodes of some expressions: columns, and the parts of windows. */
  readonly origins: WeakMap<Expr, Expression>
  readonly warnings: Warning[]
  /** The rights with which this part of the text reads; undefined if every access is allowed. */
  readonly access: AccessControl | undefined
  /** Tables and views that the text names, for the checks at the end. */
  readonly named: NamedTable[]
  /** Columns that the text names. */
  readonly read: Set<ColumnId>
  /** Correlated queries, in the order of analysis. */
  readonly correlated: CorrelatedQuery[]
  /** The rules whose expressions are under analysis, outermost first. */
  readonly policies: readonly string[]
  /** Columns that only queries inside row filters and column masks define, including the columns of their scans. */
  readonly ofRules: Set<ColumnId>
  /** The functions that WITH FUNCTION declares, by lower-case name. */
  readonly functions?: ReadonlyMap<string, readonly InlineFunction[]>
  /** Inside MATCH_RECOGNIZE: analyzes its special functions; returns undefined for all other functions. */
  readonly patternCall?: (state: ExpressionState, node: FunctionCall) => Expr | undefined
  /** An expression in the form used in messages. */
  print(expression: Expression): string
  /**
   * Analyzes a query inside an expression or relation. It is a member because queries, relations and expressions are
   * mutually recursive.
   */
  readonly analyzeQuery: (context: AnalysisContext, query: Query, outer: Scope | undefined) => AnalyzedQuery
}

/** State shared by the analysis of the parts of one expression. */
export interface ExpressionState {
  readonly context: AnalysisContext
  readonly scope: Scope
  /** The arguments of enclosing lambdas, innermost first, by lower-case name. */
  readonly lambda: LambdaScope | undefined
  readonly found: FoundParts
  analyze(node: Expression): Expr
  /** The same state with other names in scope. */
  within(change: {
    readonly scope?: Scope
    readonly lambda: LambdaScope | undefined
    readonly found: FoundParts
  }): ExpressionState
}

export interface LambdaScope {
  readonly arguments: ReadonlyMap<string, LambdaArgumentExpr>
  readonly outer: LambdaScope | undefined
}

/** The parts of an expression that some clauses do not allow, excluding those of queries inside it. */
export interface FoundParts {
  readonly aggregates: (FunctionCall | Listagg)[]
  readonly windows: Node<string>[]
  readonly groupings: { readonly node: GroupingOperation; readonly expr: GroupingExpr }[]
  readonly subqueries: SubqueryExpression[]
}

/** A function of WITH FUNCTION. */
export interface InlineFunction {
  readonly resolved: ResolvedFunction
  readonly declaration: FunctionSpecification
  /** Undefined while its own body is analyzed: a function may not call itself. */
  readonly routine: Routine | undefined
  /** The number of expressions in an inlined call. */
  readonly size: number
}

/** A correlated query that must be decorrelated; this is checked after the whole statement is analyzed. */
export interface CorrelatedQuery {
  /** Whether Trino can decorrelate it. @param needed the columns of the query that are read; undefined if all are */
  takenApart(needed: ReadonlySet<ColumnId> | undefined): boolean
  refused(): EngineError
}

/** One reference to a table or view, with its columns at that reference. */
export interface NamedTable {
  readonly access: AccessControl
  readonly name: ObjectName
  readonly columns: ReadonlyMap<ColumnId, string>
  /** The columns that are read there, of this and other tables. */
  readonly read: ReadonlySet<ColumnId>
}

/** The values of `?`. DESCRIBE has no values; the types of parameters are then recorded as they are inferred. */
export type Parameters =
  | { readonly kind: 'values'; readonly values: readonly Expr[] }
  | { readonly kind: 'describe'; readonly types: Map<number, SqlType> }

export interface QueryColumn {
  readonly name: string | undefined
  readonly type: SqlType
  readonly column: ColumnId
  readonly hidden?: boolean
}

/** A relation of FROM, and the fields that names can reach in it. */
export interface AnalyzedRelation {
  readonly node: RelationNode
  readonly fields: readonly Field[]
}

export interface AnalyzedQuery {
  readonly node: RelationNode
  readonly columns: readonly QueryColumn[]
  /** Whether a top-level ORDER BY fixes the order of its rows. */
  readonly ordered: boolean
}

/** Records that the text names these fields. */
export function noteRead({ read }: AnalysisContext, fields: readonly Pick<Field, 'column' | 'shows'>[]): void {
  for (const { column, shows } of fields) {
    read.add(column)
    if (shows !== undefined) read.add(shows)
  }
}

export function newId(context: AnalysisContext): number {
  tick()
  return context.ids.next++
}

/** An error at a node's position, like Trino's semanticException. */
export function errorAt(
  { text }: Pick<AnalysisContext, 'text'>,
  node: { readonly span: Span },
  errorName: ErrorName,
  message: string,
): EngineError {
  return new EngineError(errorName, message, {
    location: locate(text.sql, node.span.at, text.origin),
  })
}

/** Adds the node's position to an error from code that knows no positions (types, functions, literals). */
export function locatedAt<T>(context: AnalysisContext, node: { readonly span: Span }, compute: () => T): T {
  try {
    return compute()
  } catch (error) {
    if (!(error instanceof EngineError) || error.location !== undefined) throw error
    // A time limit concerns the whole statement, so its error gets no position.
    if (error.errorName === 'EXCEEDED_TIME_LIMIT') throw error
    throw new EngineError(error.errorName, error.message, {
      cause: error,
      location: locate(context.text.sql, node.span.at, context.text.origin),
    })
  }
}
