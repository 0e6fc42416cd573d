import type { StringLiteral } from './ast.ts'
import type { Principal } from './ast-access.ts'
import type { ColumnDefinition, Property } from './ast-definitions.ts'
import { printIdentifier, printQualifiedName, printString, printType } from './print-names.ts'
import { phrase, type Printer } from './printing.ts'

// Clauses that definitions and alterations share.

export function printPropertyList(printer: Printer, properties: readonly Property[]): string {
  return properties
    .map((property) => {
      const value = property.value === undefined ? 'DEFAULT' : printer.expression(property.value)
      const isName = property.value?.kind === 'Identifier' && value.toUpperCase() === 'DEFAULT'
      return `${printIdentifier(property.name)} = ${isName ? `(${value})` : value}`
    })
    .join(', ')
}

export function printProperties(printer: Printer, properties: readonly Property[]): string {
  return properties.length === 0 ? '' : `WITH ( ${printPropertyList(printer, properties)} )`
}

export function printComment(comment: StringLiteral | undefined): string {
  return comment === undefined ? '' : `COMMENT ${printString(comment)}`
}

export function printPrincipal(node: Principal): string {
  return phrase(node.type !== 'UNSPECIFIED' && node.type, printIdentifier(node.name))
}

export function printColumn(printer: Printer, node: ColumnDefinition): string {
  return phrase(
    printQualifiedName(node.name),
    printType(node.type),
    !node.nullable && 'NOT NULL',
    printComment(node.comment),
    printProperties(printer, node.properties),
  )
}

export const ifExists = (exists: boolean): string => (exists ? 'IF EXISTS' : '')
export const ifNotExists = (notExists: boolean): string => (notExists ? 'IF NOT EXISTS' : '')
