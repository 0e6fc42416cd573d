-- schema: read models
-- breaking: no
-- after: rows
-- Who posted queries that run as somebody else finds them: few are.

create index queries_poster on queries (left(details->'session'->>'originalUser', 200), created_at desc)
  where details->'session'->>'originalUser' is not null;
