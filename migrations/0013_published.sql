-- How far what is told to others outside has been told, by its name and the log. Not breaking.
-- Not derived from the log: an empty table begins at the end of the log.

create table quipu_log.published (
  name text not null,
  log_id text not null,
  checkpoint text not null,
  -- Valid events below the checkpoint: it never goes back.
  events bigint not null,
  saved_at timestamptz not null default clock_timestamp(),
  primary key (name, log_id)
);
