import pg from 'pg'
import { ArchiveDamaged } from '../archive/archived-records.ts'
import type { RestoreTarget } from '../archive/restore-log.ts'
import { readEnvelope } from '../envelope.ts'
import { LogUnavailable, MisconfiguredLog } from '../event-log.ts'
import { formatSeen } from '../fold.ts'
import type { LogPosition, StoredRecord } from '../record-store.ts'
import { parseJson } from '../../shared/parse-json.ts'
import { migrate } from './migrate.ts'
import { EVENTS_IN_PARTITION, makeEventPartition } from './partitions.ts'
import { KEEP_HEADS } from './statements.ts'

const INSERT_RECORDS = `insert into quipu_log.events
  (position, kind, epoch, writer, number, stream, sequence, time, seen, data)
select * from rows from (unnest($1::bigint[]), unnest($2::text[]), unnest($3::bigint[]), unnest($4::text[]),
  unnest($5::bigint[]), unnest($6::text[]), unnest($7::int[]), unnest($8::timestamptz[]), unnest($9::text[]),
  unnest($10::text[])) as r`

const INSERT_START = `insert into quipu_log.log_start (position, epoch, writer, number, count, hash, log_id)
values ($1, $2, $3, $4, $5, $6, $7)`

/**
 * Runs work with a database without a log, which has the log once all records are written. It is one transaction, so
 * that no process takes a part for the whole.
 * @throws MisconfiguredLog when the database already has a log
 */
export async function withPostgresTarget<T>(
  database: pg.ClientConfig,
  work: (target: RestoreTarget) => Promise<T>,
): Promise<T> {
  await migrate(database)
  const client = new pg.Client({ ...database, application_name: 'quipu restore' })
  client.on('error', () => {})
  await client.connect()
  let made = -1n
  const ask = (text: string, values: readonly unknown[] = []): Promise<pg.QueryResult> =>
    client.query(text, [...values]).catch((cause: Error) => {
      throw new LogUnavailable(`The database refuses the records: ${cause.message}`, { cause })
    })
  try {
    return await work({
      async begin(logId, [from], heads) {
        await ask('begin')
        await ask('lock table quipu_log.events in exclusive mode')
        const { rows } = await ask(
          'select exists (select from quipu_log.events) or exists (select from quipu_log.log_start) as there',
        )
        if ((rows as { there: boolean }[])[0]!.there)
          throw new MisconfiguredLog('The database already has an event log: restore into a database without one')
        made = from!.offset / EVENTS_IN_PARTITION - 1n
        if (from!.offset > 0n) await ask(INSERT_START, startOf(logId, from!))
        const values = [...heads.values()]
        await ask(KEEP_HEADS, [[...heads.keys()], values.map((head) => head.sequence), values.map((head) => head.hash)])
      },
      async put(_, records) {
        const last = records.at(-1)!.offset / EVENTS_IN_PARTITION + 1n
        while (made < last) await makeEventPartition(client, ++made)
        await ask(INSERT_RECORDS, columnsOf(records.map(rowOf)))
      },
      async finish() {
        await ask('commit')
      },
    })
  } finally {
    // Without a commit nothing was written.
    await client.end().catch(() => {})
  }
}

function startOf(logId: string, { offset, state }: LogPosition): unknown[] {
  const { epoch, writer, number, count, hash } = state
  return [String(offset), epoch, writer, number, count, hash, logId]
}

type Row = readonly [string, string, number, string, number, string, number, string, string, string]

/** Makes a row. @throws ArchiveDamaged for a record that no table of this log ever held */
function rowOf({ offset, header, stream, sequence, text }: StoredRecord): Row {
  const envelope = readEnvelope(text)
  const time = envelope?.time ?? (parseJson(text) as { time?: unknown } | undefined)?.time
  if (!header || typeof time !== 'string')
    throw new ArchiveDamaged(`The record at offset ${offset} was not written by a writer of the log`)
  const { kind, epoch, writer, number, seen } = header
  // A topic has the sequence only in the envelope; claims have none.
  const at = sequence ?? envelope?.sequence ?? 0
  return [String(offset), kind, epoch, writer, number, stream, at, time, formatSeen(seen), text]
}

function columnsOf(rows: readonly Row[]): unknown[][] {
  return Array.from({ length: 10 }, (_, column) => rows.map((row) => row[column]))
}
