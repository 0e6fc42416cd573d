import type { QualifiedName } from '../syntax/ast-node.ts'
import type { Statement } from '../syntax/ast-statements.ts'
import { printStatement } from '../syntax/printer.ts'
import { printIdentifier } from '../syntax/print-names.ts'

/**
 * The text that EXPLAIN prints instead of a plan for a statement of definitions, in every format.
 * Source: Trino 476, QueryExplainer.explainDataDefinition.
 */
export function explainedDefinition(statement: Statement): string {
  switch (statement.kind) {
    case 'CreateSchema':
      return `CREATE SCHEMA ${lowerName(statement.name)}`
    case 'DropSchema':
      return `DROP SCHEMA ${lowerName(statement.name)}`
    case 'CreateTable':
      return `CREATE TABLE ${lowerName(statement.name)}`
    case 'CreateView':
      return `CREATE VIEW ${lowerName(statement.name)}`
    case 'CreateMaterializedView':
      return `CREATE MATERIALIZED VIEW ${lowerName(statement.name)}`
    case 'Prepare':
      return `PREPARE ${printIdentifier(statement.name)}`
    default:
      return printStatement(statement)
  }
}

function lowerName({ parts }: QualifiedName): string {
  return parts.map(({ value }) => value.toLowerCase()).join('.')
}
