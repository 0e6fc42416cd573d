import type { Expression } from './ast.ts'
import type { DataType } from './ast-types.ts'
import type { Statement } from './ast-statements.ts'
import { printAnyExpression } from './print-expressions.ts'
import { printQualifiedName, printType as type } from './print-names.ts'
import { printAnyQuery } from './print-query.ts'
import { printAnyStatement } from './print-statements.ts'
import type { Printer } from './printing.ts'

const printer: Printer = {
  expression: (node) => printAnyExpression(printer, node),
  query: (node, indent) => printAnyQuery(printer, node, indent),
  statement: (node, indent) => printAnyStatement(printer, node, indent),
  table: printQualifiedName,
}

/**
 * Prints a statement as SQL in the layout of Trino's SqlFormatter (PREPARE's echo, SHOW CREATE VIEW). Every compound
 * expression is in parentheses. Parsing the printed text gives the same tree, except for positions.
 */
export function printStatement(statement: Statement): string {
  return printer.statement(statement, 0).trimEnd()
}

export function printExpression(expression: Expression): string {
  return printer.expression(expression)
}

export function printTypeSyntax(node: DataType): string {
  return type(node)
}
