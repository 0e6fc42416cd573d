{{ config(materialized='materialized_view') }}
select build, count(*) as orders, sum(amount) as total from {{ ref('order_batches') }} group by build
