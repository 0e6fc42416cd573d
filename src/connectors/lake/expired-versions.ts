import { EngineError } from '../../shared/engine-error.ts'
import { durationMillis, durationOf, durationOfMillis } from '../../shared/quantities.ts'
import type { TableChange } from '../spi/table-writer.ts'
import type { ManifestContent } from './manifest.ts'

type ExpireVersions = Extract<TableChange, { kind: 'expireVersions' }>

/** Versions that were replaced before this instant, milliseconds since the epoch, cannot be read after the change. */
export function expiredBefore({ retention, startedAt }: ExpireVersions): number {
  return startedAt - (durationMillis(retention) ?? Infinity)
}

/**
 * Checks the argument of EXECUTE expire_snapshots, in the words of Trino's Iceberg connector.
 * @param leastMillis the shortest retention that the catalog allows
 * @throws EngineError INVALID_PROCEDURE_ARGUMENT
 */
export function checkRetention({ retention }: ExpireVersions, leastMillis: number): void {
  const given = durationOf(retention)
  if (given && given.amount / 1e6 >= leastMillis) return
  const shown = given?.shown ?? retention
  const message = `Retention specified (${shown}) is shorter than the minimum retention configured in the system (${durationOfMillis(leastMillis).shown}). Minimum retention can be changed with expireSnapshotsMinRetention in the file of the catalog`
  throw new EngineError('INVALID_PROCEDURE_ARGUMENT', message)
}

/**
 * A version can be read if the next one was made at this instant or later, milliseconds since the epoch.
 * @param content the newest version of the table
 * @param keptMillis how long the catalog keeps versions
 */
export function oldestReadable(content: ManifestContent, now: number, keptMillis: number): number {
  const expired = content.kind === 'table' ? content.expired : undefined
  return Math.max(now - keptMillis, expired?.before ?? -Infinity)
}
