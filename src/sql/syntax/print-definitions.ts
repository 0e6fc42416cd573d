import { unreachable } from '../../shared/unreachable.ts'
import type { Statement } from './ast-statements.ts'
import type { DefinitionStatement, SaveMode, TableElement } from './ast-definitions.ts'
import { printAlteration } from './print-alterations.ts'
import { ifExists, ifNotExists, printColumn, printComment, printPrincipal, printProperties } from './print-clauses.ts'
import { printInterval } from './print-expressions.ts'
import { printIdentifier, printNames, printQualifiedName, printString } from './print-names.ts'
import { printFunctionSpecification, printParameters } from './print-routines.ts'
import { phrase, type Printer } from './printing.ts'

const definitionKinds: Readonly<Record<DefinitionStatement['kind'], true>> = {
  CreateCatalog: true,
  DropCatalog: true,
  CreateSchema: true,
  DropSchema: true,
  RenameSchema: true,
  CreateTable: true,
  CreateTableAsSelect: true,
  DropTable: true,
  RenameTable: true,
  SetProperties: true,
  CommentOn: true,
  AddColumn: true,
  RenameColumn: true,
  DropColumn: true,
  SetColumnType: true,
  DropNotNullConstraint: true,
  CreateView: true,
  DropView: true,
  RenameView: true,
  RefreshView: true,
  CreateMaterializedView: true,
  DropMaterializedView: true,
  RenameMaterializedView: true,
  SetAuthorization: true,
  CreateFunction: true,
  DropFunction: true,
}

export function isDefinition(node: Statement): node is DefinitionStatement {
  return Object.hasOwn(definitionKinds, node.kind)
}

function printElement(printer: Printer, node: TableElement): string {
  if (node.kind === 'ColumnDefinition') return printColumn(printer, node)
  return phrase(`LIKE ${printQualifiedName(node.table)}`, node.properties && `${node.properties} PROPERTIES`)
}

function createTable(mode: SaveMode): string {
  return phrase('CREATE', mode === 'REPLACE' && 'OR REPLACE', 'TABLE', mode === 'IGNORE' && 'IF NOT EXISTS')
}

export function printDefinition(printer: Printer, node: DefinitionStatement): string {
  const properties = 'properties' in node ? printProperties(printer, node.properties) : ''
  switch (node.kind) {
    case 'CreateCatalog':
      return phrase(
        'CREATE CATALOG',
        ifNotExists(node.notExists),
        `${printIdentifier(node.name)} USING ${printIdentifier(node.connector)}`,
        printComment(node.comment),
        node.principal && `AUTHORIZATION ${printPrincipal(node.principal)}`,
        properties,
      )
    case 'DropCatalog':
      return phrase('DROP CATALOG', ifExists(node.exists), printIdentifier(node.name), node.cascade && 'CASCADE')
    case 'CreateSchema':
      return phrase(
        'CREATE SCHEMA',
        ifNotExists(node.notExists),
        printQualifiedName(node.name),
        node.principal && `AUTHORIZATION ${printPrincipal(node.principal)}`,
        properties,
      )
    case 'DropSchema':
      return phrase('DROP SCHEMA', ifExists(node.exists), printQualifiedName(node.name), node.cascade && 'CASCADE')
    case 'CreateTable': {
      const elements = node.elements.map((element) => `   ${printElement(printer, element)}`)
      const head = `${createTable(node.saveMode)} ${printer.table(node.name)}`
      return phrase(`${head} (\n${elements.join(',\n')}\n)`, printComment(node.comment), properties)
    }
    case 'CreateTableAsSelect': {
      const text = printer.query(node.query, 0)
      const head = phrase(
        createTable(node.saveMode),
        printQualifiedName(node.name),
        node.columnAliases && printNames(node.columnAliases),
        printComment(node.comment),
        properties,
      )
      // Parentheses around the whole query belong to the statement: a query with parentheses of its own needs a second
      // pair.
      const query = text.startsWith('(') ? `(\n${text})\n` : text
      return `${head} AS\n${query}${node.withData ? '' : ' WITH NO DATA'}`
    }
    case 'DropTable':
      return phrase('DROP TABLE', ifExists(node.exists), printer.table(node.name))
    case 'CommentOn': {
      const comment = node.comment === undefined ? 'NULL' : printString(node.comment)
      return `COMMENT ON ${node.type} ${printQualifiedName(node.name)} IS ${comment}`
    }
    case 'CreateView': {
      const head = phrase(
        'CREATE',
        node.replace && 'OR REPLACE',
        `VIEW ${printer.table(node.name)}`,
        printComment(node.comment),
        node.security && `SECURITY ${node.security}`,
        properties,
      )
      return `${head} AS\n${printer.query(node.query, 0)}`
    }
    case 'DropView':
      return phrase('DROP VIEW', ifExists(node.exists), printer.table(node.name))
    case 'CreateMaterializedView': {
      const head = phrase(
        'CREATE',
        node.replace && 'OR REPLACE',
        'MATERIALIZED VIEW',
        ifNotExists(node.notExists),
        printQualifiedName(node.name),
        node.gracePeriod && `GRACE PERIOD ${printInterval(node.gracePeriod)}`,
        printComment(node.comment),
        properties,
      )
      return `${head} AS\n${printer.query(node.query, 0)}`
    }
    case 'DropMaterializedView':
      return phrase('DROP MATERIALIZED VIEW', ifExists(node.exists), printQualifiedName(node.name))
    case 'CreateFunction':
      return phrase('CREATE', node.replace && 'OR REPLACE', printFunctionSpecification(printer, node.specification))
    case 'DropFunction':
      return phrase(
        'DROP FUNCTION',
        ifExists(node.exists),
        `${printQualifiedName(node.name)}${printParameters(node.parameters)}`,
      )
    case 'RenameSchema':
    case 'RenameTable':
    case 'SetProperties':
    case 'AddColumn':
    case 'RenameColumn':
    case 'DropColumn':
    case 'SetColumnType':
    case 'DropNotNullConstraint':
    case 'RenameView':
    case 'RefreshView':
    case 'RenameMaterializedView':
    case 'SetAuthorization':
      return printAlteration(printer, node)
    default:
      return unreachable(node)
  }
}
