-- What audits of the event log came to, for whoever watches them. Not breaking.
-- Not derived from the log, and nothing depends on it: it may be emptied.

create table quipu_log.audit_runs (
  ended_at timestamptz primary key default clock_timestamp(),
  -- Findings by kind; {} for an audit that found nothing.
  findings jsonb not null
);
