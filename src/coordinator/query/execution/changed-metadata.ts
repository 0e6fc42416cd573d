import type { StatementSurvey } from '../../front-end-threads/thread-messages.ts'
import type { ChangedScope } from '../../clusters/metadata/recent-values.ts'
import type { NamedObjects } from './metadata-statement.ts'

type Kind = NonNullable<StatementSurvey['kind']>

/** Statements that change rows, and no names, columns or types. */
const ROWS_ONLY = new Set<Kind>(['Insert', 'Delete', 'Update', 'Merge', 'TruncateTable', 'Analyze'])

/** The parts of a cluster's metadata that a statement may change. */
export function changedMetadata(
  { kind, readOnly }: Pick<StatementSurvey, 'kind' | 'readOnly'>,
  { writes, catalogs, unresolved }: NamedObjects,
): readonly ChangedScope[] {
  if (unresolved || kind === undefined) return readOnly ? [] : [{}]
  if (readOnly || ROWS_ONLY.has(kind)) return []
  // A change without a table is one of schemas.
  if (writes.length === 0) return catalogs.map((catalog) => ({ catalog }))
  return writes.map(([catalog, schema]) => ({
    ...(catalog !== undefined && { catalog }),
    ...(schema !== undefined && { schema }),
  }))
}
