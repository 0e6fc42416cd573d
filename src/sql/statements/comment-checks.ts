import { shownName } from '../access-control.ts'
import type { CommentOn } from '../syntax/ast-definitions.ts'
import { columnNamed, OWNERSHIP, type ObjectChecks } from './object-checks.ts'

const NO_COMMENTS =
  ', but a materialized view with that name exists. Setting comments on materialized views is unsupported.'

export async function checkComment(checks: ObjectChecks, { type, name: written }: CommentOn): Promise<void> {
  switch (type) {
    case 'TABLE': {
      const { name, found } = await checks.find(written)
      const shown = shownName(name)
      if (found?.materialized) throw checks.missingTable(name, NO_COMMENTS)
      if (found?.view !== undefined) {
        throw checks.missingTable(
          name,
          `, but a view with that name exists. Did you mean COMMENT ON VIEW ${shown} IS ...?`,
        )
      }
      if (found === undefined) throw checks.error('TABLE_NOT_FOUND', `Table does not exist: ${shown}`)
      return checks.may(name, OWNERSHIP, 'comment table to')
    }
    case 'VIEW': {
      const { name, found } = await checks.find(written)
      const shown = shownName(name)
      if (found?.materialized) throw checks.error('TABLE_NOT_FOUND', `View '${shown}' does not exist${NO_COMMENTS}`)
      if (found?.view === undefined) {
        const hint = found && `, but a table with that name exists. Did you mean COMMENT ON TABLE ${shown} IS ...?`
        throw checks.error('TABLE_NOT_FOUND', `View '${shown}' does not exist${hint ?? ''}`)
      }
      return checks.may(name, OWNERSHIP, 'comment view to')
    }
    case 'COLUMN': {
      const column = written.parts.at(-1)!
      const parts = written.parts.slice(0, -1)
      if (parts.length === 0) throw checks.error('MISSING_TABLE', 'Table must be specified')
      const { name, found } = await checks.find({ ...written, parts })
      if (found === undefined) throw checks.error('TABLE_NOT_FOUND', `Table does not exist: ${shownName(name)}`)
      if (columnNamed(found, column) === undefined) {
        throw checks.error('COLUMN_NOT_FOUND', `Column does not exist: ${column.value.toLowerCase()}`)
      }
      return checks.may(name, OWNERSHIP, 'comment column to')
    }
  }
}
