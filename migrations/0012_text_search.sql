-- schema: read models
-- breaking: no
-- after: rows
-- What lists look for in the beginnings of statements is found by its groups of three letters. A row changes until its query has
-- ended and costs an entry a group each time: only ended ones are in the index. Where Postgres lacks pg_trgm texts are read one after
-- the other, as before.

do $$
declare
  place name;
begin
  begin
    create extension if not exists pg_trgm with schema quipu_log;
  exception when others then
    raise notice 'Searching texts has no index: %', sqlerrm;
  end;
  select nspname into place from pg_extension join pg_namespace on pg_namespace.oid = extnamespace where extname = 'pg_trgm';
  if place is not null then
    execute format(
      'create index queries_text on queries using gin (left(sql_text, 4096) %I.gin_trgm_ops) where ended_at is not null',
      place);
  end if;
end $$;

-- How many have a text, which decides whether the newest are looked through or the index is asked.
create statistics queries_texts on (left(sql_text, 4096)) from queries;
