-- Log-ins by an identity provider that are under way, and sessions that were ended before their time. Not breaking.
-- Not derived from the log: emptied, whoever is logging in begins again, and sessions of the last hours that were ended are valid again.

create table quipu_log.log_ins (
  -- SHA-256 of what the address names at which the token is fetched.
  id bytea primary key,
  -- SHA-256 of the `state` that the identity provider gives back, and of the cookie of the browser that it was given to.
  state bytea unique,
  browser bytea not null,
  -- Keyed hash of the address of that browser: only for counting.
  source bytea not null,
  -- asked: at the identity provider; returned: came back once; done: the token waits; taken: nothing waits any more.
  phase text not null check (phase in ('asked', 'returned', 'done', 'taken')),
  -- Encrypted with a key of the cluster's secret: what the answer is checked by, then the outcome.
  sealed bytea not null,
  expires_at timestamptz not null
);

create index log_ins_source on quipu_log.log_ins (source);
create index log_ins_expiry on quipu_log.log_ins (expires_at);

create table quipu_log.ended_sessions (
  id bytea primary key,
  ended_at timestamptz not null default clock_timestamp(),
  -- Of the session itself: afterwards nobody need know.
  expires_at timestamptz not null
);

create index ended_sessions_ended on quipu_log.ended_sessions (ended_at);

revoke all on quipu_log.log_ins, quipu_log.ended_sessions from public;
