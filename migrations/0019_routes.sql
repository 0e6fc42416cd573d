-- schema: read models
-- breaking: no
-- The cluster that ran a delegated query, the id of the query there, and the routing rule that decided.

alter table queries
  add column cluster text,
  add column remote_query_id text,
  add column routing_rule text;
