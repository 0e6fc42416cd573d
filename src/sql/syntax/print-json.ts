import { unreachable } from '../../shared/unreachable.ts'
import type { DataType } from './ast-types.ts'
import type {
  JsonArray,
  JsonExists,
  JsonFormat,
  JsonObject,
  JsonPathInvocation,
  JsonQuery,
  JsonQueryOptions,
  JsonTable,
  JsonTableColumn,
  JsonTableDefaultPlan,
  JsonTableSpecificPlan,
  JsonValueCall,
  JsonValueBehavior,
} from './ast-json.ts'
import { printIdentifier, printString, printType } from './print-names.ts'
import { phrase, type Printer } from './printing.ts'

export function printJson(
  printer: Printer,
  node: JsonExists | JsonValueCall | JsonQuery | JsonObject | JsonArray,
): string {
  switch (node.kind) {
    case 'JsonExists': {
      const onError = node.errorBehavior && `${node.errorBehavior} ON ERROR`
      return `JSON_EXISTS(${phrase(printPath(printer, node.pathInvocation), onError)})`
    }
    case 'JsonValue': {
      const returning = printReturning(node.returnedType, undefined)
      const behaviors = printValueBehaviors(printer, node.emptyBehavior, node.errorBehavior)
      return `JSON_VALUE(${phrase(printPath(printer, node.pathInvocation), returning, behaviors)})`
    }
    case 'JsonQuery': {
      const returning = printReturning(node.returnedType, node.outputFormat)
      return `JSON_QUERY(${phrase(printPath(printer, node.pathInvocation), returning, printQueryOptions(node))})`
    }
    case 'JsonObject': {
      const members = node.members.map(
        (member) =>
          `KEY ${grouped(printer.expression(member.key))} VALUE ${printer.expression(member.value)}${printFormat(member.format)}`,
      )
      const options = [
        node.absentOnNull ? 'ABSENT ON NULL' : 'NULL ON NULL',
        node.uniqueKeys ? 'WITH UNIQUE KEYS' : 'WITHOUT UNIQUE KEYS',
      ]
      const returning = printReturning(node.returnedType, node.outputFormat)
      return `JSON_OBJECT(${phrase(members.join(', '), ...(members.length === 0 ? [] : options), returning)})`
    }
    case 'JsonArray': {
      const elements = node.elements.map(
        (element) => `${printer.expression(element.value)}${printFormat(element.format)}`,
      )
      const nulls = node.absentOnNull ? 'ABSENT ON NULL' : 'NULL ON NULL'
      const returning = printReturning(node.returnedType, node.outputFormat)
      return `JSON_ARRAY(${phrase(elements.join(', '), elements.length > 0 && nulls, returning)})`
    }
    default:
      return unreachable(node)
  }
}

/** Puts a key in parentheses unless it is safe: KEY is a keyword only before a word or a parenthesis. */
function grouped(text: string): string {
  return /^[('"\w]/.test(text) && !/^(?:value|at)\b/i.test(text) ? text : `(${text})`
}

function printFormat(format: JsonFormat | undefined): string {
  if (format === undefined) return ''
  return format === 'JSON' ? ' FORMAT JSON' : ` FORMAT JSON ENCODING ${format}`
}

function printReturning(type: DataType | undefined, format: JsonFormat | undefined): string {
  return type === undefined ? '' : `RETURNING ${printType(type)}${printFormat(format)}`
}

function printPath(printer: Printer, node: JsonPathInvocation): string {
  const parameters = node.pathParameters.map(
    (parameter) =>
      `${printer.expression(parameter.parameter)}${printFormat(parameter.format)} AS ${printIdentifier(parameter.name)}`,
  )
  return phrase(
    `${printer.expression(node.inputExpression)}${printFormat(node.inputFormat)},`,
    printString(node.jsonPath),
    node.pathName && `AS ${printIdentifier(node.pathName)}`,
    parameters.length > 0 && `PASSING ${parameters.join(', ')}`,
  )
}

function printValueBehaviors(
  printer: Printer,
  empty: JsonValueBehavior | undefined,
  error: JsonValueBehavior | undefined,
): string {
  const print = (behavior: JsonValueBehavior): string =>
    behavior.behavior === 'DEFAULT' ? `DEFAULT ${printer.expression(behavior.value)}` : behavior.behavior
  return phrase(empty && `${print(empty)} ON EMPTY`, error && `${print(error)} ON ERROR`)
}

const wrappers = {
  WITHOUT: 'WITHOUT ARRAY WRAPPER',
  CONDITIONAL: 'WITH CONDITIONAL ARRAY WRAPPER',
  UNCONDITIONAL: 'WITH UNCONDITIONAL ARRAY WRAPPER',
} as const

function printQueryOptions(options: JsonQueryOptions): string {
  return phrase(
    options.wrapperBehavior && wrappers[options.wrapperBehavior],
    options.quotesBehavior && `${options.quotesBehavior} QUOTES ON SCALAR STRING`,
    options.emptyBehavior && `${options.emptyBehavior} ON EMPTY`,
    options.errorBehavior && `${options.errorBehavior} ON ERROR`,
  )
}

export function printJsonTable(printer: Printer, node: JsonTable): string {
  const inside = phrase(
    printPath(printer, node.pathInvocation),
    printColumns(printer, node.columns),
    node.plan && printPlan(node.plan),
    node.errorBehavior && `${node.errorBehavior} ON ERROR`,
  )
  return `JSON_TABLE (${inside})`
}

function printColumns(printer: Printer, columns: readonly JsonTableColumn[]): string {
  return `COLUMNS (${columns.map((column) => printColumn(printer, column)).join(', ')})`
}

function printColumn(printer: Printer, node: JsonTableColumn): string {
  switch (node.kind) {
    case 'JsonTableOrdinalityColumn':
      return `${printIdentifier(node.name)} FOR ORDINALITY`
    case 'JsonTableNestedColumns':
      return phrase(
        `NESTED PATH ${printString(node.jsonPath)}`,
        node.pathName && `AS ${printIdentifier(node.pathName)}`,
        printColumns(printer, node.columns),
      )
    case 'JsonTableValueColumn':
      return phrase(
        printIdentifier(node.name),
        printType(node.type),
        node.jsonPath && `PATH ${printString(node.jsonPath)}`,
        printValueBehaviors(printer, node.emptyBehavior, node.errorBehavior),
      )
    case 'JsonTableQueryColumn':
      return phrase(
        printIdentifier(node.name),
        `${printType(node.type)}${printFormat(node.format)}`,
        node.jsonPath && `PATH ${printString(node.jsonPath)}`,
        printQueryOptions(node),
      )
    default:
      return unreachable(node)
  }
}

function printPlan(node: JsonTableSpecificPlan | JsonTableDefaultPlan): string {
  if (node.kind === 'JsonTableDefaultPlan') return `PLAN DEFAULT (${node.parentChild}, ${node.siblings})`
  return `PLAN (${printSpecificPlan(node)})`
}

function printSpecificPlan(node: JsonTableSpecificPlan): string {
  const primary = (plan: JsonTableSpecificPlan): string =>
    plan.kind === 'JsonTablePlanLeaf' ? printIdentifier(plan.name) : `(${printSpecificPlan(plan)})`
  switch (node.kind) {
    case 'JsonTablePlanLeaf':
      return printIdentifier(node.name)
    case 'JsonTablePlanParentChild':
      return `${printIdentifier(node.parent.name)} ${node.type} ${primary(node.child)}`
    case 'JsonTablePlanSiblings':
      return node.siblings.map(primary).join(` ${node.type} `)
    default:
      return unreachable(node)
  }
}
