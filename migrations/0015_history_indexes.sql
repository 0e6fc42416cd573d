-- schema: read models
-- breaking: no
-- after: rows
-- What somebody did by logging in, and was refused, is looked for by his name; how far a replay is by its id.

create index audit_log_persons on audit_log (left(details->>'user', 200), at desc)
  where kind in ('LoggedIn', 'AuthenticationFailed', 'AccessDenied');
create index audit_log_replays on audit_log (left(details->>'replayId', 64), sequence desc)
  where kind in ('ReplayProgressed', 'ReplayEnded');
