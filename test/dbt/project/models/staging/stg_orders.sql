{{ config(materialized='view') }}
select id, customer_id, amount, placed, cast(placed as date) as day, note from {{ ref('orders') }}
