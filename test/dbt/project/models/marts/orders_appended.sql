{{ config(materialized='incremental', incremental_strategy='append') }}
select * from {{ ref('order_batches') }}
