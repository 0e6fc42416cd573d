import type { Identifier } from './ast-node.ts'
import type {
  MeasureDefinition,
  PatternQuantifier,
  RowPattern,
  SkipTo,
  SubsetDefinition,
  VariableDefinition,
} from './ast-patterns.ts'
import { parseIdentifier } from './parse-names.ts'
import type { TokenCursor } from './token-cursor.ts'

/** Parses an optional `MEASURES …`. */
export function parseMeasures(cursor: TokenCursor): MeasureDefinition[] {
  if (!cursor.accept('MEASURES')) return []
  return cursor.list(() => {
    const { start } = cursor
    const expression = cursor.rules.expression(cursor)
    cursor.expect('AS')
    const name = parseIdentifier(cursor)
    return { kind: 'MeasureDefinition', span: cursor.span(start), expression, name }
  })
}

/** Parses an optional `AFTER MATCH SKIP …`. */
export function parseSkip(cursor: TokenCursor): SkipTo | undefined {
  if (!cursor.accept('AFTER')) return undefined
  cursor.expect('MATCH')
  const { start } = cursor
  cursor.expect('SKIP')
  const skip = (position: SkipTo['position'], identifier?: Identifier): SkipTo => ({
    kind: 'SkipTo',
    span: cursor.span(start),
    position,
    identifier,
  })
  if (cursor.accept('PAST')) {
    cursor.expect('LAST', 'ROW')
    return skip('PAST_LAST')
  }
  cursor.expect('TO')
  if (cursor.acceptPair('NEXT', 'ROW')) return skip('NEXT')
  const named = cursor.isIdentifierAt(1)
  if (named && cursor.accept('FIRST')) return skip('FIRST', parseIdentifier(cursor))
  if (named) cursor.accept('LAST')
  return skip('LAST', parseIdentifier(cursor))
}

export function parseSearchMode(cursor: TokenCursor): 'INITIAL' | 'SEEK' | undefined {
  if (cursor.accept('INITIAL')) return 'INITIAL'
  return cursor.accept('SEEK') ? 'SEEK' : undefined
}

/** Parses an optional `SUBSET …`. */
export function parseSubsets(cursor: TokenCursor): SubsetDefinition[] {
  if (!cursor.accept('SUBSET')) return []
  return cursor.list(() => {
    const { start } = cursor
    const name = parseIdentifier(cursor)
    cursor.expect('=')
    const identifiers = cursor.parenthesized(() => cursor.list(parseIdentifier))
    return { kind: 'SubsetDefinition', span: cursor.span(start), name, identifiers }
  })
}

export function parseVariableDefinitions(cursor: TokenCursor): VariableDefinition[] {
  cursor.expect('DEFINE')
  return cursor.list(() => {
    const { start } = cursor
    const name = parseIdentifier(cursor)
    cursor.expect('AS')
    const expression = cursor.rules.expression(cursor)
    return { kind: 'VariableDefinition', span: cursor.span(start), name, expression }
  })
}

/** Parses the pattern in the parentheses after PATTERN. */
export function parsePattern(cursor: TokenCursor): RowPattern {
  return cursor.parenthesized(parseAlternation)
}

function parseAlternation(cursor: TokenCursor): RowPattern {
  return cursor.nested(() => {
    const { start } = cursor
    const first = parseConcatenation(cursor)
    if (!cursor.is('|')) return first
    const patterns = [first]
    while (cursor.accept('|')) patterns.push(parseConcatenation(cursor))
    return { kind: 'PatternAlternation', span: cursor.span(start), patterns }
  })
}

function parseConcatenation(cursor: TokenCursor): RowPattern {
  const { start } = cursor
  const patterns = [parseQuantified(cursor)]
  while (cursor.isOneOf('(', '^', '$', '{-') || cursor.isIdentifier()) patterns.push(parseQuantified(cursor))
  return patterns.length === 1 ? patterns[0]! : { kind: 'PatternConcatenation', span: cursor.span(start), patterns }
}

function parseQuantified(cursor: TokenCursor): RowPattern {
  const { start } = cursor
  const pattern = parsePrimary(cursor)
  const quantifier = parseQuantifier(cursor)
  return quantifier === undefined
    ? pattern
    : { kind: 'QuantifiedPattern', span: cursor.span(start), pattern, quantifier }
}

function parsePrimary(cursor: TokenCursor): RowPattern {
  const { start } = cursor
  if (cursor.accept('^')) return { kind: 'AnchorPattern', span: cursor.span(start), type: 'PARTITION_START' }
  if (cursor.accept('$')) return { kind: 'AnchorPattern', span: cursor.span(start), type: 'PARTITION_END' }
  if (cursor.accept('{-')) {
    const pattern = parseAlternation(cursor)
    cursor.expect('-}')
    return { kind: 'ExcludedPattern', span: cursor.span(start), pattern }
  }
  if (cursor.is('PERMUTE') && cursor.peek(1) === '(') {
    cursor.advance()
    const patterns = cursor.parenthesized(() => cursor.list(parseAlternation))
    return { kind: 'PatternPermutation', span: cursor.span(start), patterns }
  }
  if (cursor.accept('(')) {
    if (cursor.accept(')')) return { kind: 'EmptyPattern', span: cursor.span(start) }
    const pattern = parseAlternation(cursor)
    cursor.expect(')')
    return pattern
  }
  const name = parseIdentifier(cursor)
  return { kind: 'PatternVariable', span: cursor.span(start), name }
}

function parseQuantifier(cursor: TokenCursor): PatternQuantifier | undefined {
  const { start } = cursor
  const quantifier = (
    symbol: PatternQuantifier['symbol'],
    atLeast: string | undefined,
    atMost: string | undefined,
  ): PatternQuantifier => {
    const greedy = !cursor.accept('?')
    return { kind: 'PatternQuantifier', span: cursor.span(start), symbol, atLeast, atMost, greedy }
  }
  if (cursor.accept('*')) return quantifier('*', '0', undefined)
  if (cursor.accept('+')) return quantifier('+', '1', undefined)
  if (cursor.accept('?')) return quantifier('?', '0', '1')
  if (!cursor.accept('{')) return undefined
  const atLeast = parseCount(cursor)
  const exactly = atLeast !== undefined && !cursor.is(',')
  if (!exactly) cursor.expect(',')
  const atMost = exactly ? atLeast : parseCount(cursor)
  cursor.expect('}')
  return quantifier('{}', atLeast, atMost)
}

function parseCount(cursor: TokenCursor): string | undefined {
  if (!cursor.is('INTEGER_VALUE')) return undefined
  const digits = BigInt(cursor.textOf(cursor.index).replaceAll('_', '')).toString()
  cursor.advance()
  return digits
}
