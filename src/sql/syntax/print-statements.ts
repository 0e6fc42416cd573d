import { unreachable } from '../../shared/unreachable.ts'
import type {
  DataStatement,
  ExplainOption,
  LikeClause,
  MergeCase,
  SessionStatement,
  ShowStatement,
  Statement,
  TransactionMode,
  UpdateAssignment,
  CallArgument,
} from './ast-statements.ts'
import type { AccessStatement, Grantor, GrantObject, Principal, Privileges } from './ast-access.ts'
import type { Expression } from './ast.ts'
import { printProperties } from './print-clauses.ts'
import { isDefinition, printDefinition } from './print-definitions.ts'
import { printGuarded } from './print-expressions.ts'
import { printIdentifier, printNames, printQualifiedName, printString } from './print-names.ts'
import { printRelation } from './print-relations.ts'
import { phrase, type Printer } from './printing.ts'

export function printAnyStatement(printer: Printer, node: Statement, indent: number): string {
  if (isDefinition(node)) return printDefinition(printer, node)
  switch (node.kind) {
    case 'Query':
      return printer.query(node, indent)
    case 'Explain': {
      const options = node.options.length === 0 ? '' : `(${node.options.map(printOption).join(', ')})`
      return `${phrase('EXPLAIN', options)}\n${printer.statement(node.statement, indent)}`
    }
    case 'ExplainAnalyze':
      return `EXPLAIN ANALYZE${node.verbose ? ' VERBOSE' : ''}\n${printer.statement(node.statement, indent)}`
    case 'Use':
      return `USE ${node.catalog === undefined ? '' : `${printIdentifier(node.catalog)}.`}${printIdentifier(node.schema)}`
    case 'Prepare':
      return `PREPARE ${printIdentifier(node.name)} FROM\n${printer.statement(node.statement, indent + 1)}`
    case 'Deallocate':
      return `DEALLOCATE PREPARE ${printIdentifier(node.name)}`
    case 'Execute':
      return phrase(`EXECUTE ${printIdentifier(node.name)}`, printUsing(printer, node.parameters))
    case 'ExecuteImmediate':
      return phrase(`EXECUTE IMMEDIATE\n${printString(node.statement)}`, printUsing(printer, node.parameters))
    case 'DescribeInput':
      return `DESCRIBE INPUT ${printIdentifier(node.name)}`
    case 'DescribeOutput':
      return `DESCRIBE OUTPUT ${printIdentifier(node.name)}`
    case 'StartTransaction':
      return phrase('START TRANSACTION', node.modes.map(printMode).join(', '))
    case 'Commit':
      return 'COMMIT'
    case 'Rollback':
      return 'ROLLBACK'
    case 'SetSession':
    case 'ResetSession':
    case 'SetSessionAuthorization':
    case 'ResetSessionAuthorization':
    case 'SetTimeZone':
    case 'SetPath':
    case 'SetRole':
      return printSession(printer, node)
    case 'ShowCatalogs':
    case 'ShowSchemas':
    case 'ShowTables':
    case 'ShowColumns':
    case 'ShowFunctions':
    case 'ShowSession':
    case 'ShowCreate':
    case 'ShowStats':
    case 'ShowGrants':
    case 'ShowRoles':
    case 'ShowRoleGrants':
      return printShow(printer, node)
    case 'Insert':
    case 'Delete':
    case 'Update':
    case 'Merge':
    case 'TruncateTable':
    case 'Call':
    case 'Analyze':
    case 'TableExecute':
    case 'RefreshMaterializedView':
      return printData(printer, node)
    case 'CreateRole':
    case 'DropRole':
    case 'GrantRoles':
    case 'RevokeRoles':
    case 'Grant':
    case 'Revoke':
    case 'Deny':
      return printAccess(node)
    default:
      return unreachable(node)
  }
}

function printOption(node: ExplainOption): string {
  return node.kind === 'ExplainType' ? `TYPE ${node.type}` : `FORMAT ${node.format}`
}

function printUsing(printer: Printer, parameters: readonly Expression[]): string {
  if (parameters.length === 0) return ''
  return `USING ${parameters.map((parameter) => printer.expression(parameter)).join(', ')}`
}

function printMode(node: TransactionMode): string {
  if (node.kind === 'IsolationLevel') return `ISOLATION LEVEL ${node.level}`
  return node.readOnly ? 'READ ONLY' : 'READ WRITE'
}

function printSession(printer: Printer, node: SessionStatement): string {
  switch (node.kind) {
    case 'SetSession':
      return `SET SESSION ${printQualifiedName(node.name)} = ${printer.expression(node.value)}`
    case 'ResetSession':
      return `RESET SESSION ${printQualifiedName(node.name)}`
    case 'SetSessionAuthorization': {
      const user = node.user.kind === 'StringLiteral' ? printString(node.user) : printIdentifier(node.user)
      return `SET SESSION AUTHORIZATION ${user}`
    }
    case 'ResetSessionAuthorization':
      return 'RESET SESSION AUTHORIZATION'
    case 'SetTimeZone':
      return `SET TIME ZONE ${node.timeZone === undefined ? 'LOCAL' : printGuarded(printer, node.timeZone)}`
    case 'SetPath': {
      const elements = node.path.map((element) =>
        element.catalog === undefined
          ? printIdentifier(element.schema)
          : `${printIdentifier(element.catalog)}.${printIdentifier(element.schema)}`,
      )
      return `SET PATH ${elements.join(', ')}`
    }
    case 'SetRole': {
      const role = node.role === undefined ? node.type : printIdentifier(node.role)
      return phrase('SET ROLE', role, node.catalog && `IN ${printIdentifier(node.catalog)}`)
    }
    default:
      return unreachable(node)
  }
}

function printLike(node: LikeClause): string {
  return phrase(
    node.likePattern && `LIKE ${printString(node.likePattern)}`,
    node.escape && `ESCAPE ${printString(node.escape)}`,
  )
}

function printShow(printer: Printer, node: ShowStatement): string {
  switch (node.kind) {
    case 'ShowCatalogs':
      return phrase('SHOW CATALOGS', printLike(node))
    case 'ShowSchemas':
      return phrase('SHOW SCHEMAS', node.catalog && `FROM ${printIdentifier(node.catalog)}`, printLike(node))
    case 'ShowTables':
      return phrase('SHOW TABLES', node.schema && `FROM ${printQualifiedName(node.schema)}`, printLike(node))
    case 'ShowColumns':
      return phrase(`SHOW COLUMNS FROM ${printer.table(node.table)}`, printLike(node))
    case 'ShowFunctions':
      return phrase('SHOW FUNCTIONS', node.schema && `FROM ${printQualifiedName(node.schema)}`, printLike(node))
    case 'ShowSession':
      return phrase('SHOW SESSION', printLike(node))
    case 'ShowCreate':
      return `SHOW CREATE ${node.type.replace('_', ' ')} ${printQualifiedName(node.name)}`
    case 'ShowStats': {
      const { relation } = node
      return `SHOW STATS FOR ${
        relation.kind === 'TableSubquery'
          ? `(\n${printer.query(relation.query, 1)})`
          : printRelation(printer, relation, 0)
      }`
    }
    case 'ShowGrants':
      return phrase('SHOW GRANTS', node.object && `ON ${printObject(node.object)}`)
    case 'ShowRoles':
      return phrase('SHOW', node.current && 'CURRENT', 'ROLES', node.catalog && `FROM ${printIdentifier(node.catalog)}`)
    case 'ShowRoleGrants':
      return phrase('SHOW ROLE GRANTS', node.catalog && `FROM ${printIdentifier(node.catalog)}`)
    default:
      return unreachable(node)
  }
}

function printData(printer: Printer, node: DataStatement): string {
  const where = (condition: Expression | undefined): string | undefined =>
    condition && `WHERE ${printer.expression(condition)}`
  switch (node.kind) {
    case 'Insert': {
      const columns = node.columns === undefined ? '' : ` ${printNames(node.columns)}`
      return `INSERT INTO ${printer.table(node.target)}${columns}\n${printer.query(node.query, 0)}`
    }
    case 'Delete':
      return phrase(`DELETE FROM ${printer.table(node.table)}`, where(node.where))
    case 'Update': {
      const set = `SET\n  ${printAssignments(printer, node.assignments)}\n`
      return `UPDATE ${printer.table(node.table)} ${set}${where(node.where) ?? ''}`
    }
    case 'Merge': {
      const alias = node.targetAlias === undefined ? '' : ` AS ${printIdentifier(node.targetAlias)}`
      const source = printRelation(printer, node.source, 1)
      const cases = node.cases.map((mergeCase) => printMergeCase(printer, mergeCase))
      const into = `MERGE INTO ${printer.table(node.target)}${alias}`
      return `${into}\n   USING ${source}\n   ON ${printer.expression(node.predicate)}\n${cases.join('\n')}`
    }
    case 'TruncateTable':
      return `TRUNCATE TABLE ${printer.table(node.table)}`
    case 'Call':
      return `CALL ${printQualifiedName(node.name)}(${printCallArguments(printer, node.arguments)})`
    case 'Analyze':
      return phrase(`ANALYZE ${printer.table(node.table)}`, printProperties(printer, node.properties))
    case 'TableExecute':
      return phrase(
        `ALTER TABLE ${printer.table(node.table)} EXECUTE ${printIdentifier(node.procedure)}`,
        `(${printCallArguments(printer, node.arguments)})`,
        where(node.where),
      )
    case 'RefreshMaterializedView':
      return `REFRESH MATERIALIZED VIEW ${printQualifiedName(node.name)}`
    default:
      return unreachable(node)
  }
}

function printCallArguments(printer: Printer, list: readonly CallArgument[]): string {
  return list
    .map((argument) =>
      phrase(argument.name && `${printIdentifier(argument.name)} =>`, printer.expression(argument.value)),
    )
    .join(', ')
}

function printAssignments(printer: Printer, assignments: readonly UpdateAssignment[]): string {
  return assignments
    .map((assignment) => `${printIdentifier(assignment.name)} = ${printer.expression(assignment.value)}`)
    .join(', ')
}

function printMergeCase(printer: Printer, node: MergeCase): string {
  const condition = node.condition && `AND ${printer.expression(node.condition)}`
  switch (node.kind) {
    case 'MergeUpdate':
      return phrase('WHEN MATCHED', condition, 'THEN UPDATE SET', printAssignments(printer, node.assignments))
    case 'MergeDelete':
      return phrase('WHEN MATCHED', condition, 'THEN DELETE')
    case 'MergeInsert':
      return phrase(
        'WHEN NOT MATCHED',
        condition,
        'THEN INSERT',
        node.columns.length > 0 && printNames(node.columns),
        `VALUES (${node.values.map((value) => printer.expression(value)).join(', ')})`,
      )
    default:
      return unreachable(node)
  }
}

function printObject(node: GrantObject): string {
  return phrase(node.entityKind, printQualifiedName(node.name))
}

function printPrincipal(node: Principal): string {
  return phrase(node.type !== 'UNSPECIFIED' && node.type, printIdentifier(node.name))
}

function printGrantor(node: Grantor): string {
  return node.kind === 'CurrentGrantor' ? node.type : printPrincipal(node)
}

const privilegeWords: ReadonlySet<string> = new Set(['CREATE', 'DELETE', 'INSERT', 'SELECT', 'UPDATE'])

function printPrivileges(privileges: Privileges): string {
  if (privileges === undefined) return 'ALL PRIVILEGES'
  return privileges
    .map((name) => (!name.quoted && privilegeWords.has(name.value) ? name.value : printIdentifier(name)))
    .join(', ')
}

function printAccess(node: AccessStatement): string {
  const inCatalog = 'catalog' in node && node.catalog !== undefined ? `IN ${printIdentifier(node.catalog)}` : ''
  switch (node.kind) {
    case 'CreateRole': {
      const admin = node.grantor && `WITH ADMIN ${printGrantor(node.grantor)}`
      return phrase(`CREATE ROLE ${printIdentifier(node.name)}`, admin, inCatalog)
    }
    case 'DropRole':
      return phrase('DROP ROLE', node.exists && 'IF EXISTS', printIdentifier(node.name), inCatalog)
    case 'GrantRoles':
      return phrase(
        `GRANT ${printPrivileges(node.roles)} TO ${node.grantees.map(printPrincipal).join(', ')}`,
        node.adminOption && 'WITH ADMIN OPTION',
        node.grantor && `GRANTED BY ${printGrantor(node.grantor)}`,
        inCatalog,
      )
    case 'RevokeRoles':
      return phrase(
        'REVOKE',
        node.adminOption && 'ADMIN OPTION FOR',
        `${printPrivileges(node.roles)} FROM ${node.grantees.map(printPrincipal).join(', ')}`,
        node.grantor && `GRANTED BY ${printGrantor(node.grantor)}`,
        inCatalog,
      )
    case 'Grant':
      return phrase(
        `GRANT ${printPrivileges(node.privileges)} ON ${printObject(node.object)} TO ${printPrincipal(node.grantee)}`,
        node.withGrantOption && 'WITH GRANT OPTION',
      )
    case 'Revoke':
      return phrase(
        'REVOKE',
        node.grantOptionFor && 'GRANT OPTION FOR',
        `${printPrivileges(node.privileges)} ON ${printObject(node.object)} FROM ${printPrincipal(node.grantee)}`,
      )
    case 'Deny':
      return `DENY ${printPrivileges(node.privileges)} ON ${printObject(node.object)} TO ${printPrincipal(node.grantee)}`
    default:
      return unreachable(node)
  }
}
