import pg from 'pg'
import { anchorSchema, type Anchor } from '../../events/audit/anchor.ts'
import { anchorKeySchema, type AnchorKeyRecord } from '../../events/audit/anchor-keys.ts'
import { READ_MODEL_SCHEMA } from '../../events/postgres/migrate.ts'
import type { QueryRows } from '../../events/projection.ts'

export interface StoredAnchor {
  readonly anchor: Anchor
  /** Time of the event. */
  readonly time: string
}

/** The last anchor of a log in the read models; wait for a barrier first. */
export async function readLastAnchor(query: QueryRows, logId: string): Promise<StoredAnchor | undefined> {
  const [last] = await readLastAnchors(query, logId, 1)
  return last
}

/** The last anchors of a log, the newest first; wait for a barrier first. */
export async function readLastAnchors(query: QueryRows, logId: string, limit: number): Promise<StoredAnchor[]> {
  const rows = await query(
    `select details, at from audit_log where kind = 'LogAnchored' and details->>'logId' = $1
     order by at desc, sequence desc limit $2`,
    [logId, limit],
  )
  return rows.map(toAnchor)
}

/** The first anchors of a log with a number above a given one. */
export async function readAnchorsAfter(
  query: QueryRows,
  { logId, number }: Pick<Anchor, 'logId' | 'number'>,
  limit: number,
): Promise<StoredAnchor[]> {
  const rows = await query(
    `select details, at from audit_log where kind = 'LogAnchored' and (details->>'number')::bigint > $1
     and details->>'logId' = $3 order by (details->>'number')::bigint limit $2`,
    [number, limit, logId],
  )
  return rows.map(toAnchor)
}

/** A log's records about the keys of its anchors, from the read models; wait for a barrier first. */
export async function readAnchorKeys(query: QueryRows, logId: string): Promise<AnchorKeyRecord[]> {
  const rows = await query(
    `select details from audit_log where kind = 'AnchorKeyVouched' and details->>'logId' = $1 order by at, sequence`,
    [logId],
  )
  return rows.map((row) => anchorKeySchema.parse(row['details']))
}

/** Numbers of the periods that have an event of this type, from the read models; wait for a barrier first. */
export async function readRecordedPeriods(
  query: QueryRows,
  type: 'LogArchived' | 'LogDropped',
): Promise<ReadonlySet<number>> {
  const rows = await query(
    `select (details->>'number')::bigint as number from audit_log where kind = $1
     and sequence > coalesce((select max(sequence) from audit_log where kind = 'LogContinued'), 0)`,
    [type],
  )
  return new Set(rows.map((row) => Number(row['number'])))
}

/** Number of parts of a file's text in the log, according to the read models. */
export async function readTextParts(query: QueryRows, digest: string): Promise<number> {
  const rows = await query(
    `select count(distinct details->>'part')::int as parts from audit_log
     where kind = 'FileKept' and left(details->>'digest', 64) = $1`,
    [digest],
  )
  return Number(rows[0]?.['parts'] ?? 0)
}

/** The newest beginnings and ends of epochs in the read models, at most 12, the oldest first. */
export async function readLastEpochs(
  query: QueryRows,
): Promise<{ readonly type: string; readonly time: string; readonly data: unknown }[]> {
  const rows = await query(
    `select kind, at, details from audit_log where kind in ('EpochStarted', 'EpochEnded')
     order by at desc, sequence desc limit 12`,
    [],
  )
  return rows
    .map((row) => ({ type: String(row['kind']), time: (row['at'] as Date).toISOString(), data: row['details'] }))
    .toReversed()
}

/** The sequence in the stream `system` before the last EpochStarted in the read models; 0 without one. */
export async function beforeLastEpoch(database: pg.ClientConfig): Promise<number> {
  const client = new pg.Client(database)
  client.on('error', () => undefined)
  await client.connect()
  try {
    const { rows } = await client.query<{ sequence: string }>(
      `select sequence from ${READ_MODEL_SCHEMA}.audit_log where kind = 'EpochStarted' order by at desc, sequence desc limit 1`,
    )
    return rows[0] ? Number(rows[0].sequence) - 1 : 0
  } finally {
    await client.end().catch(() => undefined)
  }
}

function toAnchor(row: Record<string, unknown>): StoredAnchor {
  return { anchor: anchorSchema.parse(row['details']), time: (row['at'] as Date).toISOString() }
}
