import { unreachable } from '../../shared/unreachable.ts'
import type {
  Join,
  Relation,
  TableFunctionArgument,
  TableFunctionDescriptorArgument,
  TableFunctionTableArgument,
} from './ast-query.ts'
import type { PatternRecognitionRelation } from './ast-patterns.ts'
import { printJsonTable } from './print-json.ts'
import { printAlias, printIdentifier, printNames, printQualifiedName, printType } from './print-names.ts'
import {
  printMeasures,
  printRowPattern,
  printRowsPerMatch,
  printSkip,
  printSubsets,
  printVariables,
} from './print-patterns.ts'
import { printOrderBy, printPartition, printSortItem } from './print-windows.ts'
import { margin, phrase, type Printer } from './printing.ts'

export function printRelation(printer: Printer, node: Relation, indent: number): string {
  switch (node.kind) {
    case 'Table': {
      const period = node.queryPeriod
      const asOf = period && `FOR ${period.rangeType} AS OF ${printer.expression(period.end)}`
      return phrase(printer.table(node.name), asOf)
    }
    case 'TableSubquery':
      return `(\n${printer.query(node.query, indent + 1)}${margin(indent)}) `
    case 'AliasedRelation': {
      const columns = node.columnNames === undefined ? '' : ` ${printNames(node.columnNames)}`
      const isPattern = node.relation.kind === 'PatternRecognitionRelation'
      const relation = isPattern
        ? printRelation(printer, node.relation, indent)
        : printPart(printer, node.relation, indent)
      return `${relation} ${printAlias(node.alias)}${columns}`
    }
    case 'Join':
      return printJoin(printer, node, indent)
    case 'Unnest': {
      const expressions = node.expressions.map((expression) => printer.expression(expression))
      return `UNNEST(${expressions.join(', ')})${node.withOrdinality ? ' WITH ORDINALITY' : ''}`
    }
    case 'Lateral':
      return `LATERAL (\n${printer.query(node.query, indent + 1)}${margin(indent)}) `
    case 'SampledRelation': {
      const isAliased = node.relation.kind === 'AliasedRelation' || node.relation.kind === 'PatternRecognitionRelation'
      const relation = isAliased
        ? printRelation(printer, node.relation, indent)
        : printPart(printer, node.relation, indent)
      return `${relation} TABLESAMPLE ${node.type} (${printer.expression(node.samplePercentage)})`
    }
    case 'TableFunctionInvocation': {
      const list = node.arguments.map((argument) => printArgument(printer, argument))
      const copartition = node.copartitioning.map((tables) => `(${tables.map(printQualifiedName).join(', ')})`)
      const inside = phrase(list.join(', '), copartition.length > 0 && `COPARTITION ${copartition.join(', ')}`)
      return `TABLE(${printQualifiedName(node.name)}(${inside}))`
    }
    case 'PatternRecognitionRelation':
      return printRecognition(printer, node, indent)
    case 'JsonTable':
      return printJsonTable(printer, node)
    default:
      return unreachable(node)
  }
}

/**
 * Prints a relation before an alias or a further clause. A relation that ends with such a clause itself is put in
 * parentheses.
 */
function printPart(printer: Printer, node: Relation, indent: number): string {
  const text = printRelation(printer, node, indent)
  switch (node.kind) {
    case 'AliasedRelation':
    case 'SampledRelation':
    case 'PatternRecognitionRelation':
      return `(${text})`
    default:
      return text
  }
}

function printJoin(printer: Printer, node: Join, indent: number): string {
  const left = printRelation(printer, node.left, indent)
  const right = printRelation(printer, node.right, indent)
  const pad = margin(indent)
  if (node.type === 'IMPLICIT') return `${left}\n${pad}, ${right}`
  const natural = node.criteria?.kind === 'NaturalJoin' ? 'NATURAL ' : ''
  let criteria = ''
  if (node.criteria?.kind === 'JoinOn') criteria = ` ON ${printer.expression(node.criteria.expression)}`
  if (node.criteria?.kind === 'JoinUsing') criteria = ` USING ${printNames(node.criteria.columns)}`
  return `(${left}\n${pad}${natural}${node.type} JOIN ${right}${criteria})`
}

function printArgument(printer: Printer, node: TableFunctionArgument): string {
  const name = node.name === undefined ? '' : `${printIdentifier(node.name)} => `
  switch (node.value.kind) {
    case 'TableFunctionTableArgument':
      return name + printTableArgument(printer, node.value)
    case 'TableFunctionDescriptorArgument':
      return name + printDescriptor(node.value)
    default:
      return name + printer.expression(node.value)
  }
}

function printDescriptor(node: TableFunctionDescriptorArgument): string {
  if (node.fields === undefined) return 'CAST (NULL AS DESCRIPTOR)'
  const fields = node.fields.map((field) => phrase(printIdentifier(field.name), field.type && printType(field.type)))
  return `DESCRIPTOR(${fields.join(', ')})`
}

function printTableArgument(printer: Printer, node: TableFunctionTableArgument): string {
  const aliased = node.table.kind === 'AliasedRelation' ? node.table : undefined
  const table = aliased === undefined ? node.table : aliased.relation
  const inside =
    table.kind === 'TableSubquery' ? printer.query(table.query, 0).trimEnd() : printRelation(printer, table, 0)
  const columns = aliased?.columnNames === undefined ? undefined : printNames(aliased.columnNames)
  return phrase(
    `TABLE(${inside}${table.kind === 'TableSubquery' ? '\n' : ''})`,
    aliased && `AS ${printIdentifier(aliased.alias)}`,
    columns,
    node.partitionBy && `PARTITION BY (${node.partitionBy.map((column) => printer.expression(column)).join(', ')})`,
    node.emptyTreatment && `${node.emptyTreatment} WHEN EMPTY`,
    node.orderBy && `ORDER BY (${node.orderBy.sortItems.map((item) => printSortItem(printer, item)).join(', ')})`,
  )
}

function printRecognition(printer: Printer, node: PatternRecognitionRelation, indent: number): string {
  // An alias directly before MATCH_RECOGNIZE belongs to the input, unless it names the output of another
  // MATCH_RECOGNIZE.
  const isAliased = node.input.kind === 'AliasedRelation' && node.input.relation.kind !== 'PatternRecognitionRelation'
  const input = isAliased ? printRelation(printer, node.input, indent) : printPart(printer, node.input, indent)
  const pad = margin(indent)
  const clauses = [
    printPartition(printer, node.partitionBy),
    node.orderBy === undefined ? '' : printOrderBy(printer, node.orderBy),
    printMeasures(printer, node.measures),
    printRowsPerMatch(node.rowsPerMatch),
    node.afterMatchSkipTo === undefined ? '' : printSkip(node.afterMatchSkipTo),
    node.patternSearchMode ?? '',
    `PATTERN (${printRowPattern(node.pattern)})`,
    printSubsets(node.subsets),
    printVariables(printer, node.variableDefinitions),
  ]
  const lines = clauses.filter((clause) => clause !== '').map((clause) => `${pad}   ${clause}\n`)
  return `${input} MATCH_RECOGNIZE (\n${lines.join('')}${pad})`
}
