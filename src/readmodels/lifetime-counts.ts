import pg from 'pg'

/** What all coordinators before this one counted, as far as the read models tell. */
export interface LifetimeCounts {
  readonly queries: readonly {
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
  }[]
  /** Tasks of ended queries. */
  readonly tasks: readonly { readonly state: string; readonly retryReason: string | null; readonly count: number }[]
  readonly events: readonly { readonly type: string; readonly count: number }[]
}

/** Counting years of history may take this long; then the counters begin at 0, as after any other restart. */
const PATIENCE_MS = 10_000

/**
 * Counts what is in the read models at the moment of the call, beside whatever is written afterwards: a snapshot is
 * taken before it resolves, and read while the caller goes on.
 * @param epoch this coordinator's: its own events it counts itself
 * @param since when that epoch began, ISO: what ended since, this coordinator counts
 */
export async function beginLifetimeCounts(
  connection: pg.ClientConfig,
  epoch: number,
  since: string,
): Promise<{ readonly counts: Promise<LifetimeCounts> }> {
  const client = new pg.Client({ ...connection, application_name: 'quipu counts', statement_timeout: PATIENCE_MS })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query('begin isolation level repeatable read read only')
    await client.query('select from m.checkpoints limit 1')
  } catch (error) {
    await client.end().catch(() => {})
    throw error
  }
  const counts = read(client, epoch, since).finally(() => client.end().catch(() => {}))
  counts.catch(() => {})
  return { counts }
}

async function read(client: pg.Client, epoch: number, since: string): Promise<LifetimeCounts> {
  const rows = async <R>(text: string, values: readonly unknown[] = []): Promise<R[]> =>
    (await client.query(text, [...values])).rows as R[]
  return {
    queries: await rows(
      `select state, error_type as "errorType", error_name as "errorName", query_type as "queryType", route,
              resource_group as "resourceGroup", count(*)::float8 as count,
              coalesce(sum(cpu_ms), 0)::float8 / 1000 as "cpuSeconds",
              coalesce(sum(processed_input_rows), 0)::float8 as "inputRows",
              coalesce(sum(raw_input_bytes), 0)::float8 as "inputBytes",
              coalesce(sum(output_rows), 0)::float8 as "outputRows",
              coalesce(sum(output_bytes), 0)::float8 as "outputBytes"
       from m.queries where ended_at < $1 group by 1, 2, 3, 4, 5, 6`,
      [since],
    ),
    tasks: await rows(
      `select t.state, t.retry_reason as "retryReason", count(*)::float8 as count
       from m.tasks t join m.queries q using (query_id) where q.ended_at < $1 group by 1, 2`,
      [since],
    ),
    // Epochs begin with an event that nobody appends.
    events: await rows(
      `select type, count(*)::float8 as count from m.query_events
       where epoch < $1 and type <> 'EpochStarted' group by 1`,
      [epoch],
    ),
  }
}
