-- schema: read models
-- breaking: no
-- Columns that a query reads, and what becomes of them: `table_ordinal` is that of its row in table_access.

create table columns_read (
  query_id text not null,
  ordinal integer not null,
  table_ordinal integer not null,
  column_name text not null,
  -- A column of the result, or of what is written; null where the column decides about rows, or is only read.
  output_name text,
  direct text,
  indirect jsonb not null,
  masked boolean not null,
  primary key (query_id, ordinal)
);
