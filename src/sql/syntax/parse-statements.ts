import type { Explain, ExplainAnalyze, ExplainOption, Statement } from './ast-statements.ts'
import { parseDeny, parseGrant, parseRevoke } from './parse-access.ts'
import { parseAlter } from './parse-alterations.ts'
import {
  parseAnalyze,
  parseCallStatement,
  parseDelete,
  parseInsert,
  parseMerge,
  parseRefresh,
  parseTruncate,
  parseUpdate,
} from './parse-data.ts'
import { parseComment, parseCreate, parseDrop } from './parse-definitions.ts'
import { parseRootQuery } from './parse-query.ts'
import {
  parseDeallocate,
  parseDescribe,
  parseExecute,
  parsePrepare,
  parseReset,
  parseSet,
  parseShow,
  parseTransaction,
  parseUse,
} from './parse-session.ts'
import type { TokenCursor } from './token-cursor.ts'

const productions: Readonly<Record<string, (cursor: TokenCursor) => Statement>> = {
  ALTER: parseAlter,
  ANALYZE: parseAnalyze,
  CALL: parseCallStatement,
  COMMENT: parseComment,
  COMMIT: parseTransaction,
  CREATE: parseCreate,
  DEALLOCATE: parseDeallocate,
  DELETE: parseDelete,
  DENY: parseDeny,
  DESC: parseDescribe,
  DESCRIBE: parseDescribe,
  DROP: parseDrop,
  EXECUTE: parseExecute,
  EXPLAIN: parseExplain,
  GRANT: parseGrant,
  INSERT: parseInsert,
  MERGE: parseMerge,
  PREPARE: parsePrepare,
  REFRESH: parseRefresh,
  RESET: parseReset,
  REVOKE: parseRevoke,
  ROLLBACK: parseTransaction,
  SET: parseSet,
  SHOW: parseShow,
  START: parseTransaction,
  TRUNCATE: parseTruncate,
  UPDATE: parseUpdate,
  USE: parseUse,
}

const queryStarts: ReadonlySet<string> = new Set(['SELECT', 'VALUES', 'TABLE', 'WITH', '('])

export function parseAnyStatement(cursor: TokenCursor): Statement {
  return cursor.nested(() => {
    const production = Object.hasOwn(productions, cursor.type) ? productions[cursor.type] : undefined
    if (production !== undefined) return production(cursor)
    if (queryStarts.has(cursor.type)) return parseRootQuery(cursor)
    for (const word of Object.keys(productions)) cursor.note(`'${word}'`)
    cursor.note("'WITH'")
    cursor.note('<query>')
    return cursor.fail()
  })
}

function parseExplain(cursor: TokenCursor): Explain | ExplainAnalyze {
  const { start } = cursor
  cursor.expect('EXPLAIN')
  if (isAnalyze(cursor)) {
    cursor.advance()
    const verbose = cursor.accept('VERBOSE')
    const statement = cursor.rules.statement(cursor)
    return { kind: 'ExplainAnalyze', span: cursor.span(start), statement, verbose }
  }
  const next = cursor.peek(1)
  const options = cursor.is('(') && (next === 'TYPE' || next === 'FORMAT') ? parseOptions(cursor) : []
  const statement = cursor.rules.statement(cursor)
  return { kind: 'Explain', span: cursor.span(start), statement, options }
}

/** Whether this is EXPLAIN ANALYZE, which is followed by a statement; `EXPLAIN ANALYZE t` explains an ANALYZE. */
function isAnalyze(cursor: TokenCursor): boolean {
  if (!cursor.is('ANALYZE')) return false
  const next = cursor.peek(1)
  if (!cursor.isIdentifierAt(1)) return true
  const startsStatement = next === 'VERBOSE' || Object.hasOwn(productions, next)
  return (
    startsStatement && !['EOF', '.'].includes(cursor.peek(2)) && !(cursor.peek(2) === 'WITH' && cursor.peek(3) === '(')
  )
}

function parseOptions(cursor: TokenCursor): ExplainOption[] {
  return cursor.parenthesized(() =>
    cursor.list((): ExplainOption => {
      const { start } = cursor
      if (cursor.expectOneOf('FORMAT', 'TYPE') === 'FORMAT') {
        const format = cursor.expectOneOf('GRAPHVIZ', 'JSON', 'TEXT')
        return { kind: 'ExplainFormat', span: cursor.span(start), format }
      }
      const type = cursor.expectOneOf('DISTRIBUTED', 'IO', 'LOGICAL', 'VALIDATE')
      return { kind: 'ExplainType', span: cursor.span(start), type }
    }),
  )
}
