-- schema: read models
-- breaking: no
-- The events of acts on many queries, by act.

create index audit_log_acts on audit_log (left(details->>'actId', 64), sequence desc)
  where kind in ('ActStarted', 'ActProgressed', 'ActEnded');
