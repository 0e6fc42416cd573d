{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key=['customer_id', 'day']) }}
select * from {{ ref('order_batches') }}
