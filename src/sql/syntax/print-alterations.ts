import { unreachable } from '../../shared/unreachable.ts'
import type { DefinitionStatement } from './ast-definitions.ts'
import { ifExists, ifNotExists, printColumn, printPrincipal, printPropertyList } from './print-clauses.ts'
import { printIdentifier, printQualifiedName, printType } from './print-names.ts'
import { phrase, type Printer } from './printing.ts'

export type AlterationStatement = Extract<
  DefinitionStatement,
  {
    kind:
      | 'RenameSchema'
      | 'RenameTable'
      | 'SetProperties'
      | 'AddColumn'
      | 'RenameColumn'
      | 'DropColumn'
      | 'SetColumnType'
      | 'DropNotNullConstraint'
      | 'RenameView'
      | 'RefreshView'
      | 'RenameMaterializedView'
      | 'SetAuthorization'
  }
>

/** Prints ALTER statements. */
export function printAlteration(printer: Printer, node: AlterationStatement): string {
  switch (node.kind) {
    case 'RenameSchema':
      return `ALTER SCHEMA ${printQualifiedName(node.source)} RENAME TO ${printIdentifier(node.target)}`
    case 'RenameTable':
      return phrase(
        'ALTER TABLE',
        ifExists(node.exists),
        `${printQualifiedName(node.source)} RENAME TO ${printQualifiedName(node.target)}`,
      )
    case 'SetProperties': {
      const type = node.type.replace('_', ' ')
      return `ALTER ${type} ${printQualifiedName(node.name)} SET PROPERTIES ${printPropertyList(printer, node.properties)}`
    }
    case 'AddColumn': {
      const { position } = node
      const positionText =
        position?.position === 'AFTER' ? `AFTER ${printIdentifier(position.column)}` : position?.position
      return phrase(
        'ALTER TABLE',
        ifExists(node.tableExists),
        printer.table(node.table),
        'ADD COLUMN',
        ifNotExists(node.columnNotExists),
        printColumn(printer, node.column),
        positionText,
      )
    }
    case 'RenameColumn':
      return phrase(
        'ALTER TABLE',
        ifExists(node.tableExists),
        printer.table(node.table),
        'RENAME COLUMN',
        ifExists(node.columnExists),
        `${printQualifiedName(node.source)} TO ${printIdentifier(node.target)}`,
      )
    case 'DropColumn':
      return phrase(
        'ALTER TABLE',
        ifExists(node.tableExists),
        printer.table(node.table),
        'DROP COLUMN',
        ifExists(node.columnExists),
        printQualifiedName(node.field),
      )
    case 'SetColumnType':
      return phrase(
        'ALTER TABLE',
        ifExists(node.tableExists),
        printer.table(node.table),
        `ALTER COLUMN ${printQualifiedName(node.column)} SET DATA TYPE ${printType(node.type)}`,
      )
    case 'DropNotNullConstraint':
      return phrase(
        'ALTER TABLE',
        ifExists(node.tableExists),
        printer.table(node.table),
        `ALTER COLUMN ${printIdentifier(node.column)} DROP NOT NULL`,
      )
    case 'RenameView':
      return `ALTER VIEW ${printQualifiedName(node.source)} RENAME TO ${printQualifiedName(node.target)}`
    case 'RefreshView':
      return `ALTER VIEW ${printQualifiedName(node.name)} REFRESH`
    case 'RenameMaterializedView':
      return phrase(
        'ALTER MATERIALIZED VIEW',
        ifExists(node.exists),
        `${printQualifiedName(node.source)} RENAME TO ${printQualifiedName(node.target)}`,
      )
    case 'SetAuthorization':
      return `ALTER ${node.entityKind} ${printQualifiedName(node.name)} SET AUTHORIZATION ${printPrincipal(node.principal)}`
    default:
      return unreachable(node)
  }
}
