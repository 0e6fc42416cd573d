import type { Expression } from './ast.ts'
import type { Identifier, QualifiedName } from './ast-node.ts'
import type { PatternRecognitionRelation } from './ast-patterns.ts'
import type { Join, JoinCriteria, QueryPeriod, Relation, Table } from './ast-query.ts'
import { isRowCount } from './parse-literals.ts'
import { parseColumnAliases, parseIdentifier, parseQualifiedName } from './parse-names.ts'
import {
  parseMeasures,
  parsePattern,
  parseSearchMode,
  parseSkip,
  parseSubsets,
  parseVariableDefinitions,
} from './parse-patterns.ts'
import { parseJsonTable } from './parse-json-table.ts'
import { parseTableFunction } from './parse-table-functions.ts'
import { parseOptionalOrderBy, parsePartitionBy } from './parse-windows.ts'
import type { TokenCursor } from './token-cursor.ts'

/** Parses `FROM a, b`: implicit joins of relations. */
export function parseFrom(cursor: TokenCursor): Relation {
  const { start } = cursor
  let left = parseRelation(cursor)
  while (cursor.accept(',')) {
    const right = parseRelation(cursor)
    const criteria = undefined
    left = { kind: 'Join', span: cursor.span(start), type: 'IMPLICIT', left, right, criteria }
    cursor.grow()
  }
  return left
}

export function parseRelation(cursor: TokenCursor): Relation {
  return cursor.nested(parseJoins)
}

const joinTypes = ['INNER', 'LEFT', 'RIGHT', 'FULL'] as const

function parseJoins(cursor: TokenCursor): Relation {
  const { start } = cursor
  let left = parseSampled(cursor)
  while (isJoin(cursor)) left = parseJoin(cursor, left, start)
  return left
}

function isJoin(cursor: TokenCursor): boolean {
  return cursor.isOneOf('JOIN', 'CROSS', 'NATURAL', ...joinTypes)
}

/** Parses one join of the relation `left`, which began at `start`. */
function parseJoin(cursor: TokenCursor, left: Relation, start: number): Join {
  const joinStart = cursor.start
  let type: Join['type'] = 'CROSS'
  let right: Relation
  let criteria: JoinCriteria | undefined
  if (cursor.accept('CROSS')) {
    cursor.expect('JOIN')
    right = parseSampled(cursor)
  } else if (cursor.accept('NATURAL')) {
    criteria = { kind: 'NaturalJoin', span: cursor.span(joinStart) }
    type = parseJoinType(cursor)
    right = parseSampled(cursor)
  } else {
    type = parseJoinType(cursor)
    right = cursor.nested(parseJoinedRelation)
    criteria = parseCriteria(cursor)
  }
  cursor.grow()
  return { kind: 'Join', span: cursor.span(start), type, left, right, criteria }
}

function parseJoinType(cursor: TokenCursor): Join['type'] {
  let type: Join['type'] = 'INNER'
  if (cursor.isOneOf(...joinTypes)) {
    type = cursor.expectOneOf(...joinTypes)
    if (type !== 'INNER') cursor.accept('OUTER')
  }
  cursor.expect('JOIN')
  return type
}

/**
 * Parses the right side of a join with criteria. It includes further joins up to its own ON:
 * `a JOIN b JOIN c ON … ON …`.
 */
function parseJoinedRelation(cursor: TokenCursor): Relation {
  const { start } = cursor
  let right = parseSampled(cursor)
  while (!cursor.is('ON') && !cursor.is('USING')) {
    if (!isJoin(cursor)) cursor.fail()
    right = parseJoin(cursor, right, start)
  }
  return right
}

function parseCriteria(cursor: TokenCursor): JoinCriteria {
  const { start } = cursor
  if (cursor.accept('ON')) {
    const expression = cursor.rules.expression(cursor)
    return { kind: 'JoinOn', span: cursor.span(start), expression }
  }
  cursor.expect('USING')
  const columns = parseColumnAliases(cursor)
  return { kind: 'JoinUsing', span: cursor.span(start), columns }
}

function parseSampled(cursor: TokenCursor): Relation {
  const { start } = cursor
  const relation = parsePatternRecognition(cursor)
  const sampled = cursor.is('TABLESAMPLE') && (cursor.peek(1) === 'BERNOULLI' || cursor.peek(1) === 'SYSTEM')
  if (!sampled) return relation
  cursor.advance()
  const type = cursor.expectOneOf('BERNOULLI', 'SYSTEM')
  const samplePercentage = cursor.parenthesized(cursor.rules.expression)
  return { kind: 'SampledRelation', span: cursor.span(start), relation, type, samplePercentage }
}

/** Whether the next clause begins here. Its first word is an alias only if that clause does not follow. */
function isClause(cursor: TokenCursor): boolean {
  switch (cursor.type) {
    case 'LIMIT':
      return isRowCount(cursor.peek(1)) || cursor.peek(1) === 'ALL'
    case 'OFFSET':
      return isRowCount(cursor.peek(1))
    case 'FETCH':
      return cursor.peek(1) === 'FIRST' || cursor.peek(1) === 'NEXT'
    case 'WINDOW':
      return cursor.isIdentifierAt(1) && cursor.peek(2) === 'AS'
    default:
      return false
  }
}

/** Parses an alias, with or without AS. @param isEnd recognizes further words that begin the next clause */
export function parseOptionalAlias(
  cursor: TokenCursor,
  isEnd?: (cursor: TokenCursor) => boolean,
): Identifier | undefined {
  if (cursor.accept('AS')) return parseIdentifier(cursor)
  if (!cursor.isIdentifier() || isClause(cursor) || isEnd?.(cursor)) return undefined
  return parseIdentifier(cursor)
}

function isRelationClause(cursor: TokenCursor): boolean {
  const next = cursor.peek(1)
  if (cursor.type === 'TABLESAMPLE') return next === 'BERNOULLI' || next === 'SYSTEM'
  if (cursor.type !== 'MATCH_RECOGNIZE' || next !== '(') return false
  return !(cursor.isIdentifierAt(2) && (cursor.peek(3) === ',' || cursor.peek(3) === ')'))
}

function parseAliased(
  cursor: TokenCursor,
  relation: Relation,
  start: number,
  isEnd: (cursor: TokenCursor) => boolean,
): Relation {
  const alias = parseOptionalAlias(cursor, isEnd)
  if (alias === undefined) return relation
  const columnNames = cursor.is('(') ? parseColumnAliases(cursor) : undefined
  return { kind: 'AliasedRelation', span: cursor.span(start), relation, alias, columnNames }
}

function parsePatternRecognition(cursor: TokenCursor): Relation {
  const { start } = cursor
  const input = parseAliased(cursor, parseRelationPrimary(cursor), start, isRelationClause)
  if (!cursor.is('MATCH_RECOGNIZE') || cursor.peek(1) !== '(') return input
  cursor.advance()
  cursor.advance()
  const partitionBy = parsePartitionBy(cursor)
  const orderBy = parseOptionalOrderBy(cursor)
  const measures = parseMeasures(cursor)
  const rowsPerMatch = parseRowsPerMatch(cursor)
  const afterMatchSkipTo = parseSkip(cursor)
  const patternSearchMode = parseSearchMode(cursor)
  cursor.expect('PATTERN')
  const pattern = parsePattern(cursor)
  const subsets = parseSubsets(cursor)
  const variableDefinitions = parseVariableDefinitions(cursor)
  cursor.expect(')')
  const recognition: PatternRecognitionRelation = {
    kind: 'PatternRecognitionRelation',
    span: cursor.span(start),
    input,
    partitionBy,
    orderBy,
    measures,
    rowsPerMatch,
    afterMatchSkipTo,
    patternSearchMode,
    pattern,
    subsets,
    variableDefinitions,
  }
  return parseAliased(cursor, recognition, start, isRelationClause)
}

function parseRowsPerMatch(cursor: TokenCursor): PatternRecognitionRelation['rowsPerMatch'] {
  if (cursor.accept('ONE')) {
    cursor.expect('ROW', 'PER', 'MATCH')
    return 'ONE'
  }
  if (!cursor.accept('ALL')) return undefined
  cursor.expect('ROWS', 'PER', 'MATCH')
  if (cursor.accept('WITH')) {
    cursor.expect('UNMATCHED', 'ROWS')
    return 'ALL_WITH_UNMATCHED'
  }
  const omits = cursor.is('OMIT')
  if (omits || cursor.is('SHOW')) {
    cursor.advance()
    cursor.expect('EMPTY', 'MATCHES')
  }
  return omits ? 'ALL_OMIT_EMPTY' : 'ALL_SHOW_EMPTY'
}

function parseRelationPrimary(cursor: TokenCursor): Relation {
  const { start } = cursor
  if (cursor.is('(')) {
    if (cursor.holdsQuery()) {
      const query = cursor.parenthesized(cursor.rules.query)
      return { kind: 'TableSubquery', span: cursor.span(start), query }
    }
    return cursor.parenthesized(parseRelation)
  }
  if (cursor.accept('UNNEST')) {
    const expressions = cursor.parenthesized(() => cursor.list(cursor.rules.expression))
    const withOrdinality = cursor.acceptPair('WITH', 'ORDINALITY')
    return { kind: 'Unnest', span: cursor.span(start), expressions, withOrdinality }
  }
  if (cursor.is('LATERAL') && cursor.peek(1) === '(') {
    cursor.advance()
    const query = cursor.parenthesized(cursor.rules.query)
    return { kind: 'Lateral', span: cursor.span(start), query }
  }
  if (cursor.is('TABLE')) return parseTableFunction(cursor)
  if (cursor.is('JSON_TABLE')) return parseJsonTable(cursor)
  return parseTable(cursor)
}

function parseTable(cursor: TokenCursor): Table {
  const { start } = cursor
  const name: QualifiedName = parseQualifiedName(cursor)
  const queryPeriod = cursor.is('FOR') ? parseQueryPeriod(cursor) : undefined
  return { kind: 'Table', span: cursor.span(start), name, queryPeriod }
}

function parseQueryPeriod(cursor: TokenCursor): QueryPeriod {
  const { start } = cursor
  cursor.expect('FOR')
  const rangeType = cursor.expectOneOf('TIMESTAMP', 'VERSION')
  cursor.expect('AS', 'OF')
  const end: Expression = cursor.rules.valueExpression(cursor)
  return { kind: 'QueryPeriod', span: cursor.span(start), rangeType, end }
}
