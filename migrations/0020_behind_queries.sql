-- schema: read models
-- breaking: no
-- The program behind a query, what the client said about itself, and the shape of the statement.

alter table queries
  add column app text,
  add column app_object text,
  add column app_user text,
  add column client_tags jsonb,
  add column client_info text,
  add column groups jsonb,
  add column user_agent text,
  add column remote_address text,
  add column fingerprint text,
  add column normalized_query text;

-- How the statement reaches a table: NULL if it names the table itself, else the views, the outermost first.
alter table table_access
  add column via jsonb;
