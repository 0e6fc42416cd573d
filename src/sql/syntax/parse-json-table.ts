import type {
  JsonTable,
  JsonTableColumn,
  JsonTableDefaultPlan,
  JsonTablePlanLeaf,
  JsonTableSpecificPlan,
} from './ast-json.ts'
import {
  parseJsonFormat,
  parseJsonPathInvocation,
  parseJsonQueryOptions,
  parseJsonValueBehaviors,
} from './parse-json.ts'
import { parseIdentifier, parseString } from './parse-names.ts'
import { parseType } from './parse-types.ts'
import type { TokenCursor } from './token-cursor.ts'

export function parseJsonTable(cursor: TokenCursor): JsonTable {
  const { start } = cursor
  cursor.expect('JSON_TABLE', '(')
  const pathInvocation = parseJsonPathInvocation(cursor)
  const columns = parseColumns(cursor)
  const plan = cursor.accept('PLAN') ? parsePlan(cursor) : undefined
  let errorBehavior: JsonTable['errorBehavior']
  if (cursor.isOneOf('ERROR', 'EMPTY')) {
    errorBehavior = cursor.expectOneOf('ERROR', 'EMPTY')
    cursor.expect('ON', 'ERROR')
  }
  cursor.expect(')')
  return { kind: 'JsonTable', span: cursor.span(start), pathInvocation, columns, plan, errorBehavior }
}

function parseColumns(cursor: TokenCursor): JsonTableColumn[] {
  cursor.expect('COLUMNS')
  return cursor.parenthesized(() => cursor.list(parseColumn))
}

function isNested(cursor: TokenCursor): boolean {
  const next = cursor.peek(1)
  const string = next === 'PATH' ? cursor.peek(2) : next
  return cursor.is('NESTED') && (string === 'STRING_LITERAL' || string === 'UNICODE_STRING')
}

function parseColumn(cursor: TokenCursor): JsonTableColumn {
  return cursor.nested((): JsonTableColumn => {
    const { start } = cursor
    if (isNested(cursor)) {
      cursor.advance()
      cursor.accept('PATH')
      const jsonPath = parseString(cursor)
      const pathName = cursor.accept('AS') ? parseIdentifier(cursor) : undefined
      const columns = parseColumns(cursor)
      return { kind: 'JsonTableNestedColumns', span: cursor.span(start), jsonPath, pathName, columns }
    }
    const name = parseIdentifier(cursor)
    if (cursor.accept('FOR')) {
      cursor.expect('ORDINALITY')
      return { kind: 'JsonTableOrdinalityColumn', span: cursor.span(start), name }
    }
    const type = parseType(cursor)
    const format = cursor.accept('FORMAT') ? parseJsonFormat(cursor) : undefined
    const jsonPath = cursor.accept('PATH') ? parseString(cursor) : undefined
    if (format === undefined) {
      const behaviors = parseJsonValueBehaviors(cursor)
      return { kind: 'JsonTableValueColumn', span: cursor.span(start), name, type, jsonPath, ...behaviors }
    }
    const options = parseJsonQueryOptions(cursor)
    return { kind: 'JsonTableQueryColumn', span: cursor.span(start), name, type, format, jsonPath, ...options }
  })
}

function parsePlan(cursor: TokenCursor): JsonTableSpecificPlan | JsonTableDefaultPlan {
  const { start } = cursor
  if (!cursor.accept('DEFAULT')) return cursor.parenthesized(parseSpecificPlan)
  cursor.expect('(')
  let parentChild: JsonTableDefaultPlan['parentChild'] = 'OUTER'
  let siblings: JsonTableDefaultPlan['siblings'] = 'UNION'
  const first = cursor.expectOneOf('OUTER', 'INNER', 'UNION', 'CROSS')
  if (first === 'OUTER' || first === 'INNER') {
    parentChild = first
    if (cursor.accept(',')) siblings = cursor.expectOneOf('UNION', 'CROSS')
  } else {
    siblings = first
    if (cursor.accept(',')) parentChild = cursor.expectOneOf('OUTER', 'INNER')
  }
  cursor.expect(')')
  return { kind: 'JsonTableDefaultPlan', span: cursor.span(start), parentChild, siblings }
}

function parseSpecificPlan(cursor: TokenCursor): JsonTableSpecificPlan {
  return cursor.nested((): JsonTableSpecificPlan => {
    const { start } = cursor
    const first = parsePlanPrimary(cursor)
    if (first.kind === 'JsonTablePlanLeaf' && cursor.isOneOf('OUTER', 'INNER')) {
      const type = cursor.expectOneOf('OUTER', 'INNER')
      const child = parsePlanPrimary(cursor)
      return { kind: 'JsonTablePlanParentChild', span: cursor.span(start), type, parent: first, child }
    }
    if (!cursor.isOneOf('UNION', 'CROSS')) return first
    const type = cursor.is('UNION') ? 'UNION' : 'CROSS'
    const siblings = [first]
    while (cursor.accept(type)) siblings.push(parsePlanPrimary(cursor))
    return { kind: 'JsonTablePlanSiblings', span: cursor.span(start), type, siblings }
  })
}

function parsePlanPrimary(cursor: TokenCursor): JsonTableSpecificPlan {
  const { start } = cursor
  if (cursor.is('(')) return cursor.parenthesized(parseSpecificPlan)
  const name = parseIdentifier(cursor)
  const leaf: JsonTablePlanLeaf = { kind: 'JsonTablePlanLeaf', span: cursor.span(start), name }
  return leaf
}
