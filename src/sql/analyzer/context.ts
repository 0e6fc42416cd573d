import { tick } from '../../shared/cpu-budget.ts'
import { EngineError, type ErrorName } from '../../shared/engine-error.ts'
import type { AccessControl, ObjectName } from '../access-control.ts'
import type { Warning } from '../front-end.ts'
import type { Expression, FunctionCall } from '../syntax/ast.ts'
import type { Query } from '../syntax/ast-query.ts'
import { locate, type Span } from '../syntax/span.ts'
import type { SqlType } from '../types/sql-type.ts'
import type { StatementInput } from '../statement-input.ts'
import type { CorrelatedQuery } from './correlation.ts'
import type { ExpressionState } from './expression-state.ts'
import type { InlineFunction } from './inline-functions.ts'
import type { ResolvedMetadata } from './resolve.ts'
import type { Field, Scope } from './scope.ts'
import type { ColumnId, Expr, RelationNode } from './tree.ts'

/** What every part of the analysis of one text shares. */
export interface AnalysisContext extends StatementInput<ResolvedMetadata> {
  /** Numbers for columns, common tables and lambda arguments, unique in the statement. */
  readonly ids: { next: number }
  readonly parameters: Parameters
  /** Where scanned columns come from, for lineage: `catalog.schema.table.column`. */
  readonly sources: Map<ColumnId, string>
  /** The views being analysed, outermost first. */
  readonly views: readonly string[]
  /** How many views were analysed so far, each as often as it is read. */
  readonly viewsRead: { count: number }
  /** What in the text some expressions come from: columns, and the parts of windows. */
  readonly origins: WeakMap<Expr, Expression>
  readonly warnings: Warning[]
  /** As whom this part of the text reads; undefined where nobody is refused anything. */
  readonly access: AccessControl | undefined
  /** Tables and views that were named, for what is checked in the end. */
  readonly named: NamedTable[]
  /** Columns that the text names. */
  readonly read: Set<ColumnId>
  /** Correlated queries, in the order of analysis. */
  readonly correlated: CorrelatedQuery[]
  /** The rules whose expressions are being analysed, outermost first. */
  readonly policies: readonly string[]
  /** Columns that only queries within filters and masks of the rules make: those of their scans among them. */
  readonly ofRules: Set<ColumnId>
  /** What WITH FUNCTION declares, by lower-case name. */
  readonly functions?: ReadonlyMap<string, readonly InlineFunction[]>
  /** Inside MATCH_RECOGNIZE: what its own functions mean; undefined for all others. */
  readonly patternCall?: (state: ExpressionState, node: FunctionCall) => Expr | undefined
  /** An expression as messages show it. */
  print(expression: Expression): string
  /** Analyses a query inside an expression or relation; here because queries, relations and expressions nest. */
  readonly analyzeQuery: (context: AnalysisContext, query: Query, outer: Scope | undefined) => AnalyzedQuery
}

/** A table or view at a place where it is read, with its columns there. */
export interface NamedTable {
  readonly access: AccessControl
  readonly name: ObjectName
  readonly columns: ReadonlyMap<ColumnId, string>
  /** What is read there, of these and others. */
  readonly read: ReadonlySet<ColumnId>
}

/** The values of `?`, or, for DESCRIBE, none: then their types are noted as they are found out. */
export type Parameters =
  | { readonly kind: 'values'; readonly values: readonly Expr[] }
  | { readonly kind: 'describe'; readonly types: Map<number, SqlType> }

export interface QueryColumn {
  readonly name: string | undefined
  readonly type: SqlType
  readonly column: ColumnId
  readonly hidden?: boolean
}

/** A relation of FROM, and what names of it reach. */
export interface AnalyzedRelation {
  readonly node: RelationNode
  readonly fields: readonly Field[]
}

export interface AnalyzedQuery {
  readonly node: RelationNode
  readonly columns: readonly QueryColumn[]
  /** ORDER BY at its top fixes the order of its rows. */
  readonly ordered: boolean
}

/** Notes that the text names these. */
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

/** An error at a node, the way Trino's semanticException makes it. */
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

/** Gives an error of a part that knows no places (types, functions, literals) the place of the node. */
export function locatedAt<T>(context: AnalysisContext, node: { readonly span: Span }, compute: () => T): T {
  try {
    return compute()
  } catch (error) {
    if (!(error instanceof EngineError) || error.location !== undefined) throw error
    // It is the whole statement's, wherever its time was over.
    if (error.errorName === 'EXCEEDED_TIME_LIMIT') throw error
    throw new EngineError(error.errorName, error.message, {
      cause: error,
      location: locate(context.text.sql, node.span.at, context.text.origin),
    })
  }
}
