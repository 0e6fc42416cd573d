-- Erasures that are under way, so that the next writer can continue them, and the results of earlier ones. Not breaking.
-- Not derived from the log. If the table is lost, an erasure that was under way must be requested again.

create table quipu_log.erasures (
  id text primary key,
  requested_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  -- The person or the value, encrypted with a key of the cluster's secret. Null once the erasure has ended.
  sealed text,
  -- The request without the person or the value: kind, keyed hash, reason, administrator.
  request jsonb not null,
  -- The number of the log, counted from the oldest, and the checkpoint up to which it was searched.
  progress jsonb,
  -- Streams whose data is being removed now: after an interruption this is repeated.
  working jsonb not null default '[]',
  -- Found queries that have not ended, or that this log cannot forget.
  waiting jsonb not null default '[]',
  result jsonb
);

revoke all on quipu_log.erasures from public;
