-- Sessions of programs that go on without their user: what the identity provider gives them anew by. Not breaking.
-- Not derived from the log: emptied, whoever has such a session logs in again when it ends.

create table quipu_log.renewals (
  -- Id of the session.
  id bytea primary key,
  -- Encrypted with a key of the cluster's secret: the provider's refresh token, and whom it is of.
  sealed bytea not null,
  -- Somebody asks the provider: a refresh token may be good for one question.
  busy_until timestamptz not null default '-infinity',
  expires_at timestamptz not null
);

create index renewals_expiry on quipu_log.renewals (expires_at);

revoke all on quipu_log.renewals from public;
