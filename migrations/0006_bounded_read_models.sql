-- schema: read models
-- breaking: no
-- An index row has 2704 bytes. Names of tables may come from anywhere, three of them make a key: the key is their number.

alter table table_access add column ordinal integer;
update table_access t set ordinal = numbered.ordinal
from (
  select ctid as place, row_number() over (partition by query_id order by catalog_name, schema_name, table_name, mode) - 1 as ordinal
  from table_access
) numbered
where t.ctid = numbered.place;
alter table table_access alter column ordinal set not null;
alter table table_access drop constraint table_access_pkey;
alter table table_access add primary key (query_id, ordinal);
