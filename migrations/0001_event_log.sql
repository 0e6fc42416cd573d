-- The event log and the small result pages beside it. Not breaking: the first migration.
-- This schema is the truth: it is never swapped, rebuilt or truncated.

create table quipu_log.events (
  position bigint primary key,
  kind text not null,
  epoch bigint not null,
  writer text not null,
  number bigint not null,
  stream text not null,
  sequence int not null,
  time timestamptz not null,
  seen text not null,
  data text not null
) partition by range (position);

comment on column quipu_log.events.position is 'Dense, assigned by the writer: the primary key is the compare-and-set that fences';
comment on column quipu_log.events.kind is 'event, or epoch for the record of a claim';
comment on column quipu_log.events.number is 'Counts a writer''s events within its epoch; 0 in a claim';
comment on column quipu_log.events.seen is 'offset|epoch|writer|number|count|hash: the fold of the log as the writer knew it';
comment on column quipu_log.events.data is 'The envelope of the event as compact JSON';

-- Not unique: a row that does not count must not block one that does.
create index events_stream on quipu_log.events (stream, sequence);
create index events_claims on quipu_log.events (epoch, position) where kind = 'epoch';

-- 10 million positions each; the writer makes the next ones ahead.
create table quipu_log.events_0 partition of quipu_log.events for values from (0) to (10000000);
create table quipu_log.events_1 partition of quipu_log.events for values from (10000000) to (20000000);

-- Pages of up to 64 kB, in log partitions of 10 minutes made ahead and dropped whole.
create table quipu_log.result_pages (
  stream text not null,
  token bigint not null,
  epoch bigint not null,
  created timestamptz not null,
  bytes bytea not null,
  primary key (stream, token, epoch, created)
) partition by range (created);

-- Rows come in already compressed or too small to gain.
alter table quipu_log.result_pages alter column bytes set storage external;

-- A jump of the clock must not stop the log: what no partition takes goes here.
create table quipu_log.result_pages_other partition of quipu_log.result_pages default;

revoke all on quipu_log.result_pages from public;
