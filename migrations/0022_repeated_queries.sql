-- schema: read models
-- breaking: no
-- Whether an earlier query had the same text over the same rows, and what a query waited for.

alter table queries
  add column cache_key text,
  add column queued_reason text;
