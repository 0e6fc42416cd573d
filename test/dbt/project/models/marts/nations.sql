{{ config(materialized='view', view_security='invoker') }}
select nationkey, name from {{ source('tiny', 'nation') }}
