-- schema: read models
-- breaking: no
-- after: rows
-- Indexes over names that somebody else chose hold their beginnings alone: whoever asks by one says both. An index row has
-- 2704 bytes, a character up to four.

drop index queries_user;
create index queries_user on queries (left(user_name, 200), created_at desc);
drop index table_access_table;
create index table_access_table on table_access (left(catalog_name, 100), left(schema_name, 100), left(table_name, 200), at desc);
