import type pg from 'pg'
import type { KeyObject } from 'node:crypto'
import type { ExportedAnchor } from '../../events/audit/anchor.ts'
import type { Archive } from '../../events/archive/archive.ts'
import type { AuditedKeys } from '../../events/audit/encrypted-data.ts'
import type { Finding } from '../../events/audit/finding.ts'
import type { EventReader } from '../../events/event-log.ts'
import type { RecordStore } from '../../events/record-store.ts'

/** The input of an audit: the log to check, and the data to compare it with. */
export interface VerifyOptions {
  /** Must be open. */
  readonly store: Pick<RecordStore, 'fetch' | 'end' | 'endMayLag' | 'start'>
  readonly partitions: number
  /** Database of the read models; it must be migrated. */
  readonly database: pg.ClientConfig
  /** Anchors that were exported: the log must match what they signed. */
  readonly exported?: readonly ExportedAnchor[]
  /** Keys that are trusted; absent: the keys of the exported anchors, else the log's first. */
  readonly keys?: readonly KeyObject[]
  /** Keys of encrypted data; without them the data is not checked. */
  readonly dataKeys?: AuditedKeys
  /** The log to compare the read models with; absent: they are not compared. */
  readonly compareWith?: EventReader
  /** The archive of the records that left the log, by the log's id. */
  readonly archiveOf?: (logId: string) => Archive
  /** The folder of the queries that left the read models, by the log's id. */
  readonly queriesFolderOf?: (logId: string) => string
  readonly onFinding: (finding: Finding) => void
}
