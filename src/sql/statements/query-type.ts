import { unreachable } from '../../shared/unreachable.ts'
import type { QueryType } from '../front-end.ts'
import type { StatementText, ValidStatement } from '../parsed-statement.ts'
import type { Statement } from '../syntax/ast-statements.ts'

/** The kind of a statement in Trino's classification; undefined if the text does not parse. */
export function queryTypeOf(text: StatementText): QueryType | undefined {
  return typeOfText(text, true)
}

/** A statement that EXPLAIN or EXPLAIN ANALYZE explains. */
export interface ExplainedStatement {
  /** Its kind; undefined if the text that it executes does not parse. */
  readonly queryType: QueryType | undefined
  /** Whether the result is a plan as text, and neither JSON, nor a graph, nor `true`. */
  readonly asText: boolean
}

/** The statement that a text explains; undefined if it explains none. */
export function explainedBy(text: StatementText): ExplainedStatement | undefined {
  const parsed = text.parse()
  if (parsed.kind !== 'valid') return undefined
  const { tree } = parsed
  if (tree.kind !== 'Explain' && tree.kind !== 'ExplainAnalyze') return undefined
  const asText =
    tree.kind === 'ExplainAnalyze' ||
    tree.options.every((option) =>
      option.kind === 'ExplainType'
        ? option.type === 'LOGICAL' || option.type === 'DISTRIBUTED'
        : option.format === 'TEXT',
    )
  return { queryType: typeOf(tree.statement, parsed, true), asText }
}

/** @param mayExecute whether the text may execute the client's prepared statements: an executed text may not */
function typeOfText(text: StatementText, mayExecute: boolean): QueryType | undefined {
  const parsed = text.parse()
  return parsed.kind === 'valid' ? typeOf(parsed.tree, parsed, mayExecute) : undefined
}

function typeOf(statement: Statement, parsed: ValidStatement, mayExecute: boolean): QueryType | undefined {
  switch (statement.kind) {
    case 'Query':
      return 'SELECT'
    case 'Explain':
      return 'EXPLAIN'
    case 'ExplainAnalyze':
      return typeOf(statement.statement, parsed, mayExecute)
    case 'Execute':
      return parsed.inner && mayExecute ? typeOfText(parsed.inner, false) : undefined
    case 'ExecuteImmediate':
      return parsed.inner && typeOfText(parsed.inner, false)
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
