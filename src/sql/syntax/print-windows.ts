import type { Expression, FrameBound, Window, WindowFrame } from './ast.ts'
import type { OrderBy, SortItem } from './ast-query.ts'
import { isKeywordName, printIdentifier } from './print-names.ts'
import { printMeasures, printRowPattern, printSkip, printSubsets, printVariables } from './print-patterns.ts'
import { phrase, type Printer } from './printing.ts'

export function printWindow(printer: Printer, node: Window): string {
  if (node.kind === 'WindowReference') return printIdentifier(node.name)
  const inside = phrase(
    node.existingWindowName && printIdentifier(node.existingWindowName),
    printPartition(printer, node.partitionBy),
    node.orderBy && printOrderBy(printer, node.orderBy),
    node.frame && printFrame(printer, node.frame),
  )
  return `(${inside})`
}

export function printPartition(printer: Printer, columns: readonly Expression[]): string {
  return columns.length === 0 ? '' : `PARTITION BY ${columns.map((column) => printer.expression(column)).join(', ')}`
}

export function printOrderBy(printer: Printer, node: OrderBy): string {
  return `ORDER BY ${node.sortItems.map((item) => printSortItem(printer, item)).join(', ')}`
}

export function printSortItem(printer: Printer, node: SortItem): string {
  return phrase(
    printer.expression(node.sortKey),
    node.ordering === 'ASCENDING' ? 'ASC' : 'DESC',
    node.nullOrdering !== 'UNDEFINED' && `NULLS ${node.nullOrdering}`,
  )
}

function printFrame(printer: Printer, node: WindowFrame): string {
  const start = printBound(printer, node.start)
  return phrase(
    printMeasures(printer, node.measures),
    node.type,
    node.end === undefined ? start : `BETWEEN ${start} AND ${printBound(printer, node.end)}`,
    node.afterMatchSkipTo && printSkip(node.afterMatchSkipTo),
    node.patternSearchMode,
    node.pattern && `PATTERN (${printRowPattern(node.pattern)})`,
    printSubsets(node.subsets),
    printVariables(printer, node.variableDefinitions),
  )
}

function printBound(printer: Printer, node: FrameBound): string {
  if (node.value === undefined) return node.type.replace('_', ' ')
  const text = printer.expression(node.value)
  const isWord = node.value.kind === 'Identifier' && isKeywordName(node.value)
  return `${isWord ? `(${text})` : text} ${node.type}`
}
