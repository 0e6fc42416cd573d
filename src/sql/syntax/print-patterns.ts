import { unreachable } from '../../shared/unreachable.ts'
import type {
  MeasureDefinition,
  PatternRecognitionRelation,
  RowPattern,
  SkipTo,
  SubsetDefinition,
  VariableDefinition,
} from './ast-patterns.ts'
import { printIdentifier, printNames } from './print-names.ts'
import type { Printer } from './printing.ts'

export function printMeasures(printer: Printer, measures: readonly MeasureDefinition[]): string {
  if (measures.length === 0) return ''
  return `MEASURES ${measures
    .map((measure) => `${printer.expression(measure.expression)} AS ${printIdentifier(measure.name)}`)
    .join(', ')}`
}

const rowsPerMatch = {
  ONE: 'ONE ROW PER MATCH',
  ALL_SHOW_EMPTY: 'ALL ROWS PER MATCH SHOW EMPTY MATCHES',
  ALL_OMIT_EMPTY: 'ALL ROWS PER MATCH OMIT EMPTY MATCHES',
  ALL_WITH_UNMATCHED: 'ALL ROWS PER MATCH WITH UNMATCHED ROWS',
} as const

export function printRowsPerMatch(rows: PatternRecognitionRelation['rowsPerMatch']): string {
  return rows === undefined ? '' : rowsPerMatch[rows]
}

export function printSkip(node: SkipTo): string {
  switch (node.position) {
    case 'PAST_LAST':
      return 'AFTER MATCH SKIP PAST LAST ROW'
    case 'NEXT':
      return 'AFTER MATCH SKIP TO NEXT ROW'
    case 'FIRST':
    case 'LAST':
      return `AFTER MATCH SKIP TO ${node.position} ${node.identifier ? printIdentifier(node.identifier) : ''}`
    default:
      return unreachable(node.position)
  }
}

export function printSubsets(subsets: readonly SubsetDefinition[]): string {
  if (subsets.length === 0) return ''
  return `SUBSET ${subsets.map((subset) => `${printIdentifier(subset.name)} = ${printNames(subset.identifiers)}`).join(', ')}`
}

export function printVariables(printer: Printer, variables: readonly VariableDefinition[]): string {
  if (variables.length === 0) return ''
  return `DEFINE ${variables
    .map((variable) => `${printIdentifier(variable.name)} AS ${printer.expression(variable.expression)}`)
    .join(', ')}`
}

export function printRowPattern(node: RowPattern): string {
  switch (node.kind) {
    case 'PatternVariable':
      return printIdentifier(node.name)
    case 'EmptyPattern':
      return '()'
    case 'AnchorPattern':
      return node.type === 'PARTITION_START' ? '^' : '$'
    case 'ExcludedPattern':
      return `{- ${printRowPattern(node.pattern)} -}`
    case 'PatternConcatenation':
      return `(${node.patterns.map(printRowPattern).join(' ')})`
    case 'PatternAlternation':
      return `(${node.patterns.map(printRowPattern).join(' | ')})`
    case 'PatternPermutation':
      return `PERMUTE(${node.patterns.map(printRowPattern).join(', ')})`
    case 'QuantifiedPattern': {
      const { symbol, atLeast, atMost, greedy } = node.quantifier
      const range = atLeast !== undefined && atLeast === atMost ? `{${atLeast}}` : `{${atLeast ?? ''},${atMost ?? ''}}`
      return `(${printRowPattern(node.pattern)}${symbol === '{}' ? range : symbol}${greedy ? '' : '?'})`
    }
    default:
      return unreachable(node)
  }
}
