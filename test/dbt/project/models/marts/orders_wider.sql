{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', on_schema_change='sync_all_columns') }}
{# The second build adds a column, removes one, and widens one. #}
{% if is_incremental() %}
select id, cast('a longer text' as varchar(20)) as note, build as added from {{ ref('order_batches') }}
{% else %}
select id, cast('short' as varchar(5)) as note, day as removed from {{ ref('order_batches') }}
{% endif %}
