-- schema: read models
-- breaking: no
-- Clusters that answer delegated statements: whether a file describes them, what operators asked for, and their health.

create table clusters (
  name text primary key,
  url text not null,
  cluster_group text not null,
  digest text not null,
  present boolean not null,
  state text not null,
  state_by text,
  state_reason text,
  state_since timestamptz,
  health text not null,
  health_reason text,
  health_since timestamptz not null,
  last_sequence bigint not null
);
