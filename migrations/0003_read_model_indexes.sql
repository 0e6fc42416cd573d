-- schema: read models
-- breaking: no
-- after: rows
-- What lists filter and sort by; made after the rows when the tables are rebuilt.

create index queries_created on queries (created_at desc, query_id desc);
create index queries_user on queries (user_name, created_at desc);
create index queries_state on queries (state, created_at desc);
create index queries_ended on queries (ended_at desc);
create index queries_open on queries (created_at) where ended_at is null;
create index queries_elapsed on queries (elapsed_ms desc nulls last);
create index tasks_query on tasks (query_id, stage_id, task_number);
create index tasks_ended on tasks (ended_at desc);
create index tasks_open on tasks (created_at) where ended_at is null;
create index operators_query on operators (query_id, stage_id);
create index table_access_table on table_access (catalog_name, schema_name, table_name, at desc);
create index table_access_at on table_access (at);
create index audit_log_at on audit_log (at, kind);
create index dead_letters_open on dead_letters (projection, stream) where resolved_at is null;
