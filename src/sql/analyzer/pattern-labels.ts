import { tick } from '../../shared/cpu-budget.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { PatternCode, PatternProgram } from '../../duckdb/scripts/row-patterns.ts'
import type { WindowFrame } from '../syntax/ast.ts'
import type { Identifier } from '../syntax/ast-node.ts'
import type { PatternQuantifier, PatternRecognitionRelation, RowPattern } from '../syntax/ast-patterns.ts'
import { childrenOf, type AnyNode } from '../syntax/tree.ts'
import { errorAt, type AnalysisContext } from './context.ts'

/** The maximum in quantifiers and navigations. */
export const MAX_INTEGER = 2_147_483_647

/** The mask of a row has one bit for each variable. */
const MAX_VARIABLES = 15

/** The variables of a row pattern, by their canonical names. */
export interface Labels {
  /** The numbers of the pattern's own variables. */
  readonly primary: ReadonlyMap<string, number>
  /** The pattern's variables and subsets, each with the variables it stands for. */
  readonly names: ReadonlyMap<string, readonly number[]>
  /** The index of a variable's definition; a variable without definition matches every row. */
  readonly defined: ReadonlyMap<string, number>
  nameOf(name: Identifier): string
  variablesOf(name: Identifier): readonly number[]
}

function canonical(name: Identifier): string {
  return name.quoted ? name.value : name.value.toUpperCase()
}

export function labelsOf(context: AnalysisContext, node: PatternRecognitionRelation): Labels {
  const primary = new Map<string, number>()
  const collect = (pattern: RowPattern): void => {
    switch (pattern.kind) {
      case 'PatternVariable':
        if (!primary.has(canonical(pattern.name))) primary.set(canonical(pattern.name), primary.size)
        return
      case 'EmptyPattern':
      case 'AnchorPattern':
        return
      case 'ExcludedPattern':
      case 'QuantifiedPattern':
        return collect(pattern.pattern)
      case 'PatternConcatenation':
      case 'PatternAlternation':
      case 'PatternPermutation':
        return pattern.patterns.forEach(collect)
      default:
        return unreachable(pattern)
    }
  }
  collect(node.pattern)
  if (primary.size > MAX_VARIABLES) {
    throw errorAt(
      context,
      node,
      'NOT_SUPPORTED',
      `Row patterns of more than ${MAX_VARIABLES} variables are not supported`,
    )
  }
  const names = new Map<string, readonly number[]>([...primary].map(([name, index]) => [name, [index]]))
  for (const { name, identifiers } of node.subsets) {
    if (names.has(canonical(name))) {
      throw errorAt(
        context,
        name,
        'INVALID_LABEL',
        `union pattern variable name: ${canonical(name)} is a duplicate of primary pattern variable name`,
      )
    }
    const members = identifiers.map((identifier) => {
      const index = primary.get(canonical(identifier))
      if (index === undefined) {
        throw errorAt(
          context,
          identifier,
          'INVALID_LABEL',
          `subset element: ${canonical(identifier)} is not a primary pattern variable`,
        )
      }
      return index
    })
    names.set(canonical(name), members)
  }
  const defined = new Map<string, number>()
  node.variableDefinitions.forEach(({ name }, i) => {
    const key = canonical(name)
    if (!primary.has(key)) {
      throw errorAt(context, name, 'INVALID_LABEL', `defined variable: ${key} is not a primary pattern variable`)
    }
    if (defined.has(key)) {
      throw errorAt(context, name, 'INVALID_LABEL', `pattern variable with name: ${key} is defined twice`)
    }
    defined.set(key, i)
  })
  return {
    primary,
    names,
    defined,
    nameOf: canonical,
    variablesOf(name) {
      const variables = names.get(canonical(name))
      if (variables !== undefined) return variables
      throw errorAt(context, name, 'INVALID_LABEL', `${canonical(name)} is not a primary or union pattern variable`)
    },
  }
}

/** Refuses syntax that the grammar accepts and Trino does not. */
export function verifyPattern(context: AnalysisContext, node: PatternRecognitionRelation): void {
  if (node.patternSearchMode !== undefined) {
    const message = `Pattern search modifier: ${node.patternSearchMode} is not allowed in MATCH_RECOGNIZE clause`
    throw errorAt(context, node, 'NOT_SUPPORTED', message)
  }
  const visit = (part: AnyNode): void => {
    if (part.kind === 'ExcludedPattern' && node.rowsPerMatch === 'ALL_WITH_UNMATCHED') {
      const message = 'Pattern exclusion syntax is not allowed when ALL ROWS PER MATCH WITH UNMATCHED ROWS is specified'
      throw errorAt(context, part, 'INVALID_ROW_PATTERN', message)
    }
    if (part.kind === 'PatternQuantifier') verifyBounds(context, part as PatternQuantifier)
    childrenOf(part).forEach(visit)
  }
  visit(node.pattern)
  for (const { expression } of [...node.measures, ...node.variableDefinitions]) verifyUnnested(context, expression)
}

function verifyUnnested(context: AnalysisContext, part: AnyNode): void {
  if (part.kind === 'PatternRecognitionRelation' || (part.kind === 'WindowFrame' && (part as WindowFrame).pattern)) {
    const message = 'nested row pattern recognition in row pattern recognition'
    throw errorAt(context, part, 'NESTED_ROW_PATTERN_RECOGNITION', message)
  }
  for (const child of childrenOf(part)) verifyUnnested(context, child)
}

function verifyBounds(context: AnalysisContext, quantifier: PatternQuantifier): void {
  const { atLeast, atMost } = quantifier
  const most = (bound: string | undefined, name: 'lower' | 'upper'): void => {
    if (bound === undefined || Number(bound) <= MAX_INTEGER) return
    const message = `Pattern quantifier ${name} bound must not exceed ${MAX_INTEGER}`
    throw errorAt(context, quantifier, 'NUMERIC_VALUE_OUT_OF_RANGE', message)
  }
  most(atLeast, 'lower')
  if (atMost === undefined) return
  if (Number(atMost) < 1) {
    const message = 'Pattern quantifier upper bound must be greater than or equal to 1'
    throw errorAt(context, quantifier, 'NUMERIC_VALUE_OUT_OF_RANGE', message)
  }
  most(atMost, 'upper')
  if (atLeast !== undefined && Number(atLeast) > Number(atMost)) {
    const message = 'Pattern quantifier lower bound must not exceed upper bound'
    throw errorAt(context, quantifier, 'INVALID_RANGE', message)
  }
}

export function skipOf(labels: Labels, { afterMatchSkipTo: skip }: PatternRecognitionRelation): PatternProgram['skip'] {
  const words = { PAST_LAST: 'past last', NEXT: 'next', FIRST: 'first', LAST: 'last' } as const
  if (skip === undefined) return { to: 'past last', variables: [] }
  const variables = skip.identifier === undefined ? [] : labels.variablesOf(skip.identifier)
  return { to: words[skip.position], variables }
}

/**
 * The limit of parts in the matcher's pattern, with permutations expanded: allows a permutation of seven variables, not
 * of eight.
 */
const MAX_PARTS = 50_000

/**
 * The pattern in the matcher's form.
 * @throws EngineError QUERY_EXCEEDED_COMPILER_LIMIT if its permutations make it too large
 */
export function matcherPatternOf(context: AnalysisContext, labels: Labels, pattern: RowPattern): PatternCode {
  if (partsOf(pattern) > MAX_PARTS) {
    const message = `Query has a row pattern of more than ${MAX_PARTS} parts, its permutations written out`
    throw errorAt(context, pattern, 'QUERY_EXCEEDED_COMPILER_LIMIT', message)
  }
  return codeOf(labels, pattern)
}

/** The number of parts of the pattern's code; Infinity if it exceeds a number. */
function partsOf(pattern: RowPattern): number {
  tick()
  const sum = (patterns: readonly RowPattern[]): number => patterns.reduce((all, each) => all + partsOf(each), 1)
  switch (pattern.kind) {
    case 'PatternVariable':
    case 'EmptyPattern':
    case 'AnchorPattern':
      return 1
    case 'ExcludedPattern':
    case 'QuantifiedPattern':
      return 1 + partsOf(pattern.pattern)
    case 'PatternConcatenation':
    case 'PatternAlternation':
      return sum(pattern.patterns)
    case 'PatternPermutation':
      return pattern.patterns.reduce((product, _, i) => product * (i + 1), sum(pattern.patterns))
    default:
      return unreachable(pattern)
  }
}

function codeOf(labels: Labels, pattern: RowPattern): PatternCode {
  const inner = (each: RowPattern): PatternCode => codeOf(labels, each)
  switch (pattern.kind) {
    case 'PatternVariable':
      return labels.primary.get(canonical(pattern.name))!
    case 'EmptyPattern':
      return { all: [] }
    case 'AnchorPattern':
      return pattern.type === 'PARTITION_START' ? { start: true } : { end: true }
    case 'ExcludedPattern':
      return { excluded: inner(pattern.pattern) }
    case 'PatternConcatenation':
      return { all: pattern.patterns.map(inner) }
    case 'PatternAlternation':
      return { any: pattern.patterns.map(inner) }
    case 'PatternPermutation':
      return { any: permutations(pattern.patterns.map(inner)).map((all) => ({ all })) }
    case 'QuantifiedPattern': {
      const { symbol, atLeast, atMost, greedy } = pattern.quantifier
      const least = symbol === '+' ? 1 : symbol === '{}' ? Number(atLeast ?? 0) : 0
      const most = symbol === '?' ? 1 : symbol === '{}' && atMost !== undefined ? Number(atMost) : null
      return { repeat: inner(pattern.pattern), least, most, greedy }
    }
    default:
      return unreachable(pattern)
  }
}

/** Permutations in lexicographical order of the written positions, as in the SQL standard. */
function permutations(items: readonly PatternCode[]): PatternCode[][] {
  tick()
  if (items.length <= 1) return [[...items]]
  return items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((rest) => [item, ...rest]))
}
