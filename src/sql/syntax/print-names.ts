import { unreachable } from '../../shared/unreachable.ts'
import type { StringLiteral } from './ast.ts'
import type { Identifier, QualifiedName } from './ast-node.ts'
import type { DataType, DataTypeParameter } from './ast-types.ts'
import { nonReservedWords, reservedWords } from './keywords.ts'

const plainName = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Prints a name in quotes. */
export function printQuoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Prints a name; a name that needs no quotes stays as written. */
export function printName(name: string): string {
  return plainName.test(name) && !reservedWords.has(name.toUpperCase()) ? name : printQuoted(name)
}

export function printIdentifier(node: Identifier): string {
  return node.quoted ? printQuoted(node.value) : printName(node.value)
}

/** Whether a name is also a keyword. */
export function isKeywordName(node: Identifier): boolean {
  return !node.quoted && nonReservedWords.has(node.value.toUpperCase())
}

/** Prints an alias, with AS if the bare word could be read as the next clause. */
export function printAlias(node: Identifier): string {
  return isKeywordName(node) ? `AS ${node.value}` : printIdentifier(node)
}

export function printQualifiedName(node: QualifiedName): string {
  return node.parts.map(printIdentifier).join('.')
}

export function printNames(names: readonly Identifier[]): string {
  return `(${names.map(printIdentifier).join(', ')})`
}

export function printText(value: string): string {
  return `'${value.replaceAll("'", "''")}'`
}

export function printString(node: StringLiteral): string {
  return printText(node.value)
}

export function printType(node: DataType): string {
  switch (node.kind) {
    case 'GenericDataType': {
      const name = printIdentifier(node.name)
      return node.arguments.length === 0 ? name : `${name}(${node.arguments.map(printTypeParameter).join(', ')})`
    }
    case 'RowDataType': {
      const fields = node.fields.map((field) =>
        field.name === undefined ? printType(field.type) : `${printIdentifier(field.name)} ${printType(field.type)}`,
      )
      return `ROW(${fields.join(', ')})`
    }
    case 'IntervalDataType':
      return node.from === node.to ? `INTERVAL ${node.from}` : `INTERVAL ${node.from} TO ${node.to}`
    case 'DateTimeDataType': {
      const precision = node.precision === undefined ? '' : `(${printTypeParameter(node.precision)})`
      return `${node.type.toLowerCase()}${precision}${node.withTimeZone ? ' with time zone' : ''}`
    }
    default:
      return unreachable(node)
  }
}

function printTypeParameter(node: DataTypeParameter): string {
  return node.kind === 'NumericParameter' ? node.value : printType(node.type)
}
