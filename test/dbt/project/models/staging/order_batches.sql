{{ config(materialized='table') }}
{# The rows that each build brings: the second one repeats two orders with other amounts, and adds one. #}
with build as (select max(build) as build from {{ ref('builds') }})
select o.id, o.customer_id, o.amount, o.day, b.build
from {{ ref('stg_orders') }} o cross join build b
where b.build = 1
union all
select o.id, o.customer_id, cast(o.amount + b.build as decimal(12, 2)), o.day, b.build
from {{ ref('stg_orders') }} o cross join build b
where b.build > 1 and o.id in (10, 12)
union all
select 13 + b.build, 4, decimal '7.00', date '2026-02-01', b.build from build b where b.build > 1
