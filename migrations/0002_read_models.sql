-- schema: read models
-- breaking: no
-- Tables that projections fold events into. They lie in a schema of their own, first in the search path, and are
-- swapped whole at a rebuild: nothing here may be named with its schema, and nothing but projections may write.
-- Columns: what is filtered, sorted or summed; the rest is in "details". U+0000 is stored as U+FFFD.

create table queries (
  query_id text primary key,
  state text not null,
  user_name text not null,
  source text,
  catalog_name text,
  schema_name text,
  resource_group text not null,
  header_family text not null,
  query_type text,
  route text,
  update_type text,
  sql_text text not null,
  created_at timestamptz not null,
  planned_at timestamptz,
  execution_started_at timestamptz,
  last_event_at timestamptz not null,
  ended_at timestamptz,
  elapsed_ms double precision,
  queued_ms double precision,
  analysis_ms double precision,
  planning_ms double precision,
  cpu_ms double precision,
  scheduled_ms double precision,
  blocked_ms double precision,
  wall_ms double precision,
  peak_memory_bytes bigint,
  spilled_bytes bigint,
  raw_input_rows bigint,
  raw_input_bytes bigint,
  processed_input_rows bigint,
  processed_input_bytes bigint,
  output_rows bigint,
  output_bytes bigint,
  update_count bigint,
  total_tasks bigint,
  total_drivers bigint,
  completed_drivers bigint,
  total_splits bigint,
  completed_splits bigint,
  retries bigint not null,
  recoveries bigint not null,
  error_code integer,
  error_name text,
  error_type text,
  error_message text,
  trace_id text,
  partial boolean not null,
  result_lost boolean not null,
  -- An event of the query could not be applied: the row is what came before it. See dead_letters.
  incomplete boolean not null,
  last_sequence bigint not null,
  epoch bigint not null,
  details jsonb not null
);

create table stages (
  query_id text not null,
  stage_id integer not null,
  state text not null,
  distribution text not null,
  scheduled_at timestamptz,
  started_at timestamptz,
  ended_at timestamptz,
  total_tasks bigint not null,
  total_splits bigint not null,
  completed_splits bigint not null,
  cpu_ms double precision not null,
  wall_ms double precision not null,
  input_rows bigint not null,
  input_bytes bigint not null,
  output_rows bigint not null,
  output_bytes bigint not null,
  details jsonb not null,
  primary key (query_id, stage_id)
);

create table tasks (
  task_id text primary key,
  query_id text not null,
  stage_id integer not null,
  task_number bigint not null,
  attempt integer not null,
  retry_of text,
  retry_reason text,
  node_id text not null,
  node_url text not null,
  state text not null,
  created_at timestamptz not null,
  started_at timestamptz,
  ended_at timestamptz,
  last_heartbeat_at timestamptz not null,
  elapsed_ms double precision,
  queued_ms double precision,
  splits bigint not null,
  queued_splits bigint not null,
  running_splits bigint not null,
  completed_splits bigint not null,
  scheduled_ms double precision,
  cpu_ms double precision,
  blocked_ms double precision,
  wall_ms double precision,
  memory_bytes bigint,
  peak_memory_bytes bigint,
  spilled_bytes bigint,
  raw_input_rows bigint,
  raw_input_bytes bigint,
  processed_input_rows bigint,
  processed_input_bytes bigint,
  output_rows bigint,
  output_bytes bigint,
  error_name text,
  error_message text,
  details jsonb not null
);

create table operators (
  task_id text not null,
  pipeline_id integer not null,
  operator_id integer not null,
  query_id text not null,
  stage_id integer not null,
  operator_type text not null,
  engine_operator text not null,
  input_rows bigint not null,
  output_rows bigint not null,
  estimated_rows double precision,
  input_bytes bigint not null,
  output_bytes bigint not null,
  time_ms double precision not null,
  blocked_ms double precision not null,
  ended_at timestamptz,
  primary key (task_id, pipeline_id, operator_id)
);

create table nodes (
  node_id text primary key,
  url text not null,
  version text not null,
  role text not null,
  state text not null,
  cores double precision,
  memory_bytes bigint,
  joined_at timestamptz not null,
  changed_at timestamptz not null,
  reason text,
  last_failure jsonb,
  last_sequence bigint not null
);

create table table_access (
  query_id text not null,
  catalog_name text not null,
  schema_name text not null,
  table_name text not null,
  mode text not null,
  columns jsonb not null,
  user_name text not null,
  at timestamptz not null,
  primary key (query_id, catalog_name, schema_name, table_name, mode)
);

-- The stream `system`, and who killed what.
create table audit_log (
  stream text not null,
  sequence bigint not null,
  at timestamptz not null,
  kind text not null,
  user_name text,
  count bigint not null,
  action text,
  object text,
  remote_address text,
  query_id text,
  details jsonb not null,
  primary key (stream, sequence)
);

-- Every valid event as stored, by stream: time travel, /events, recovery of open queries, with either log.
create table query_events (
  "position" bigint not null,
  "partition" integer not null,
  stream text not null,
  sequence bigint not null,
  epoch bigint not null,
  type text not null,
  v integer not null,
  "time" timestamptz not null,
  traceparent text,
  prevhash text not null,
  hash text not null,
  digest text not null,
  enc text not null,
  data text not null,
  forgotten boolean not null,
  primary key (stream, sequence, "time")
) partition by range ("time");

create table checkpoints (
  name text not null,
  version integer not null,
  -- Whoever moves the checkpoint names the revision it saw: of two runners one finds another and starts again.
  revision bigint not null,
  checkpoint text not null,
  -- Valid events below the checkpoint, over all log partitions.
  events bigint not null,
  updated_at timestamptz not null,
  primary key (name, version)
);

create table dead_letters (
  projection text not null,
  stream text not null,
  sequence bigint not null,
  -- 'failed': could not be applied. 'parked': came after one of its stream.
  kind text not null,
  "position" bigint not null,
  "partition" integer not null,
  type text not null,
  v integer not null,
  "time" timestamptz not null,
  sqlstate text,
  error_message text,
  data text not null,
  resolved_at timestamptz,
  primary key (projection, stream, sequence)
);
