import { unreachable } from '../../shared/unreachable.ts'
import type { QueryType } from '../front-end.ts'
import type { SessionContext } from '../session.ts'
import type { Statement } from '../syntax/ast-statements.ts'
import { parseStatement } from '../syntax/parser.ts'
import { preparedText } from './prepared-statements.ts'

/** The kind of a statement in Trino's classification; undefined if the text does not parse. */
export function queryTypeOf(sql: string, session: Pick<SessionContext, 'preparedStatements'>): QueryType | undefined {
  try {
    return typeOf(parseStatement(sql), session)
  } catch {
    // The error is reported when the statement is analyzed.
    return undefined
  }
}

function typeOf(statement: Statement, session: Pick<SessionContext, 'preparedStatements'>): QueryType | undefined {
  switch (statement.kind) {
    case 'Query':
      return 'SELECT'
    case 'Explain':
      return 'EXPLAIN'
    case 'ExplainAnalyze':
      return typeOf(statement.statement, session)
    case 'Execute':
      return queryTypeOf(preparedText(session, statement.name.value), NO_OTHERS)
    case 'ExecuteImmediate':
      return queryTypeOf(statement.statement.value, NO_OTHERS)
    case 'DescribeInput':
    case 'DescribeOutput':
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
      return 'DESCRIBE'
    case 'Insert':
    case 'CreateTableAsSelect':
    case 'RefreshMaterializedView':
      return 'INSERT'
    case 'Update':
      return 'UPDATE'
    case 'Delete':
      return 'DELETE'
    case 'Merge':
      return 'MERGE'
    case 'Analyze':
      return 'ANALYZE'
    case 'TableExecute':
      return 'ALTER_TABLE_EXECUTE'
    case 'Use':
    case 'SetSession':
    case 'ResetSession':
    case 'SetSessionAuthorization':
    case 'ResetSessionAuthorization':
    case 'SetTimeZone':
    case 'SetPath':
    case 'SetRole':
    case 'Prepare':
    case 'Deallocate':
    case 'StartTransaction':
    case 'Commit':
    case 'Rollback':
    case 'TruncateTable':
    case 'Call':
    case 'CreateCatalog':
    case 'DropCatalog':
    case 'CreateSchema':
    case 'DropSchema':
    case 'RenameSchema':
    case 'CreateTable':
    case 'DropTable':
    case 'RenameTable':
    case 'SetProperties':
    case 'CommentOn':
    case 'AddColumn':
    case 'RenameColumn':
    case 'DropColumn':
    case 'SetColumnType':
    case 'DropNotNullConstraint':
    case 'CreateView':
    case 'DropView':
    case 'RenameView':
    case 'RefreshView':
    case 'CreateMaterializedView':
    case 'DropMaterializedView':
    case 'RenameMaterializedView':
    case 'SetAuthorization':
    case 'CreateFunction':
    case 'DropFunction':
    case 'CreateRole':
    case 'DropRole':
    case 'GrantRoles':
    case 'RevokeRoles':
    case 'Grant':
    case 'Revoke':
    case 'Deny':
      return 'DATA_DEFINITION'
    default:
      return unreachable(statement)
  }
}

/**
 * An executed text cannot execute the client's prepared statements. This bounds the recursion by the text's own
 * nesting.
 */
const NO_OTHERS = { preparedStatements: {} }
