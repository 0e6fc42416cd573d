import type { RecordBatch } from '../record-store.ts'

export interface PostgresStatement {
  readonly name: string
  readonly text: string
  readonly values: unknown[]
  /** How long to wait for the answer, if not as long as the connection's own setting. */
  readonly query_timeout?: number
}

/** After this time the answer to a small append counts as unknown. Sending again at the same positions is harmless. */
export const ANSWER_TIMEOUT_MS = 3000

/**
 * Inserts all rows of an append from two text parameters, which SQL splits: arrays would cost a third more on both
 * sides. The condition refuses rows that would leave a gap (the log went backwards), and batches that begin an existing
 * stream.
 */
const INSERT_EVENTS = `insert into quipu_log.events
  (position, kind, epoch, writer, number, stream, sequence, time, seen, data)
select $1::bigint + o - 1, $2::text, $3::bigint, $4::text, $5::bigint + o - 1,
  split_part(h, E'\\t', 1), split_part(h, E'\\t', 2)::int, split_part(h, E'\\t', 3)::timestamptz, $6::text, d
from rows from (string_to_table($7::text, E'\\n'), string_to_table($8::text, E'\\n')) with ordinality as u(h, d, o)
cross join (select pg_notify('quipu_log', '')) as n
where ($1::bigint = 0 or exists (select from quipu_log.events where position = $1::bigint - 1))
  and not exists (
    select from quipu_log.events where kind = 'event' and stream = any(string_to_array($9::text, E'\\n')))
  and not exists (select from quipu_log.archived_heads where stream = any(string_to_array($9::text, E'\\n')))`

/** Inserts pages. They follow one another in one binary parameter; the text parameter gives their positions in it. */
const INSERT_PAGES = `insert into quipu_log.result_pages (stream, token, epoch, created, bytes)
select split_part(h, E'\\t', 1), split_part(h, E'\\t', 2)::bigint, split_part(h, E'\\t', 3)::bigint,
  split_part(h, E'\\t', 4)::timestamptz,
  substring($PAGES::bytea from split_part(h, E'\\t', 5)::int for split_part(h, E'\\t', 6)::int)
from string_to_table($HEADERS::text, E'\\n') as h
on conflict do nothing`

const INSERT_BOTH = `with inserted as (${INSERT_EVENTS} returning 1),
pages as (${INSERT_PAGES.replace('$PAGES', '$11').replace('$HEADERS', '$10')})
select count(*)::int as rows from inserted`

/** The insert of a batch. Its answer has the number of rows in `rowCount`, or with pages in the column `rows`. */
export function insertStatement(batch: RecordBatch): PostgresStatement {
  const { records, pages } = batch
  let headers = ''
  let data = ''
  for (const record of records) {
    headers += `${headers && '\n'}${record.stream}\t${record.sequence}\t${record.time}`
    data += `${data && '\n'}${record.text}`
  }
  const { offset, state } = batch.seen
  const values: unknown[] = [
    String(offset),
    batch.kind,
    batch.epoch,
    batch.writer,
    records[0]!.number,
    `${offset}|${state.epoch}|${state.writer}|${state.number}|${state.count}|${state.hash}`,
    headers,
    data,
    batch.newStreams.join('\n'),
  ]
  if (pages.length === 0) return { name: 'append', text: INSERT_EVENTS, values }
  const packed = packPages(pages)
  return { name: 'append-pages', text: INSERT_BOTH, values: [...values, packed.headers, packed.bytes] }
}

/** How long a slow disk, one that writes a megabyte per second, may take for a batch, milliseconds. */
export function timeFor({ records, pages }: Pick<RecordBatch, 'records' | 'pages'>): number {
  let bytes = 0
  for (const { text } of records) bytes += text.length
  for (const page of pages) bytes += page.bytes.length
  return ANSWER_TIMEOUT_MS + Math.ceil(bytes / 1000)
}

function packPages(pages: RecordBatch['pages']): { headers: string; bytes: Buffer } {
  let from = 1
  const headers = pages.map((page) => {
    const line = [page.stream, page.token, page.epoch, page.created, from, page.bytes.length].join('\t')
    from += page.bytes.length
    return line
  })
  return { headers: headers.join('\n'), bytes: Buffer.concat(pages.map((page) => page.bytes)) }
}

/** Reads up to the given number of records, fewer when they are large: some megabytes, and at least one record. */
export const SELECT_RECORDS = `select position, kind, epoch, writer, number, seen, stream, sequence, data from (
  select *, sum(pg_column_size(data)) over (order by position rows unbounded preceding) - pg_column_size(data) as before
  from quipu_log.events where position >= $1 order by position limit $2
) as sized where before < 8388608 order by position`

export const SELECT_END = 'select position from quipu_log.events order by position desc limit 1'

/**
 * A row counts when its writer made the claim that is in force at its position. Claims are few, so this needs no fold
 * of the log. The claim in force at the log's beginning may be archived. The primary key prevents repeated and
 * overtaking numbers; if they occur, the stream's own hash chain shows them.
 */
const VALID_ROWS = `from quipu_log.events e
left join quipu_log.log_start s on true
left join lateral (
  select c.epoch, c.writer from quipu_log.events c
  where c.kind = 'epoch' and c.position < e.position order by c.epoch desc, c.position limit 1
) claim on true
where e.stream = $1 and e.kind = 'event'
  and case when claim.epoch > s.epoch or s.epoch is null
    then claim.epoch = e.epoch and claim.writer = e.writer else s.epoch = e.epoch and s.writer = e.writer end`

export const SELECT_STREAM = `select e.position, e.stream, e.sequence, e.data ${VALID_ROWS}
and e.sequence > $2 and e.position < $3 order by e.sequence, e.position limit $4`

export const SELECT_HEAD = `select e.sequence, e.data ${VALID_ROWS} order by e.sequence desc, e.position limit 1`

/** Lock for processes that rewrite files of a log's archive; its connection holds it until it ends. */
export const LOCK_ARCHIVE = `select pg_advisory_lock(hashtextextended('quipu archive ' || $1::text, 0))`

export const SELECT_CLAIMED_SINCE = `select exists (
  select from quipu_log.events where kind = 'epoch' and epoch > $1::bigint) as claimed`

export const SELECT_START = 'select position, epoch, writer, number, count, hash, log_id from quipu_log.log_start'

export const SELECT_FIRST_CLAIM = `select data from quipu_log.events where kind = 'epoch' order by epoch, position limit 1`

export const SELECT_ARCHIVED_HEAD = 'select sequence, hash from quipu_log.archived_heads where stream = $1'

export const KEEP_HEADS = `insert into quipu_log.archived_heads (stream, sequence, hash)
select * from rows from (unnest($1::text[]), unnest($2::int[]), unnest($3::text[])) as h (stream, sequence, hash)
on conflict (stream) do update set sequence = excluded.sequence, hash = excluded.hash
where archived_heads.sequence < excluded.sequence`

/**
 * Moves the start of the log and deletes the rows before it, only for the writer of the newest epoch. Deletes nothing
 * when the start does not move.
 */
export const DROP_RECORDS = `with moved as (
  insert into quipu_log.log_start as s (position, epoch, writer, number, count, hash, log_id)
  select $1::bigint, $2::bigint, $3::text, $4::bigint, $5::bigint, $6::text, $7::text
  where not exists (select from quipu_log.events where kind = 'epoch' and epoch > $8::bigint)
  on conflict (one) do update set position = excluded.position, epoch = excluded.epoch, writer = excluded.writer,
    number = excluded.number, count = excluded.count, hash = excluded.hash
    where s.position < excluded.position and s.log_id = excluded.log_id
  returning 1
), gone as (
  delete from quipu_log.events where position < $1::bigint and exists (select from moved) returning 1
)
select (select count(*) from moved)::int as moved, (select count(*) from gone)::int as gone`

export const SELECT_PAGE = `select bytes from quipu_log.result_pages
where stream = $1 and token = $2 order by epoch desc, created desc limit 1`

export const SELECT_FORGETTABLE = `select e.position, e.data ${VALID_ROWS} and e.sequence = any($2)`

export const UPDATE_DATA = `update quipu_log.events e set data = f.data
from rows from (unnest($1::bigint[]), unnest($2::text[])) as f (position, data) where e.position = f.position`

export const DELETE_PAGES = 'delete from quipu_log.result_pages where stream = $1'

/**
 * Ends sessions that block the end of the log without finishing: a writer frozen between sending and committing. Only
 * row locks of writers count; readers and maintenance hold others.
 */
export const TERMINATE_BLOCKERS = `select pg_terminate_backend(l.pid) from pg_locks l
join pg_inherits i on i.inhrelid = l.relation
where i.inhparent = 'quipu_log.events'::regclass and l.mode = 'RowExclusiveLock' and l.pid <> pg_backend_pid()
  and l.database = (select oid from pg_database where datname = current_database())`
