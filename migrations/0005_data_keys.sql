-- Keys of the data of queries, for a log whose records cannot be rewritten. Not breaking.
-- This is no read model: without it, and without the file in the data folders, events of queries cannot be read.

-- A block is a binary tree of secrets; its leaves are the keys of as many queries as it has.
create table quipu_log.key_blocks (
  id text primary key,
  -- The topic whose events are encrypted.
  log text not null,
  -- Of the writer that gives its keys to queries.
  epoch bigint not null,
  depth smallint not null
);

create index key_blocks_log on quipu_log.key_blocks (log, epoch);

create sequence quipu_log.data_key_changes;

create table quipu_log.data_keys (
  block text not null references quipu_log.key_blocks,
  -- From the root: a bit a level. '' is the root, from which all keys of the block follow.
  path text not null,
  -- Null where a key was forgotten: no secret above it is there any more.
  secret bytea,
  changed bigint not null default nextval('quipu_log.data_key_changes'),
  primary key (block, path)
);

revoke all on quipu_log.data_keys from public;
