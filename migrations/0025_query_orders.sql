-- schema: read models
-- breaking: no
-- after: rows
-- Orders and filters of lists of queries. A row changes until its query has ended, so only ended queries are in the indexes.

create index queries_by_elapsed on queries (coalesce(elapsed_ms, 0), query_id) where ended_at is not null;
create index queries_by_cpu on queries (coalesce(cpu_ms, 0), query_id) where ended_at is not null;
create index queries_by_memory on queries (coalesce(peak_memory_bytes, 0), query_id) where ended_at is not null;
create index queries_by_read on queries (coalesce(raw_input_bytes, 0), query_id) where ended_at is not null;
create index queries_by_rows on queries (coalesce(output_rows, 0), query_id) where ended_at is not null;
create index queries_source on queries (left(source, 100), created_at desc) where ended_at is not null;
create index queries_resource_group on queries (left(resource_group, 200), created_at desc) where ended_at is not null;
create index queries_error on queries (left(error_name, 100), created_at desc) where ended_at is not null and error_name is not null;
create index queries_cluster on queries (left(cluster, 100), created_at desc) where ended_at is not null and cluster is not null;
create index queries_groups on queries using gin (groups jsonb_path_ops) where ended_at is not null;
create index queries_tags on queries using gin (client_tags jsonb_path_ops) where ended_at is not null;

-- A filter compares the beginning of a text for its index, and the whole text. Without these statistics the planner multiplies the
-- shares of both, and reads all queries with a frequent text instead of the first ones in the wanted order.
create statistics queries_users (dependencies) on (left(user_name, 200)), user_name from queries;
create statistics queries_apps (dependencies) on (left(app, 100)), app from queries;
create statistics queries_sources (dependencies) on (left(source, 100)), source from queries;
create statistics queries_resource_groups (dependencies) on (left(resource_group, 200)), resource_group from queries;
create statistics queries_errors (dependencies) on (left(error_name, 100)), error_name from queries;
create statistics queries_clusters (dependencies) on (left(cluster, 100)), cluster from queries;
