import type { MetadataPort } from '../../../sql/front-end.ts'
import type { StatementText } from '../../../sql/parsed-statement.ts'
import { tablesOfBareInserts } from '../../../sql/syntax/redact-secrets.ts'
import { isSecretName } from '../../../sql/syntax/secret-names.ts'
import { withDeadline } from '../../../shared/deadline.ts'
import type { QuerySession } from '../stream/events.ts'

/** A table that has not answered by then counts as having any column: on a busy machine a read of the columns takes seconds. */
const LOOK_MS = 5_000

/**
 * Whether an INSERT without a list of columns writes to a column with the name of a secret. Also true where this is
 * unknown: the table does not exist, or does not answer. Undefined, at once, for every other statement.
 * @throws HoldsLoop when parsing has blocked the event loop for `holdMs`
 */
export function insertsSecrets(
  metadata: Pick<MetadataPort, 'table'>,
  text: StatementText,
  session: Pick<QuerySession, 'catalog' | 'schema'>,
  holdMs?: number,
): Promise<boolean> | undefined {
  const tables = tablesOfBareInserts(text, { holdMs })
  return tables.length === 0 ? undefined : haveSecretColumns(metadata, tables, session)
}

/** Whether one of the tables has a column with the name of a secret, or this cannot be found out. */
export function haveSecretColumns(
  metadata: Pick<MetadataPort, 'table'>,
  tables: readonly (readonly string[])[],
  session: Pick<QuerySession, 'catalog' | 'schema'>,
): Promise<boolean> {
  const isSecret = async (parts: readonly string[]): Promise<boolean> => {
    const [table, schema = session.schema, catalog = session.catalog] = parts.toReversed()
    if (table === undefined || schema === undefined || catalog === undefined) return true
    const found = await metadata.table(catalog, schema, table)
    return found?.columns.some(({ name }) => isSecretName(name)) ?? true
  }
  const all = Promise.all(tables.map(isSecret)).then((found) => found.includes(true))
  return withDeadline(all, LOOK_MS, () => new Error('The tables do not answer')).catch(() => true)
}
