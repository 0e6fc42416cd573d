-- Where the event log begins once its first records lie in its archive. Not breaking while nothing is archived; a version
-- before this one takes a log that begins later for one whose past is gone.

create table quipu_log.log_start (
  one boolean primary key default true check (one),
  -- The first position that is still there, and what all below fold to: rows before it went in the same transaction.
  position bigint not null,
  epoch bigint not null,
  writer text not null,
  number bigint not null,
  count bigint not null,
  hash text not null,
  log_id text not null
);

-- Last events of streams that never end (nodes, `system`), as far as they are archived: what follows goes on from there.
create table quipu_log.archived_heads (
  stream text primary key,
  sequence int not null,
  hash text not null
);
