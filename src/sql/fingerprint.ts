import { hash } from 'node:crypto'
import type { ParsedStatement, ValidStatement } from './parsed-statement.ts'
import type { Expression, InPredicate } from './syntax/ast.ts'
import type { QualifiedName } from './syntax/ast-node.ts'
import type { With } from './syntax/ast-query.ts'
import { namesOfTables } from './syntax/names-of-tables.ts'
import { printAnyExpression, printOperand } from './syntax/print-expressions.ts'
import { printName, printQualifiedName } from './syntax/print-names.ts'
import { printAnyQuery } from './syntax/print-query.ts'
import { printAnyStatement } from './syntax/print-statements.ts'
import type { Printer } from './syntax/printing.ts'
import { childrenOf, type AnyNode } from './syntax/tree.ts'

/** The shape of a statement: statements that differ only in their literals have the same. */
export interface Fingerprint {
  /** The version of the algorithm. Only hashes of one version can be compared. */
  readonly version: number
  /** 32 hex digits. */
  readonly hash: string
  /** The statement with `?` in place of literals, on one line; the beginning of a long one. */
  readonly query: string
}

/** Raise it with every change that gives a statement another hash. */
const VERSION = 1

/** The longest text to keep, in characters. The hash covers the whole text. */
const LONGEST_TEXT = 4096

/** The catalog and the schema of the session, in which names of tables are completed. */
export interface NameDefaults {
  readonly catalog?: string | undefined
  readonly schema?: string | undefined
}

/**
 * Makes the fingerprint of a statement from its syntax tree. These make no difference: literals, the length of lists of
 * literals (IN, VALUES, ARRAY), upper and lower case, blanks, comments, redundant parentheses, and whether a table is
 * named with the catalog and the schema of the session. EXECUTE has the fingerprint of the statement that it executes.
 * @returns undefined for a text that is no statement, or is nested too deeply to be printed
 */
export function fingerprintOf(parsed: ParsedStatement, at: NameDefaults): Fingerprint | undefined {
  if (parsed.kind === 'invalid') return undefined
  try {
    return fingerprintOfShape(shapeOf(executedBy(parsed), at))
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** @param shape the whole statement without literals, on one line */
export function fingerprintOfShape(shape: string): Fingerprint {
  return {
    version: VERSION,
    hash: hash('sha256', shape.toLowerCase()).slice(0, 32),
    query: shape.slice(0, LONGEST_TEXT),
  }
}

function executedBy(parsed: ValidStatement): ValidStatement {
  const { tree, inner } = parsed
  if (tree.kind !== 'Execute' && tree.kind !== 'ExecuteImmediate') return parsed
  const executed = inner?.parse()
  return executed?.kind === 'valid' ? executed : parsed
}

function shapeOf({ tree, text }: ValidStatement, at: NameDefaults): string {
  const common = /\bwith\b/i.test(text.sql) ? commonTables(tree) : new Set<string>()
  const tables = common.size > 0 ? new Set(namesOfTables(tree)) : undefined
  const isCommon = ({ parts }: QualifiedName): boolean =>
    parts.length === 1 && common.has(parts[0]!.value.toLowerCase())
  const printer: Printer = {
    expression: (node) => expressionShape(printer, node) ?? printAnyExpression(printer, node),
    query: (node, indent) => printAnyQuery(printer, node, indent),
    statement: (node, indent) => printAnyStatement(printer, node, indent),
    table: (name) => (isCommon(name) && !tables!.has(name) ? printQualifiedName(name) : fullName(name, at)),
  }
  return withoutRepeats(withoutTexts(printer.statement(tree, 0)))
}

/** The names that WITH clauses define, in lower case. */
function commonTables(node: AnyNode, found = new Set<string>()): ReadonlySet<string> {
  if (node.kind === 'With') for (const { name } of (node as With).queries) found.add(name.value.toLowerCase())
  for (const child of childrenOf(node)) commonTables(child, found)
  return found
}

function fullName(name: QualifiedName, { catalog, schema }: NameDefaults): string {
  const { length } = name.parts
  const written = printQualifiedName(name)
  if (length >= 3 || catalog === undefined) return written
  if (length === 2) return `${printName(catalog)}.${written}`
  return schema === undefined ? written : `${printName(catalog)}.${printName(schema)}.${written}`
}

const LITERALS: ReadonlySet<Expression['kind']> = new Set([
  'NullLiteral',
  'BooleanLiteral',
  'LongLiteral',
  'DecimalLiteral',
  'DoubleLiteral',
  'StringLiteral',
  'BinaryLiteral',
])

/** The text of a literal, or of a list that may have literals; undefined for all other expressions. */
function expressionShape(printer: Printer, node: Expression): string | undefined {
  if (LITERALS.has(node.kind)) return '?'
  switch (node.kind) {
    case 'ArithmeticUnaryExpression':
      return isLiteral(node.value) ? '?' : undefined
    case 'InPredicate':
      return inShape(printer, node)
    case 'ArrayConstructor':
      return `ARRAY[${listShape(node.values.map((value) => printOperand(printer, value)))}]`
    default:
      return undefined
  }
}

/**
 * Whether an expression is a literal with any number of signs. It must not make the shape of the operand, because the
 * printer then makes it again: each level of signs and lists would take twice the time of the level below.
 */
function isLiteral(node: Expression): boolean {
  let unsigned = node
  while (unsigned.kind === 'ArithmeticUnaryExpression') unsigned = unsigned.value
  return LITERALS.has(unsigned.kind)
}

function inShape(printer: Printer, { value, valueList }: InPredicate): string | undefined {
  if (valueList.kind === 'SubqueryExpression') return undefined
  return `(${printOperand(printer, value)} IN (${listShape(valueList.values.map((one) => printOperand(printer, one)))}))`
}

/** A list; equal items, such as literals, are printed once. */
function listShape(items: readonly string[]): string {
  return (items.every((item) => item === items[0]) ? items.slice(0, 1) : items).join(', ')
}

/** Replaces the remaining texts in quotes, such as comments and intervals, and puts the statement on one line. */
function withoutTexts(text: string): string {
  return text
    .replaceAll(/"(?:[^"]|"")*"|'(?:[^']|'')*'|\s+/g, (part) => (part[0] === '"' ? part : part[0] === "'" ? '?' : ' '))
    .trim()
}

/** Keeps one of the equal rows of VALUES. */
function withoutRepeats(text: string): string {
  return text.replaceAll(/VALUES (ROW \([?, ]+\)|\?)(?: ?, \1)+/g, 'VALUES $1')
}
