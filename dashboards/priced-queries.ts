/**
 * SQL for the cost of queries in Postgres, by the prices that the log recorded last: the common table expressions
 * `periods`, and `priced`, which has a row for each query with `cost` and `currency`. A test compares it with the costs of the REST
 * interface, which `src/readmodels/history/prices.ts` computes.
 */
export const PRICED_QUERIES = `in_force as (
  select case kind when 'FileTaken' then details->>'digest' else
    (select f->>'digest' from jsonb_array_elements(details->'files') f where f->>'file' = 'prices' limit 1) end as digest
  from m.audit_log
  where kind = 'ConfigurationLoaded' or (kind = 'FileTaken' and details->>'file' = 'prices')
  order by at desc, sequence desc limit 1
), parts as (
  select distinct on (part) (details->>'part')::int as part, e.data::jsonb->>'text' as text
  from m.audit_log a join m.query_events e on e.stream = a.stream and e.sequence = a.sequence and e."time" = a.at
  where a.kind = 'FileKept' and left(a.details->>'digest', 64) = (select digest from in_force)
), prices as (
  select string_agg(text, '' order by part)::jsonb as file from parts
), periods as (
  select since, lead(since) over (order by since) as until, file->>'currency' as currency,
    coalesce((period->>'cpuSecond')::float8, 0) as cpu_second,
    coalesce((period->>'terabyteScanned')::float8, 0) as terabyte_scanned,
    coalesce((period->>'clusterHour')::float8, 0) as cluster_hour, period->'clusterHours' as cluster_hours
  from prices, jsonb_array_elements(file->'periods') period, cast(period->>'from' as timestamptz) since
), priced as (
  select q.*, p.currency, coalesce(q.cpu_ms, 0) / 1000 * p.cpu_second
    + coalesce(q.raw_input_bytes, 0) * p.terabyte_scanned / 1e12
    + case when q.cluster is null then 0 else (coalesce(q.elapsed_ms, 0) - coalesce(q.queued_ms, 0)) / 3600000
      * coalesce((p.cluster_hours->>q.cluster)::float8, p.cluster_hour) end as cost
  from m.queries q left join periods p on q.created_at >= p.since and (p.until is null or q.created_at < p.until)
  where $__timeFilter(q.created_at)
)`
