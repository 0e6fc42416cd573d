-- schema: read models
-- breaking: no
-- after: rows
-- Lists in the order of a figure with a filter. The indexes hold the hashes of the filtered columns after the order, so Postgres skips
-- queries that do not match without reading their rows. Hashes have a fixed size, while texts of users may exceed an index row.

drop index queries_by_elapsed;
drop index queries_by_cpu;
drop index queries_by_memory;
drop index queries_by_read;
drop index queries_by_rows;

do $$
declare
  figure record;
begin
  for figure in select * from (values
    ('elapsed', 'elapsed_ms'), ('queued', 'queued_ms'), ('cpu', 'cpu_ms'), ('memory', 'peak_memory_bytes'),
    ('read', 'raw_input_bytes'), ('rows', 'output_rows')) figures (name, source)
  loop
    execute format(
      'create index queries_by_%s on queries (coalesce(%I, 0), query_id, created_at, state, hashtext(user_name), hashtext(source),
         hashtext(app), hashtext(resource_group), hashtext(error_name), hashtext(cluster), hashtext(fingerprint),
         jsonb_hash_extended(groups, 0)) where ended_at is not null',
      figure.name, figure.source);
  end loop;
end $$;

-- A filter by a group looks for the sets of groups that have it, because Postgres estimates badly how many lists contain a value.
drop index queries_groups;
create index queries_groups on queries (jsonb_hash_extended(groups, 0), created_at desc)
  where ended_at is not null and groups is not null;

-- Totals, without reading the rows. The id excludes queries that the coordinator has in memory.
create index queries_totals on queries (created_at)
  include (query_id, state, cpu_ms, elapsed_ms, raw_input_bytes, output_rows, output_bytes)
  where ended_at is not null;

-- As queries_users and the others before, with the hash: the three conditions of a filter always hold together.
drop statistics queries_users, queries_apps, queries_sources, queries_resource_groups, queries_errors, queries_clusters;
create statistics queries_users (dependencies) on (hashtext(user_name)), (left(user_name, 200)), user_name from queries;
create statistics queries_apps (dependencies) on (hashtext(app)), (left(app, 100)), app from queries;
create statistics queries_sources (dependencies) on (hashtext(source)), (left(source, 100)), source from queries;
create statistics queries_resource_groups (dependencies) on (hashtext(resource_group)), (left(resource_group, 200)), resource_group
  from queries;
create statistics queries_errors (dependencies) on (hashtext(error_name)), (left(error_name, 100)), error_name from queries;
create statistics queries_clusters (dependencies) on (hashtext(cluster)), (left(cluster, 100)), cluster from queries;
create statistics queries_fingerprints (dependencies) on (hashtext(fingerprint)), fingerprint from queries;
