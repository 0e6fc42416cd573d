{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', merge_update_columns=['amount', 'build']) }}
select * from {{ ref('order_batches') }}
