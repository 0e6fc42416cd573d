-- Queries whose rows have left the read models for Parquet files, in periods by their ends. Not breaking while nothing is archived;
-- a version before this one does not show what is. A rebuild makes all rows anew, and empties the table.

create table quipu_log.query_periods (
  number bigint generated always as identity primary key,
  -- Its name within the archive; files of another one never come to be there.
  folder text not null unique,
  queries bigint not null,
  created_from timestamptz not null,
  created_to timestamptz not null,
  ended_from timestamptz not null,
  ended_to timestamptz not null,
  first_id text not null,
  last_id text not null,
  -- By table: rows, the sum of their hashes as Postgres makes them, and the file's bytes and SHA-256.
  tables jsonb not null,
  -- As whom its queries ran.
  users jsonb not null
);

-- Up to which event of `system` the archive has forgotten what was to be forgotten.
create table quipu_log.queries_forgotten (
  one boolean primary key default true check (one),
  sequence bigint not null
);
insert into quipu_log.queries_forgotten (sequence) values (0);

revoke all on quipu_log.query_periods, quipu_log.queries_forgotten from public;
