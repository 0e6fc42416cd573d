/** A view of `system.history`: the columns with their types, and its query, in SQL of Quipu. */
interface HistoryQuestion {
  readonly columns: Readonly<Record<string, string>>
  readonly sql: string
}

const TIME = 'timestamp(3) with time zone'

/** Columns that count queries and their work. */
const WORK = { queries: 'bigint', cpu_seconds: 'double', scanned_bytes: 'bigint', cost: 'double', currency: 'varchar' }
const WORK_SQL = `count(*) AS queries, sum(cpu_ms) / 1000 AS cpu_seconds, sum(raw_input_bytes) AS scanned_bytes,
  sum(cost) AS cost, currency`

const OBJECT = { catalog_name: 'varchar', schema_name: 'varchar', table_name: 'varchar' }

/**
 * Views that answer the questions of docs/questions.md. A reader of a view sees only the rows that they may see in the
 * tables below it.
 */
export const historyQuestions = {
  cost_by_day: {
    columns: {
      day: 'date',
      user: 'varchar',
      source: 'varchar',
      app: 'varchar',
      resource_group: 'varchar',
      cluster: 'varchar',
      ...WORK,
    },
    sql: `SELECT CAST(created AS date) AS day, user, source, app, resource_group, cluster, ${WORK_SQL}
FROM queries
GROUP BY CAST(created AS date), user, source, app, resource_group, cluster, currency`,
  },
  cost_by_group: {
    columns: { month: TIME, user_group: 'varchar', ...WORK },
    sql: `SELECT date_trunc('month', created) AS month, user_group, ${WORK_SQL}
FROM queries CROSS JOIN UNNEST(groups) AS g (user_group)
GROUP BY date_trunc('month', created), user_group, currency`,
  },
  cost_by_table: {
    columns: { month: TIME, ...OBJECT, ...WORK },
    sql: `SELECT date_trunc('month', q.created) AS month, t.catalog_name, t.schema_name, t.table_name, ${WORK_SQL}
FROM (SELECT DISTINCT query_id, catalog_name, schema_name, table_name FROM tables_read) t
JOIN queries q ON q.query_id = t.query_id
GROUP BY date_trunc('month', q.created), t.catalog_name, t.schema_name, t.table_name, currency`,
  },
  cost_by_object: {
    columns: { day: 'date', app: 'varchar', app_object: 'varchar', ...WORK },
    sql: `SELECT CAST(created AS date) AS day, app, app_object, ${WORK_SQL}
FROM queries WHERE app IS NOT NULL
GROUP BY CAST(created AS date), app, app_object, currency`,
  },
  column_readers: {
    columns: {
      ...OBJECT,
      column_name: 'varchar',
      user: 'varchar',
      access: 'varchar',
      masked: 'boolean',
      reads: 'bigint',
      last_read: TIME,
    },
    sql: `SELECT catalog_name, schema_name, table_name, column_name, user, access, masked, count(*) AS reads,
  max(time) AS last_read
FROM columns_read
GROUP BY catalog_name, schema_name, table_name, column_name, user, access, masked`,
  },
  impersonated_queries: {
    columns: { original_user: 'varchar', user: 'varchar', queries: 'bigint', first: TIME, last: TIME },
    sql: `SELECT original_user, user, count(*) AS queries, min(created) AS first, max(created) AS last
FROM queries WHERE original_user IS NOT NULL
GROUP BY original_user, user`,
  },
  table_usage: {
    columns: {
      ...OBJECT,
      kind: 'varchar',
      reads: 'bigint',
      last_read: TIME,
      writes: 'bigint',
      last_written: TIME,
      row_count: 'double',
      bytes: 'double',
    },
    sql: `SELECT t.table_cat AS catalog_name, t.table_schem AS schema_name, t.table_name, t.table_type AS kind,
  coalesce(r.reads, 0) AS reads, r.last_read, coalesce(w.writes, 0) AS writes, w.last_written, s.row_count, s.bytes
FROM system.jdbc.tables t
LEFT JOIN (
  SELECT catalog_name, schema_name, table_name, count(*) AS reads, max(time) AS last_read
  FROM tables_read GROUP BY catalog_name, schema_name, table_name
  UNION ALL
  SELECT catalog_name, schema_name, view_name, count(*), max(time)
  FROM views_read GROUP BY catalog_name, schema_name, view_name
) r ON r.catalog_name = t.table_cat AND r.schema_name = t.table_schem AND r.table_name = t.table_name
LEFT JOIN (
  SELECT catalog_name, schema_name, table_name, count(*) AS writes, max(time) AS last_written
  FROM tables_written GROUP BY catalog_name, schema_name, table_name
) w ON w.catalog_name = t.table_cat AND w.schema_name = t.table_schem AND w.table_name = t.table_name
LEFT JOIN system.metadata.table_sizes s
  ON s.catalog_name = t.table_cat AND s.schema_name = t.table_schem AND s.table_name = t.table_name
WHERE t.table_cat <> 'system' AND t.table_schem <> 'information_schema'`,
  },
  view_tables: {
    columns: { view: 'varchar', ...OBJECT, reads: 'bigint', last_read: TIME },
    sql: `SELECT view, catalog_name, schema_name, table_name, count(*) AS reads, max(time) AS last_read
FROM tables_read CROSS JOIN UNNEST(views) AS v (view)
WHERE access = 'VIEW'
GROUP BY view, catalog_name, schema_name, table_name`,
  },
  table_readers: {
    columns: { ...OBJECT, user: 'varchar', reads: 'bigint', first_read: TIME, last_read: TIME },
    sql: `SELECT catalog_name, schema_name, table_name, user, count(*) AS reads, min(time) AS first_read,
  max(time) AS last_read
FROM tables_read
GROUP BY catalog_name, schema_name, table_name, user`,
  },
  fingerprints: {
    columns: {
      fingerprint: 'varchar',
      normalized_query: 'varchar',
      queries: 'bigint',
      cpu_seconds: 'double',
      cacheable_share: 'double',
      last: TIME,
    },
    sql: `SELECT fingerprint, max(normalized_query) AS normalized_query, sum(queries) AS queries,
  sum(cpu_ms) / 1000 AS cpu_seconds,
  sum(CASE WHEN cache_key IS NULL THEN 0 ELSE cpu_ms * (queries - 1) / queries END) / nullif(sum(cpu_ms), 0)
    AS cacheable_share,
  max(last) AS last
FROM (
  SELECT fingerprint, cache_key, max(normalized_query) AS normalized_query, count(*) AS queries,
    sum(cpu_ms) AS cpu_ms, max(created) AS last
  FROM queries WHERE fingerprint IS NOT NULL AND state = 'FINISHED'
  GROUP BY fingerprint, cache_key
)
GROUP BY fingerprint`,
  },
  failures_by_week: {
    columns: {
      week: TIME,
      error_type: 'varchar',
      error_name: 'varchar',
      user: 'varchar',
      queries: 'bigint',
      last: TIME,
    },
    sql: `SELECT date_trunc('week', created) AS week, error_type, error_name, user, count(*) AS queries, max(created) AS last
FROM queries WHERE state = 'FAILED'
GROUP BY date_trunc('week', created), error_type, error_name, user`,
  },
  fingerprints_by_month: {
    columns: {
      month: TIME,
      fingerprint: 'varchar',
      normalized_query: 'varchar',
      queries: 'bigint',
      mean_ms: 'double',
      mean_scanned_bytes: 'double',
    },
    sql: `SELECT date_trunc('month', created) AS month, fingerprint, max(normalized_query) AS normalized_query,
  count(*) AS queries, sum(elapsed_ms) / count(*) AS mean_ms,
  CAST(sum(raw_input_bytes) AS double) / count(*) AS mean_scanned_bytes
FROM queries WHERE fingerprint IS NOT NULL AND state = 'FINISHED'
GROUP BY date_trunc('month', created), fingerprint`,
  },
  waits_by_group: {
    columns: {
      day: 'date',
      resource_group: 'varchar',
      queued_reason: 'varchar',
      queries: 'bigint',
      queued_seconds: 'double',
      longest_seconds: 'double',
    },
    sql: `SELECT CAST(created AS date) AS day, resource_group, queued_reason, count(*) AS queries,
  sum(queued_ms) / 1000 AS queued_seconds, max(queued_ms) / 1000 AS longest_seconds
FROM queries WHERE queued_reason IS NOT NULL
GROUP BY CAST(created AS date), resource_group, queued_reason`,
  },
  large_results: {
    columns: {
      query_id: 'varchar',
      created: TIME,
      user: 'varchar',
      app: 'varchar',
      remote_address: 'varchar',
      output_rows: 'bigint',
      output_bytes: 'bigint',
    },
    sql: `SELECT query_id, created, user, app, remote_address, output_rows, output_bytes
FROM queries WHERE query_type = 'SELECT' AND output_rows >= 100000`,
  },
  refused_objects: {
    columns: { user: 'varchar', action: 'varchar', object: 'varchar', attempts: 'bigint', first: TIME, last: TIME },
    sql: `SELECT user, action, object, sum(attempts) AS attempts, min(time) AS first, max(time) AS last
FROM refusals
GROUP BY user, action, object`,
  },
  // Without the reason, which is free text: a later erasure may be about a word in it. Without the hash of the subject.
  erasure_results: {
    columns: {
      erasure_id: 'varchar',
      user: 'varchar',
      original_user: 'varchar',
      kind: 'varchar',
      mentions: 'boolean',
      started: TIME,
      ended: TIME,
      result: 'varchar',
      queries: 'bigint',
      records: 'bigint',
      waiting: 'bigint',
      searched: 'bigint',
      remains: 'varchar',
    },
    sql: `SELECT erasure_id, user, original_user, kind, mentions, started, ended,
  CASE WHEN ended IS NULL THEN 'NOT_ENDED' WHEN remains = '[]' THEN 'NOTHING_LEFT' ELSE 'SOMETHING_LEFT' END AS result,
  queries, records, waiting, searched, remains
FROM erasures`,
  },
} as const satisfies Readonly<Record<string, HistoryQuestion>>
