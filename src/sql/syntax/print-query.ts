import { unreachable } from '../../shared/unreachable.ts'
import type { Expression } from './ast.ts'
import type { FetchFirst, GroupBy, Limit, Query, QueryBody, QuerySpecification, SelectItem, With } from './ast-query.ts'
import { printGuarded, printOperand } from './print-expressions.ts'
import { printAlias, printIdentifier, printNames, printQualifiedName } from './print-names.ts'
import { printRelation } from './print-relations.ts'
import { printFunctionSpecification } from './print-routines.ts'
import { printOrderBy, printWindow } from './print-windows.ts'
import { margin, type Printer } from './printing.ts'

/** Prints each clause on its own line; the last line also ends with a line break. */
export function printAnyQuery(printer: Printer, node: Query, indent: number): string {
  const pad = margin(indent)
  let text = ''
  if (node.functions.length > 0) {
    const functions = node.functions.map((specification) => printFunctionSpecification(printer, specification))
    text += `${pad}WITH ${functions.join(', ')}\n`
  }
  if (node.sessionProperties.length > 0) {
    const properties = node.sessionProperties.map(
      (property) => `${printQualifiedName(property.name)} = ${printer.expression(property.value)}`,
    )
    text += `${pad}WITH SESSION ${properties.join(', ')}\n`
  }
  if (node.with !== undefined) text += printWith(printer, node.with, indent)
  text += printBody(printer, node.body, indent)
  if (node.orderBy !== undefined) text += `${pad}${printOrderBy(printer, node.orderBy)}\n`
  if (node.offset !== undefined) text += `${pad}OFFSET ${printer.expression(node.offset.rowCount)} ROWS\n`
  if (node.limit !== undefined) text += `${pad}${printLimit(printer, node.limit)}\n`
  return text
}

function printLimit(printer: Printer, node: Limit | FetchFirst): string {
  if (node.kind === 'Limit') return `LIMIT ${node.rowCount === 'ALL' ? 'ALL' : printer.expression(node.rowCount)}`
  const count = node.rowCount === undefined ? 'ROW' : `${printer.expression(node.rowCount)} ROWS`
  return `FETCH FIRST ${count} ${node.withTies ? 'WITH TIES' : 'ONLY'}`
}

function printWith(printer: Printer, node: With, indent: number): string {
  const queries = node.queries.map((query) => {
    const columns = query.columnNames === undefined ? '' : ` ${printNames(query.columnNames)}`
    const body = printer.query(query.query, indent + 1)
    return `${printIdentifier(query.name)}${columns} AS (\n${body}${margin(indent)}) \n`
  })
  const pad = margin(indent)
  return `${pad}WITH${node.recursive ? ' RECURSIVE' : ''}\n${pad}  ${queries.join(`${pad}, `)}`
}

function printBody(printer: Printer, node: QueryBody, indent: number): string {
  const pad = margin(indent)
  switch (node.kind) {
    case 'QuerySpecification':
      return printSpecification(printer, node, indent)
    case 'SetOperation': {
      const corresponding =
        node.corresponding === undefined
          ? ''
          : ` CORRESPONDING${node.corresponding.columns.length > 0 ? ` BY ${printNames(node.corresponding.columns)}` : ''}`
      const operator = `${pad}${node.operator}${node.distinct ? '' : ' ALL'}${corresponding}\n`
      return printBody(printer, node.left, indent) + operator + printBody(printer, node.right, indent)
    }
    case 'Values': {
      const rows = node.rows.map((row) => printOperand(printer, row))
      return `${pad}VALUES \n${pad}  ${rows.join(`\n${pad}, `)}\n`
    }
    case 'Table':
      return `${pad}TABLE ${printer.table(node.name)}\n`
    case 'TableSubquery':
      return `${pad}(\n${printer.query(node.query, indent + 1)}${pad})\n`
    default:
      return unreachable(node)
  }
}

function printSpecification(printer: Printer, node: QuerySpecification, indent: number): string {
  const pad = margin(indent)
  const items = node.select.items.map((item) => printSelectItem(printer, item))
  const select = `${pad}SELECT${node.select.distinct ? ' DISTINCT' : ''}`
  let text = items.length === 1 ? `${select} ${items[0]}\n` : `${select}\n${pad}  ${items.join(`\n${pad}, `)}\n`
  if (node.from !== undefined) text += `${pad}FROM\n${pad}  ${printRelation(printer, node.from, indent)}\n`
  if (node.where !== undefined) text += `${pad}WHERE ${printOperand(printer, node.where)}\n`
  if (node.groupBy !== undefined) text += `${pad}${printGroupBy(printer, node.groupBy)}\n`
  if (node.having !== undefined) text += `${pad}HAVING ${printOperand(printer, node.having)}\n`
  if (node.windows.length > 0) {
    const windows = node.windows.map(
      (definition) => `${printIdentifier(definition.name)} AS ${printWindow(printer, definition.window)}`,
    )
    text += `${pad}WINDOW\n${pad}  ${windows.join(`\n${pad}, `)}\n`
  }
  return text
}

function printSelectItem(printer: Printer, node: SelectItem): string {
  if (node.kind === 'AllColumns') {
    if (node.target === undefined) return '*'
    const text = printGuarded(printer, node.target)
    // A target to which `.*` cannot be appended is put in parentheses: `-1.*`.
    const target = /^[-+\d.]/.test(text) ? `(${text})` : text
    return `${target}.*${node.aliases.length > 0 ? ` AS ${printNames(node.aliases)}` : ''}`
  }
  const expression = printGuarded(printer, node.expression)
  return node.alias === undefined ? expression : `${expression} ${printAlias(node.alias)}`
}

function printGroupBy(printer: Printer, node: GroupBy): string {
  const set = (columns: readonly Expression[]): string => {
    const texts = columns.map((column) => printGuarded(printer, column))
    return texts.length === 1 ? texts[0]! : `(${texts.join(', ')})`
  }
  const names = { EXPLICIT: 'GROUPING SETS', ROLLUP: 'ROLLUP', CUBE: 'CUBE' } as const
  const elements = node.elements.map((element) => {
    switch (element.kind) {
      case 'SimpleGroupBy':
        return set(element.columns)
      case 'GroupingSets':
        return `${names[element.type]} (${element.sets.map(set).join(', ')})`
      case 'GroupByAuto':
        return 'AUTO'
      default:
        return unreachable(element)
    }
  })
  return `GROUP BY ${node.distinct ? 'DISTINCT ' : ''}${elements.join(', ')}`
}
