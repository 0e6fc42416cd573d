-- schema: read models
-- breaking: no
-- after: rows
-- Filters of lists and of the history.

create index queries_app on queries (left(app, 100), created_at desc) where app is not null;
create index queries_fingerprint on queries (fingerprint, created_at desc) where fingerprint is not null;
