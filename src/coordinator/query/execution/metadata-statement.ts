import type { NameAsWritten } from '../../../sql/statement-names.ts'
import type { StatementSurvey } from '../../front-end-threads/thread-messages.ts'

type Kind = NonNullable<StatementSurvey['kind']>

/** Statements that show names or change the session, and read no rows. */
const ABOUT_NAMES = new Set<Kind>(['ShowCatalogs', 'ShowSchemas', 'ShowTables', 'Use'])

export interface NamedObjects {
  readonly reads: readonly NameAsWritten[]
  readonly writes: readonly NameAsWritten[]
  readonly catalogs: readonly string[]
  readonly unresolved: boolean
}

/**
 * Whether a statement uses the catalogs of clusters only for their metadata, which this server answers: lists of names,
 * DESCRIBE, `information_schema`, USE.
 */
export function asksMetadata(
  kind: Kind | undefined,
  { reads, writes, catalogs, unresolved }: NamedObjects,
  isLocal: (catalog: string) => boolean,
): boolean {
  if (unresolved || kind === undefined) return false
  const isThere = ([catalog, ...rest]: NameAsWritten): boolean => rest.length === 2 && !isLocal(catalog!)
  if (writes.some(isThere)) return false
  if (ABOUT_NAMES.has(kind)) return true
  const readThere = reads.filter(isThere)
  // Tables such as `t$partitions` are in no list of a cluster: only the cluster knows their columns.
  if (readThere.some(([, , table]) => table!.includes('$'))) return false
  if (kind !== 'ShowColumns' && readThere.some(([, schema]) => schema !== 'information_schema')) return false
  const ofReads = new Set(readThere.map(([catalog]) => catalog!))
  return readThere.length > 0 && catalogs.every((catalog) => isLocal(catalog) || ofReads.has(catalog))
}

/** Whether a statement lists names of several catalogs, so that each cluster should have listed its own. */
export function listsCatalogs(kind: Kind | undefined, { reads }: Pick<NamedObjects, 'reads'>): boolean {
  return (
    kind === 'ShowCatalogs' ||
    reads.some(([catalog, schema]) => catalog === 'system' && (schema === 'jdbc' || schema === 'metadata'))
  )
}
