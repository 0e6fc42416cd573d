import type { StatementInput } from '../statement-input.ts'
import type { Query } from '../syntax/ast-query.ts'
import type { Statement } from '../syntax/ast-statements.ts'
import { checkNewOwner, checkPrivileges } from './access-checks.ts'
import {
  checkAddColumn,
  checkDropColumn,
  checkDropNotNull,
  checkRenameColumn,
  checkSetColumnType,
} from './column-checks.ts'
import { checkComment } from './comment-checks.ts'
import { ObjectChecks, OWNERSHIP } from './object-checks.ts'
import { checkDelete, checkInsert, checkMerge, checkTableExecute, checkTruncate, checkUpdate } from './row-checks.ts'
import { checkCreateSchema, checkDropSchema, checkRenameSchema } from './schema-checks.ts'
import {
  checkCreateTable,
  checkCreateTableAs,
  checkDropTable,
  checkRenameTable,
  type QueryColumns,
} from './table-checks.ts'
import {
  checkCreateMaterializedView,
  checkCreateView,
  checkDropMaterializedView,
  checkDropView,
  checkRefreshMaterializedView,
  checkSetMaterializedViewProperties,
  checkRenameMaterializedView,
  checkRenameView,
} from './view-checks.ts'

/**
 * Makes the checks that Trino makes on a statement that changes data or definitions, before a connector is called:
 * missing and existing objects, columns and their types.
 * @param columnsOf the columns of a query that the statement contains
 * @throws EngineError
 */
export async function checkWrite(
  input: StatementInput,
  node: Statement,
  columnsOf: (query: Query) => Promise<QueryColumns>,
): Promise<void> {
  const checks = new ObjectChecks(input, node)
  switch (node.kind) {
    case 'CreateSchema':
      return checkCreateSchema(checks, node.name, node.notExists)
    case 'DropSchema':
      return checkDropSchema(checks, node.name, { ifExists: node.exists, cascade: node.cascade })
    case 'RenameSchema':
      return checkRenameSchema(checks, node)
    case 'CreateTable':
      return checkCreateTable(checks, node)
    case 'CreateTableAsSelect':
      return checkCreateTableAs(checks, node, () => columnsOf(node.query))
    case 'DropTable':
      return checkDropTable(checks, node)
    case 'RenameTable':
      return checkRenameTable(checks, node)
    case 'SetProperties':
      if (node.type === 'MATERIALIZED_VIEW') return checkSetMaterializedViewProperties(checks, node.name)
      await checks.noView(node.name, 'Cannot set properties to a view in ALTER TABLE')
      await checks.table(node.name, false, [OWNERSHIP, 'set table properties to'])
      return
    case 'CommentOn':
      return checkComment(checks, node)
    case 'AddColumn':
      return checkAddColumn(checks, node)
    case 'RenameColumn':
      return checkRenameColumn(checks, node)
    case 'DropColumn':
      return checkDropColumn(checks, node)
    case 'SetColumnType':
      return checkSetColumnType(checks, node)
    case 'DropNotNullConstraint':
      return checkDropNotNull(checks, node)
    case 'CreateView':
      return checkCreateView(checks, node, () => columnsOf(node.query))
    case 'DropView':
      return checkDropView(checks, node.name, node.exists)
    case 'RenameView':
      return checkRenameView(checks, node)
    case 'CreateMaterializedView':
      return checkCreateMaterializedView(checks, node, () => columnsOf(node.query))
    case 'RefreshMaterializedView':
      return checkRefreshMaterializedView(checks, node.name)
    case 'DropMaterializedView':
      return checkDropMaterializedView(checks, node.name, node.exists)
    case 'RenameMaterializedView':
      return checkRenameMaterializedView(checks, node)
    case 'Insert':
      return checkInsert(checks, node, () => columnsOf(node.query))
    case 'Update':
      return checkUpdate(checks, node)
    case 'Delete':
      return checkDelete(checks, node)
    case 'Merge':
      return checkMerge(checks, node)
    case 'TruncateTable':
      return checkTruncate(checks, node)
    case 'Analyze':
      // No connector here supports ANALYZE. Trino reports this before it checks rights.
      await checks.table(node.table, false)
      return
    case 'TableExecute':
      return checkTableExecute(checks, node)
    case 'SetAuthorization':
      return checkNewOwner(checks, node)
    case 'Grant':
    case 'Revoke':
    case 'Deny':
      return checkPrivileges(checks, node)
    default:
      return
  }
}
