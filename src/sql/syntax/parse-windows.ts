import type { FrameBound, Window, WindowDefinition, WindowFrame, WindowSpecification } from './ast.ts'
import type { OrderBy, SortItem } from './ast-query.ts'
import { parseIdentifier } from './parse-names.ts'
import {
  parseMeasures,
  parsePattern,
  parseSearchMode,
  parseSkip,
  parseSubsets,
  parseVariableDefinitions,
} from './parse-patterns.ts'
import type { TokenCursor } from './token-cursor.ts'

/** Whether `OVER w` or `OVER (…)` begins here; `OVER` may also be a name. */
export function isOver(cursor: TokenCursor): boolean {
  return cursor.is('OVER') && (cursor.peek(1) === '(' || cursor.isIdentifierAt(1))
}

export function parseOver(cursor: TokenCursor): Window {
  cursor.expect('OVER')
  const { start } = cursor
  if (cursor.is('(')) return parseWindowSpecification(cursor)
  const name = parseIdentifier(cursor)
  return { kind: 'WindowReference', span: cursor.span(start), name }
}

export function parseWindowDefinition(cursor: TokenCursor): WindowDefinition {
  const { start } = cursor
  const name = parseIdentifier(cursor)
  cursor.expect('AS')
  const window = parseWindowSpecification(cursor)
  return { kind: 'WindowDefinition', span: cursor.span(start), name, window }
}

function parseWindowSpecification(cursor: TokenCursor): WindowSpecification {
  const { start } = cursor
  cursor.expect('(')
  const existingWindowName = isExistingName(cursor) ? parseIdentifier(cursor) : undefined
  const partitionBy = parsePartitionBy(cursor)
  const orderBy = parseOptionalOrderBy(cursor)
  const frame = cursor.is(')') ? undefined : parseFrame(cursor)
  cursor.expect(')')
  return { kind: 'WindowSpecification', span: cursor.span(start), existingWindowName, partitionBy, orderBy, frame }
}

/**
 * Whether the name of an existing window begins here. Words that begin other parts of a window are names only where
 * nothing but a name can stand.
 */
function isExistingName(cursor: TokenCursor): boolean {
  if (!cursor.isIdentifier()) return false
  switch (cursor.type) {
    case 'PARTITION':
      return cursor.peek(1) !== 'BY'
    case 'RANGE':
    case 'ROWS':
    case 'GROUPS':
    case 'MEASURES':
      return [')', 'ORDER'].includes(cursor.peek(1)) || (cursor.peek(1) === 'PARTITION' && cursor.peek(2) === 'BY')
    default:
      return true
  }
}

export function parsePartitionBy(cursor: TokenCursor) {
  if (!cursor.accept('PARTITION')) return []
  cursor.expect('BY')
  return cursor.list(cursor.rules.expression)
}

export function parseOptionalOrderBy(cursor: TokenCursor): OrderBy | undefined {
  return cursor.is('ORDER') ? parseOrderBy(cursor) : undefined
}

export function parseOrderBy(cursor: TokenCursor): OrderBy {
  const { start } = cursor
  cursor.expect('ORDER', 'BY')
  const sortItems = cursor.list(parseSortItem)
  return { kind: 'OrderBy', span: cursor.span(start), sortItems }
}

export function parseSortItem(cursor: TokenCursor): SortItem {
  const { start } = cursor
  const sortKey = cursor.rules.expression(cursor)
  const descending = cursor.accept('DESC')
  if (!descending) cursor.accept('ASC')
  const nullOrdering = cursor.accept('NULLS') ? cursor.expectOneOf('FIRST', 'LAST') : 'UNDEFINED'
  const ordering = descending ? 'DESCENDING' : 'ASCENDING'
  return { kind: 'SortItem', span: cursor.span(start), sortKey, ordering, nullOrdering }
}

function parseFrame(cursor: TokenCursor): WindowFrame {
  const { start } = cursor
  const measures = parseMeasures(cursor)
  const type = cursor.expectOneOf('RANGE', 'ROWS', 'GROUPS')
  const between = cursor.accept('BETWEEN')
  const from = parseFrameBound(cursor)
  if (between) cursor.expect('AND')
  const end = between ? parseFrameBound(cursor) : undefined
  const afterMatchSkipTo = parseSkip(cursor)
  const patternSearchMode = parseSearchMode(cursor)
  const pattern = cursor.accept('PATTERN') ? parsePattern(cursor) : undefined
  const subsets = parseSubsets(cursor)
  const variableDefinitions = cursor.is('DEFINE') ? parseVariableDefinitions(cursor) : []
  return {
    kind: 'WindowFrame',
    span: cursor.span(start),
    type,
    start: from,
    end,
    measures,
    afterMatchSkipTo,
    patternSearchMode,
    pattern,
    subsets,
    variableDefinitions,
  }
}

function parseFrameBound(cursor: TokenCursor): FrameBound {
  const { start } = cursor
  const next = cursor.peek(1)
  if (cursor.is('UNBOUNDED') && (next === 'PRECEDING' || next === 'FOLLOWING')) {
    cursor.advance()
    cursor.advance()
    const type = next === 'PRECEDING' ? 'UNBOUNDED_PRECEDING' : 'UNBOUNDED_FOLLOWING'
    return { kind: 'FrameBound', span: cursor.span(start), type, value: undefined }
  }
  if (cursor.acceptPair('CURRENT', 'ROW')) {
    return { kind: 'FrameBound', span: cursor.span(start), type: 'CURRENT_ROW', value: undefined }
  }
  const value = cursor.rules.expression(cursor)
  const type = cursor.expectOneOf('FOLLOWING', 'PRECEDING')
  return { kind: 'FrameBound', span: cursor.span(start), type, value }
}
