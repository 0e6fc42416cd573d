import pg from 'pg'

/** Counts of the coordinators at one address in earlier epochs, according to the read models. */
export interface LifetimeCounts {
  /** Number of epochs that they won. */
  readonly epochs: number
  /** Undefined when data of a query was forgotten, or queries left the read models: their share is unknown. */
  readonly recorded: RecordedCounts | undefined
}

/** Counts of queries and events. */
export interface RecordedCounts {
  readonly queries: readonly QueryCounts[]
  /** Ended queries by user. */
  readonly users: readonly { readonly value: string; readonly count: number }[]
  readonly sources: readonly { readonly value: string | null; readonly count: number }[]
  /** Times of ended queries, by the requested bounds; `bucket` counts from 0, the last is above all bounds. */
  readonly durations: readonly {
    readonly state: string
    readonly route: string | null
    readonly bucket: number
    readonly count: number
    readonly seconds: number
  }[]
  /** Tasks of ended queries. */
  readonly tasks: readonly { readonly state: string; readonly retryReason: string | null; readonly count: number }[]
  /** Planned splits of ended queries. */
  readonly splits: readonly { readonly catalog: string; readonly count: number }[]
  /** Failed queries that should have written. */
  readonly refusedWrites: number
  readonly events: readonly { readonly type: string; readonly count: number; readonly bytes: number }[]
  /** Counts of events that count by themselves: ends of writes, lost pages, refusals; `detail` distinguishes them. */
  readonly facts: readonly { readonly type: string; readonly detail: string | null; readonly count: number }[]
}

interface QueryCounts {
  readonly state: string
  readonly errorType: string | null
  readonly errorName: string | null
  readonly queryType: string | null
  readonly route: string | null
  readonly resourceGroup: string
  readonly count: number
  readonly cpuSeconds: number
  readonly inputRows: number
  readonly inputBytes: number
  readonly outputRows: number
  readonly outputBytes: number
}

export interface LifetimeOptions {
  /** Base address of the coordinator: other addresses report their own counts. */
  readonly address: string
  /** Only epochs below this one: the process counts the events of its own epoch itself. */
  readonly before: number
  /** Upper bounds of the time buckets, seconds. */
  readonly bounds: readonly number[]
}

/** Time limit for counting years of history; after it the counters begin at 0, as after any other restart. */
const PATIENCE_MS = 10_000

/**
 * Counts the read models' contents for all epochs of one address. Call it once they hold all events that were valid
 * when the last of these epochs ended: a smaller count would look like a reset of the counter.
 */
export async function readLifetimeCounts(
  connection: pg.ClientConfig,
  options: LifetimeOptions,
): Promise<LifetimeCounts> {
  const client = new pg.Client({
    ...connection,
    application_name: 'quipu counts',
    connectionTimeoutMillis: PATIENCE_MS,
    statement_timeout: PATIENCE_MS,
  })
  client.on('error', () => {})
  await client.connect()
  const late = setTimeout(() => void client.end().catch(() => {}), PATIENCE_MS)
  try {
    await client.query('begin isolation level repeatable read read only')
    return await read(client, options)
  } finally {
    clearTimeout(late)
    await client.end().catch(() => {})
  }
}

/**
 * The event that ends a query has the epoch that counted it; later events, such as lost pages, may be of another epoch.
 */
const ENDED = `ended as materialized (
  select q.* from m.query_events e join m.queries q on q.query_id = e.stream
  where e.type in ('QueryFinished', 'QueryFailed') and e.epoch = any($1) and q.ended_at is not null)`

/** Length of an event's envelope as `sealEvent` of events/envelope.ts writes it. */
const ENVELOPE_BYTES = `length(format('{"sequence":%s,"epoch":%s,"type":"%s","v":%s,"time":"","prevhash":"%s","hash":"%s",'
    '"digest":"%s","enc":"%s","data":}', sequence, epoch, type, v, prevhash, hash, digest, enc))
  + 24 + coalesce(length(traceparent) + length(',"traceparent":""'), 0) + octet_length(to_json(data)::text)`

type Rows = <R>(text: string, values: readonly unknown[]) => Promise<R[]>

async function read(client: pg.Client, { address, before, bounds }: LifetimeOptions): Promise<LifetimeCounts> {
  const rows: Rows = async <R>(text: string, values: readonly unknown[]) =>
    (await client.query(text, [...values])).rows as R[]
  const own = await rows<{ epoch: string }>(
    `select details->>'epoch' as epoch from m.audit_log
     where kind = 'EpochStarted' and details->>'address' = $1 and (details->>'epoch')::bigint < $2`,
    [address, before],
  )
  const epochs = own.map(({ epoch }) => epoch)
  const [forgotten] = await rows<{ any: boolean }>(
    `select exists (select from m.query_events where forgotten and epoch = any($1))
       or exists (select from quipu_log.query_periods) as any`,
    [epochs],
  )
  return { epochs: epochs.length, recorded: forgotten?.any ? undefined : await readRecorded(rows, epochs, bounds) }
}

async function readRecorded(rows: Rows, epochs: readonly string[], bounds: readonly number[]): Promise<RecordedCounts> {
  const aggregated = (select: string): string => `(select coalesce(json_agg(r), '[]') from (${select}) r)`
  const [ofQueries] = await rows<Omit<RecordedCounts, 'events' | 'facts'>>(
    `with ${ENDED}
     select ${aggregated(`
         select state, error_type as "errorType", error_name as "errorName", query_type as "queryType", route,
                resource_group as "resourceGroup", count(*), coalesce(sum(cpu_ms), 0) / 1000 as "cpuSeconds",
                coalesce(sum(processed_input_rows), 0) as "inputRows", coalesce(sum(raw_input_bytes), 0) as "inputBytes",
                coalesce(sum(output_rows), 0) as "outputRows", coalesce(sum(output_bytes), 0) as "outputBytes"
         from ended group by 1, 2, 3, 4, 5, 6`)} as queries,
       ${aggregated('select user_name as value, count(*) from ended group by 1')} as users,
       ${aggregated('select source as value, count(*) from ended group by 1')} as sources,
       ${aggregated(`
         select state, route, count(*), sum(seconds) as seconds,
                (select count(*) from unnest($2::float8[]) as bound where bound < seconds) as bucket
         from ended, lateral (select
           greatest(0, (extract(epoch from ended_at - created_at) * 1000)::float8 / 1000) as seconds) t
         group by state, route, bucket`)} as durations,
       ${aggregated(`
         select t.state, t.retry_reason as "retryReason", count(*)
         from ended join m.tasks t using (query_id) group by 1, 2`)} as tasks,
       ${aggregated(`
         select c.key as catalog, sum(c.value::float8) as count
         from ended join m.stages s using (query_id), lateral jsonb_each_text(s.details->'splitsOf') c
         group by 1`)} as splits,
       (select count(*) from ended where state = 'FAILED' and query_id in (
         select query_id from m.table_access where mode = 'WRITE'))::int as "refusedWrites"`,
    [epochs, bounds],
  )
  return {
    ...ofQueries!,
    events: await rows(
      `select type, count(*)::float8 as count, sum(${ENVELOPE_BYTES})::float8 as bytes
       from m.query_events where epoch = any($1) group by 1`,
      [epochs],
    ),
    facts: await rows(
      `select type, coalesce(data::json->>'outcome', data::json->>'action') as detail,
              sum(coalesce((data::json->>'count')::float8, json_array_length(data::json->'tokens'), 1)) as count
       from m.query_events
       where epoch = any($1) and type in ('WriteCommitted', 'ResultPagesLost', 'AccessDenied') and enc = 'none'
       group by 1, 2`,
      [epochs],
    ),
  }
}
