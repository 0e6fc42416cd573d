-- schema: read models
-- breaking: no
-- after: rows
-- Totals of the queries with a value. The indexes have all columns of totals, so Postgres does not read the rows: those of 100,000
-- queries are spread over all pages of the table. An index row has at most 2,704 bytes, so longer texts are in indexes of their own.

-- History finds open queries by queries_user too, so that index stays.

drop index queries_source, queries_resource_group, queries_error, queries_cluster;
drop statistics queries_users, queries_sources, queries_resource_groups, queries_errors, queries_clusters;

do $$
declare
  filter record;
begin
  for filter in select * from (values
    ('user_totals', 'queries_users', 'user_name', 200), ('source', 'queries_sources', 'source', 100),
    ('resource_group', 'queries_resource_groups', 'resource_group', 200), ('error', 'queries_errors', 'error_name', 100),
    ('cluster', 'queries_clusters', 'cluster', 100)) filters (name, statistics, source, most)
  loop
    execute format(
      'create index queries_%1$s on queries (%2$I, created_at desc, state)
         include (query_id, cpu_ms, elapsed_ms, raw_input_bytes, output_rows, output_bytes)
         where ended_at is not null and %2$I is not null and coalesce(length(%2$I), 0) <= %3$s',
      filter.name, filter.source, filter.most);
    if filter.name <> 'user_totals' then
      execute format(
        'create index queries_%1$s_long on queries (left(%2$I, %3$s), created_at desc)
           where ended_at is not null and coalesce(length(%2$I), 0) > %3$s',
        filter.name, filter.source, filter.most);
    end if;
    -- As before, with the length: Postgres expects that a third of all rows pass "<=" without statistics.
    execute format(
      'create statistics %1$I (dependencies)
         on (hashtext(%2$I)), (coalesce(length(%2$I), 0)), (left(%2$I, %3$s)), %2$I from queries',
      filter.statistics, filter.source, filter.most);
  end loop;
end $$;

-- Queries for each list of groups. Without statistics Postgres expects 1/200 of all queries for each list.
create statistics queries_group_sets on (jsonb_hash_extended(groups, 0)) from queries;

-- Lists in the order of a figure also skip queries that others posted (last column).
drop statistics queries_posters;
create statistics queries_posters (dependencies)
  on (hashtext(details->'session'->>'originalUser')), (left(details->'session'->>'originalUser', 200)),
  (details->'session'->>'originalUser') from queries;

do $$
declare
  figure record;
begin
  for figure in select * from (values
    ('elapsed', 'elapsed_ms'), ('queued', 'queued_ms'), ('cpu', 'cpu_ms'), ('memory', 'peak_memory_bytes'),
    ('read', 'raw_input_bytes'), ('rows', 'output_rows')) figures (name, source)
  loop
    execute format('drop index queries_by_%s', figure.name);
    execute format(
      'create index queries_by_%s on queries (coalesce(%I, 0), query_id, created_at, state, hashtext(user_name), hashtext(source),
         hashtext(app), hashtext(resource_group), hashtext(error_name), hashtext(cluster), hashtext(fingerprint),
         jsonb_hash_extended(groups, 0), hashtext(details->''session''->>''originalUser'')) where ended_at is not null',
      figure.name, figure.source);
  end loop;
end $$;
