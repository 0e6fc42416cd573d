import type { Identifier } from './ast-node.ts'
import type {
  ConditionalBlock,
  ControlStatement,
  FunctionSpecification,
  ParameterDeclaration,
  ReturnsClause,
  RoutineCharacteristic,
  VariableDeclaration,
} from './ast-routines.ts'
import { parseExpression, parseValueExpression } from './parse-expressions.ts'
import { parseIdentifier, parseQualifiedName, parseString } from './parse-names.ts'
import { parseType } from './parse-types.ts'
import type { TokenCursor } from './token-cursor.ts'

export function parseFunctionSpecification(cursor: TokenCursor): FunctionSpecification {
  const { start } = cursor
  cursor.expect('FUNCTION')
  const name = parseQualifiedName(cursor)
  const parameters = parseParameters(cursor)
  const returns = parseReturns(cursor)
  const characteristics: RoutineCharacteristic[] = []
  for (;;) {
    const characteristic = parseCharacteristic(cursor)
    if (characteristic === undefined) break
    characteristics.push(characteristic)
  }
  const statement = parseControlStatement(cursor)
  return {
    kind: 'FunctionSpecification',
    span: cursor.span(start),
    name,
    parameters,
    returns,
    characteristics,
    statement,
  }
}

function parseReturns(cursor: TokenCursor): ReturnsClause {
  const { start } = cursor
  cursor.expect('RETURNS')
  const type = parseType(cursor)
  return { kind: 'ReturnsClause', span: cursor.span(start), type }
}

/** Parses `(a bigint, varchar)`. */
export function parseParameters(cursor: TokenCursor): ParameterDeclaration[] {
  return cursor.parenthesized(() => (cursor.is(')') ? [] : cursor.list(parseParameter)))
}

function parseParameter(cursor: TokenCursor): ParameterDeclaration {
  const { start } = cursor
  const name = isNamed(cursor) ? parseIdentifier(cursor) : undefined
  const type = parseType(cursor)
  return { kind: 'ParameterDeclaration', span: cursor.span(start), name, type }
}

/** Whether a parameter has a name. Two words are a name and a type, except for types of two words. */
function isNamed(cursor: TokenCursor): boolean {
  if (!cursor.isIdentifierAt(0) || !cursor.isIdentifierAt(1)) return false
  const next = cursor.peek(1)
  if (cursor.type === 'DOUBLE' && next === 'PRECISION') return cursor.isIdentifierAt(2)
  if (cursor.type === 'INTERVAL') return !['YEAR', 'MONTH', 'DAY', 'HOUR', 'MINUTE', 'SECOND'].includes(next)
  if (cursor.type === 'TIME' || cursor.type === 'TIMESTAMP') return next !== 'WITHOUT'
  return next !== 'ARRAY' || cursor.peek(2) === '(' || cursor.peek(2) === '<'
}

function parseCharacteristic(cursor: TokenCursor): RoutineCharacteristic | undefined {
  const { start } = cursor
  if (cursor.accept('LANGUAGE')) {
    const language = parseIdentifier(cursor)
    return { kind: 'LanguageCharacteristic', span: cursor.span(start), language }
  }
  if (cursor.is('DETERMINISTIC') || cursor.isPair('NOT', 'DETERMINISTIC')) {
    const deterministic = !cursor.accept('NOT')
    cursor.expect('DETERMINISTIC')
    return { kind: 'DeterministicCharacteristic', span: cursor.span(start), deterministic }
  }
  if (cursor.is('RETURNS') || cursor.is('CALLED')) {
    const calledOnNull = cursor.type === 'CALLED'
    cursor.advance()
    if (!calledOnNull) cursor.expect('NULL')
    cursor.expect('ON', 'NULL', 'INPUT')
    return { kind: 'NullInputCharacteristic', span: cursor.span(start), calledOnNull }
  }
  if (cursor.accept('SECURITY')) {
    const security = cursor.expectOneOf('DEFINER', 'INVOKER')
    return { kind: 'SecurityCharacteristic', span: cursor.span(start), security }
  }
  if (cursor.accept('COMMENT')) {
    const comment = parseString(cursor)
    return { kind: 'CommentCharacteristic', span: cursor.span(start), comment }
  }
  return undefined
}

function parseControlStatement(cursor: TokenCursor): ControlStatement {
  return cursor.nested(parseControl)
}

function parseControl(cursor: TokenCursor): ControlStatement {
  const { start } = cursor
  switch (cursor.type) {
    case 'RETURN': {
      cursor.advance()
      const value = parseValueExpression(cursor)
      return { kind: 'ReturnStatement', span: cursor.span(start), value }
    }
    case 'SET': {
      cursor.advance()
      const target = parseIdentifier(cursor)
      cursor.expect('=')
      const value = parseExpression(cursor)
      return { kind: 'AssignmentStatement', span: cursor.span(start), target, value }
    }
    case 'CASE':
      return parseCase(cursor)
    case 'IF':
      return parseIf(cursor)
    case 'ITERATE':
    case 'LEAVE': {
      const kind = cursor.type === 'LEAVE' ? 'LeaveStatement' : 'IterateStatement'
      cursor.advance()
      const label = parseIdentifier(cursor)
      return { kind, span: cursor.span(start), label } as ControlStatement
    }
    case 'BEGIN':
      return parseCompound(cursor)
    default:
      return parseLoop(cursor)
  }
}

/** Parses `statement;` repeatedly, up to a word that cannot begin a statement. */
function parseStatements(cursor: TokenCursor): ControlStatement[] {
  const statements: ControlStatement[] = []
  do {
    statements.push(parseControlStatement(cursor))
    cursor.expect(';')
  } while (!cursor.isOneOf('END', 'ELSE', 'ELSEIF', 'WHEN', 'UNTIL'))
  return statements
}

function parseBlock(cursor: TokenCursor): ConditionalBlock {
  const { start } = cursor
  const condition = parseExpression(cursor)
  cursor.expect('THEN')
  const statements = parseStatements(cursor)
  return { kind: 'ConditionalBlock', span: cursor.span(start), condition, statements }
}

function parseElse(cursor: TokenCursor): ControlStatement[] | undefined {
  return cursor.accept('ELSE') ? parseStatements(cursor) : undefined
}

function parseCase(cursor: TokenCursor): ControlStatement {
  const { start } = cursor
  cursor.expect('CASE')
  const operand = cursor.is('WHEN') ? undefined : parseExpression(cursor)
  const whenClauses: ConditionalBlock[] = []
  do {
    cursor.expect('WHEN')
    whenClauses.push(parseBlock(cursor))
  } while (cursor.is('WHEN'))
  const elseClause = parseElse(cursor)
  cursor.expect('END', 'CASE')
  return { kind: 'CaseStatement', span: cursor.span(start), operand, whenClauses, elseClause }
}

function parseIf(cursor: TokenCursor): ControlStatement {
  const { start } = cursor
  cursor.expect('IF')
  const branches = [parseBlock(cursor)]
  while (cursor.accept('ELSEIF')) branches.push(parseBlock(cursor))
  const elseClause = parseElse(cursor)
  cursor.expect('END', 'IF')
  return { kind: 'IfStatement', span: cursor.span(start), branches, elseClause }
}

function parseCompound(cursor: TokenCursor): ControlStatement {
  const { start } = cursor
  cursor.expect('BEGIN')
  const variables: VariableDeclaration[] = []
  while (cursor.is('DECLARE')) {
    variables.push(parseVariable(cursor))
    cursor.expect(';')
  }
  const statements = cursor.is('END') ? [] : parseStatements(cursor)
  cursor.expect('END')
  return { kind: 'CompoundStatement', span: cursor.span(start), variables, statements }
}

/** Parses `DECLARE a, b bigint DEFAULT 1`. */
function parseVariable(cursor: TokenCursor): VariableDeclaration {
  const { start } = cursor
  cursor.expect('DECLARE')
  const names = cursor.list(parseIdentifier)
  const type = parseType(cursor)
  const defaultValue = cursor.accept('DEFAULT') ? parseValueExpression(cursor) : undefined
  return { kind: 'VariableDeclaration', span: cursor.span(start), names, type, defaultValue }
}

function parseLoop(cursor: TokenCursor): ControlStatement {
  const { start } = cursor
  let label: Identifier | undefined
  if (cursor.isIdentifier() && cursor.peek(1) === ':') {
    label = parseIdentifier(cursor)
    cursor.advance()
  }
  switch (cursor.expectOneOf('LOOP', 'REPEAT', 'WHILE')) {
    case 'LOOP': {
      const statements = parseStatements(cursor)
      cursor.expect('END', 'LOOP')
      return { kind: 'LoopStatement', span: cursor.span(start), label, statements }
    }
    case 'REPEAT': {
      const statements = parseStatements(cursor)
      cursor.expect('UNTIL')
      const condition = parseExpression(cursor)
      cursor.expect('END', 'REPEAT')
      return { kind: 'RepeatStatement', span: cursor.span(start), label, statements, condition }
    }
    case 'WHILE': {
      const condition = parseExpression(cursor)
      cursor.expect('DO')
      const statements = parseStatements(cursor)
      cursor.expect('END', 'WHILE')
      return { kind: 'WhileStatement', span: cursor.span(start), label, condition, statements }
    }
  }
}
