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
