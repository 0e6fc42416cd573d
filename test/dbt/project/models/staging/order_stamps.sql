{{ config(materialized='table') }}
select id, amount, timestamp '2026-03-01 00:00:00.000' + interval '1' day * build as stamped from {{ ref('order_batches') }}
