import { unreachable } from '../../shared/unreachable.ts'
import type {
  Expression,
  FunctionCall,
  InListExpression,
  IntervalLiteral,
  Listagg,
  SubqueryExpression,
  WhenClause,
} from './ast.ts'
import { printJson } from './print-json.ts'
import {
  isKeywordName,
  printIdentifier,
  printName,
  printQualifiedName,
  printString,
  printText,
  printType,
} from './print-names.ts'
import { printOrderBy, printWindow } from './print-windows.ts'
import { phrase, type Printer } from './printing.ts'

/** One flat switch with a case for each kind of expression, hence its length. */
export function printAnyExpression(printer: Printer, node: Expression): string {
  const print = (child: Expression): string => printOperand(printer, child)
  switch (node.kind) {
    case 'NullLiteral':
      return 'null'
    case 'BooleanLiteral':
      return String(node.value)
    case 'LongLiteral':
      return node.text
    case 'DecimalLiteral':
    case 'DoubleLiteral':
      return node.value
    case 'StringLiteral':
      return printString(node)
    case 'BinaryLiteral':
      return `X'${node.hex}'`
    case 'GenericLiteral':
      return `${printName(node.type)} ${printText(node.value)}`
    case 'IntervalLiteral':
      return printInterval(node)
    case 'Identifier':
      return printIdentifier(node)
    case 'Parameter':
      return '?'
    case 'LogicalExpression':
      return `(${node.terms.map(print).join(` ${node.operator} `)})`
    case 'NotExpression':
      return `(NOT ${print(node.value)})`
    case 'ComparisonExpression':
      return `(${print(node.left)} ${node.operator} ${print(node.right)})`
    case 'QuantifiedComparisonExpression':
      return `(${print(node.value)} ${node.operator} ${node.quantifier} ${printSubquery(printer, node.subquery)})`
    case 'BetweenPredicate':
      return `(${print(node.value)} BETWEEN ${print(node.min)} AND ${print(node.max)})`
    case 'InPredicate':
      return `(${print(node.value)} IN ${printInList(printer, node.valueList)})`
    case 'LikePredicate':
      return `(${phrase(print(node.value), 'LIKE', print(node.pattern), node.escape && `ESCAPE ${print(node.escape)}`)})`
    case 'IsNullPredicate':
      return `(${print(node.value)} IS NULL)`
    case 'IsNotNullPredicate':
      return `(${print(node.value)} IS NOT NULL)`
    case 'ExistsPredicate':
      return `(EXISTS ${printSubquery(printer, node.subquery)})`
    case 'SubqueryExpression':
      return printSubquery(printer, node)
    case 'ArithmeticUnaryExpression':
      return printSigned(node.sign, print(node.value))
    case 'ArithmeticBinaryExpression':
      return `(${print(node.left)} ${node.operator} ${print(node.right)})`
    case 'ConcatExpression':
      return `(${print(node.left)} || ${print(node.right)})`
    case 'AtTimeZone': {
      const zone = node.timeZone.kind === 'StringLiteral' ? printString(node.timeZone) : printInterval(node.timeZone)
      return `(${printBase(printer, node.value)} AT TIME ZONE ${zone})`
    }
    case 'FunctionCall':
      return printCall(printer, node)
    case 'Listagg':
      return printListagg(printer, node)
    case 'LabelDereference':
      return `${printIdentifier(node.label)}.*`
    case 'WindowOperation':
      return `${printIdentifier(node.name)} OVER ${printWindow(printer, node.window)}`
    case 'LambdaExpression':
      return `(${node.parameters.map(printIdentifier).join(', ')}) -> ${print(node.body)}`
    case 'IfExpression':
      return printArguments(printer, 'IF', [node.condition, node.trueValue, node.falseValue])
    case 'NullIfExpression':
      return printArguments(printer, 'NULLIF', [node.first, node.second])
    case 'CoalesceExpression':
      return printArguments(printer, 'COALESCE', node.operands)
    case 'TryExpression':
      return printArguments(printer, 'TRY', [node.value])
    case 'Format':
      return printArguments(printer, 'FORMAT', node.arguments)
    case 'SimpleCaseExpression':
      return printCase(printer, node.operand, node.whenClauses, node.defaultValue)
    case 'SearchedCaseExpression':
      return printCase(printer, undefined, node.whenClauses, node.defaultValue)
    case 'Cast':
      return `${node.safe ? 'TRY_CAST' : 'CAST'}(${print(node.expression)} AS ${printType(node.type)})`
    case 'ArrayConstructor':
      return `ARRAY[${node.values.map(print).join(',')}]`
    case 'Row':
      return `ROW (${node.items.map(print).join(', ')})`
    case 'SubscriptExpression':
      return `${printBase(printer, node.base)}[${print(node.index)}]`
    case 'DereferenceExpression':
      return `${printBase(printer, node.base)}.${printIdentifier(node.field)}`
    case 'Trim': {
      const character = node.character && print(node.character)
      return `trim(${phrase(node.specification, character, 'FROM', print(node.source))})`
    }
    case 'Extract':
      return `EXTRACT(${node.field} FROM ${print(node.expression)})`
    case 'Normalize':
      return `NORMALIZE(${print(node.value)}, ${node.form})`
    case 'CurrentDate':
      return 'CURRENT_DATE'
    case 'CurrentTime':
      return `CURRENT_TIME${printPrecision(node.precision)}`
    case 'CurrentTimestamp':
      return `CURRENT_TIMESTAMP${printPrecision(node.precision)}`
    case 'LocalTime':
      return `LOCALTIME${printPrecision(node.precision)}`
    case 'LocalTimestamp':
      return `LOCALTIMESTAMP${printPrecision(node.precision)}`
    case 'CurrentCatalog':
      return 'CURRENT_CATALOG'
    case 'CurrentSchema':
      return 'CURRENT_SCHEMA'
    case 'CurrentPath':
      return 'CURRENT_PATH'
    case 'CurrentUser':
      return 'CURRENT_USER'
    case 'GroupingOperation':
      return `GROUPING (${node.columns.map(printQualifiedName).join(', ')})`
    case 'JsonExists':
    case 'JsonValue':
    case 'JsonQuery':
    case 'JsonObject':
    case 'JsonArray':
      return printJson(printer, node)
    default:
      return unreachable(node)
  }
}

/** Prints an expression inside another one. A lambda extends to the end of the text, so it is put in parentheses. */
export function printOperand(printer: Printer, node: Expression): string {
  const text = printer.expression(node)
  return node.kind === 'LambdaExpression' ? `(${text})` : text
}

/** Prints an expression where a keyword could also stand: a name that is a keyword is put in parentheses. */
export function printGuarded(printer: Printer, node: Expression): string {
  const text = printOperand(printer, node)
  const isWord = (node.kind === 'Identifier' && isKeywordName(node)) || /^(?:all|auto)\b/i.test(text)
  return isWord ? `(${text})` : text
}

/** Prints the expression before `[`, `.` and AT TIME ZONE. */
function printBase(printer: Printer, node: Expression): string {
  switch (node.kind) {
    case 'LongLiteral':
    case 'DecimalLiteral':
    case 'DoubleLiteral':
    case 'ArithmeticUnaryExpression':
      return `(${printer.expression(node)})`
    default:
      return printGuarded(printer, node)
  }
}

function printPrecision(precision: number | undefined): string {
  return precision === undefined ? '' : `(${precision})`
}

/** Prints a sign: `--` would begin a comment, and a minus directly before a number would become part of the number. */
function printSigned(sign: '+' | '-', value: string): string {
  if (/^[-+]/.test(value)) return `${sign} ${value}`
  return sign === '-' && /^[0-9.]/.test(value) ? `-(${value})` : sign + value
}

export function printInterval(node: IntervalLiteral): string {
  const sign = node.sign === 'NEGATIVE' ? '- ' : ''
  const to = node.endField === undefined ? '' : ` TO ${node.endField}`
  return `INTERVAL ${sign}${printText(node.value)} ${node.startField}${to}`
}

function printSubquery(printer: Printer, node: SubqueryExpression): string {
  return `(${printer.query(node.query, 0).trimEnd()}\n)`
}

function printInList(printer: Printer, node: InListExpression | SubqueryExpression): string {
  if (node.kind === 'SubqueryExpression') return printSubquery(printer, node)
  return `(${node.values.map((value) => printOperand(printer, value)).join(', ')})`
}

function printArguments(printer: Printer, name: string, list: readonly (Expression | undefined)[]): string {
  return `${name}(${printList(printer, list)})`
}

/**
 * Prints a call's arguments. The end of the argument ends a lambda, and ALL before the first argument would be a
 * quantifier.
 */
function printList(printer: Printer, list: readonly (Expression | undefined)[]): string {
  return list
    .filter((argument) => argument !== undefined)
    .map((argument, index) => {
      if (argument.kind === 'LambdaExpression') return printer.expression(argument)
      return index === 0 ? printGuarded(printer, argument) : printer.expression(argument)
    })
    .join(', ')
}

function printFilter(printer: Printer, filter: Expression | undefined): string | undefined {
  return filter && `FILTER (WHERE ${printOperand(printer, filter)})`
}

function printCall(printer: Printer, node: FunctionCall): string {
  const list = node.star ? '*' : printList(printer, node.arguments)
  const inside = phrase(node.distinct && 'DISTINCT', list, node.orderBy && printOrderBy(printer, node.orderBy))
  return phrase(
    node.processingMode?.mode,
    `${printQualifiedName(node.name)}(${inside})`,
    printFilter(printer, node.filter),
    node.nullTreatment && `${node.nullTreatment} NULLS`,
    node.window && `OVER ${printWindow(printer, node.window)}`,
  )
}

function printListagg(printer: Printer, node: Listagg): string {
  const value = printGuarded(printer, node.value)
  const separator = node.separator === undefined ? '' : `, ${printString(node.separator)}`
  let overflow: string | undefined
  if (node.overflow?.behavior === 'ERROR') overflow = 'ON OVERFLOW ERROR'
  if (node.overflow?.behavior === 'TRUNCATE') {
    const { filler, withCount } = node.overflow
    const count = withCount ? 'WITH COUNT' : 'WITHOUT COUNT'
    overflow = phrase('ON OVERFLOW TRUNCATE', filler && printString(filler), count)
  }
  return phrase(
    `LISTAGG(${phrase(node.distinct && 'DISTINCT', value + separator, overflow)})`,
    `WITHIN GROUP (${printOrderBy(printer, node.orderBy)})`,
    printFilter(printer, node.filter),
    node.window && `OVER ${printWindow(printer, node.window)}`,
  )
}

function printCase(
  printer: Printer,
  operand: Expression | undefined,
  clauses: readonly WhenClause[],
  otherwise: Expression | undefined,
): string {
  const print = (child: Expression): string => printOperand(printer, child)
  const whens = clauses.map((clause) => `WHEN ${print(clause.operand)} THEN ${print(clause.result)}`)
  return `(${phrase('CASE', operand && print(operand), ...whens, otherwise && `ELSE ${print(otherwise)}`, 'END')})`
}
