import type { OrderBy, Relation } from './ast-query.ts'
import type { Expression } from './ast.ts'
import type { Identifier, Node } from './ast-node.ts'

export interface PatternRecognitionRelation extends Node<'PatternRecognitionRelation'> {
  readonly input: Relation
  readonly partitionBy: readonly Expression[]
  readonly orderBy: OrderBy | undefined
  readonly measures: readonly MeasureDefinition[]
  readonly rowsPerMatch: 'ONE' | 'ALL_SHOW_EMPTY' | 'ALL_OMIT_EMPTY' | 'ALL_WITH_UNMATCHED' | undefined
  readonly afterMatchSkipTo: SkipTo | undefined
  readonly patternSearchMode: 'INITIAL' | 'SEEK' | undefined
  readonly pattern: RowPattern
  readonly subsets: readonly SubsetDefinition[]
  readonly variableDefinitions: readonly VariableDefinition[]
}

export interface MeasureDefinition extends Node<'MeasureDefinition'> {
  readonly expression: Expression
  readonly name: Identifier
}

export interface SkipTo extends Node<'SkipTo'> {
  readonly position: 'PAST_LAST' | 'NEXT' | 'FIRST' | 'LAST'
  /** With FIRST and LAST (`TO x` is LAST); undefined otherwise. */
  readonly identifier: Identifier | undefined
}

export interface SubsetDefinition extends Node<'SubsetDefinition'> {
  readonly name: Identifier
  readonly identifiers: readonly Identifier[]
}

export interface VariableDefinition extends Node<'VariableDefinition'> {
  readonly name: Identifier
  readonly expression: Expression
}

export type RowPattern =
  | PatternVariable
  | EmptyPattern
  | AnchorPattern
  | ExcludedPattern
  | PatternConcatenation
  | PatternAlternation
  | PatternPermutation
  | QuantifiedPattern

export interface PatternVariable extends Node<'PatternVariable'> {
  readonly name: Identifier
}

export interface EmptyPattern extends Node<'EmptyPattern'> {}

export interface AnchorPattern extends Node<'AnchorPattern'> {
  readonly type: 'PARTITION_START' | 'PARTITION_END'
}

export interface ExcludedPattern extends Node<'ExcludedPattern'> {
  readonly pattern: RowPattern
}

export interface PatternConcatenation extends Node<'PatternConcatenation'> {
  readonly patterns: readonly RowPattern[]
}

export interface PatternAlternation extends Node<'PatternAlternation'> {
  readonly patterns: readonly RowPattern[]
}

export interface PatternPermutation extends Node<'PatternPermutation'> {
  readonly patterns: readonly RowPattern[]
}

export interface QuantifiedPattern extends Node<'QuantifiedPattern'> {
  readonly pattern: RowPattern
  readonly quantifier: PatternQuantifier
}

/** `*` is {0,}, `+` {1,}, `?` {0,1}; the counts are decimal digits. */
export interface PatternQuantifier extends Node<'PatternQuantifier'> {
  readonly symbol: '*' | '+' | '?' | '{}'
  readonly atLeast: string | undefined
  readonly atMost: string | undefined
  readonly greedy: boolean
}
