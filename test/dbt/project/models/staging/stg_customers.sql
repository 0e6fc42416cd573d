{{ config(materialized='ephemeral') }}
select id, name, country, coalesce(since, date '1970-01-01') as since from {{ ref('customers') }}
