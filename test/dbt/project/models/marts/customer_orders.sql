{{ config(materialized='table', contract={'enforced': true}) }}
select c.id as customer_id, c.name, count(o.id) as orders, cast(coalesce(sum(o.amount), 0) as decimal(38, 2)) as total
from {{ ref('stg_customers') }} c left join {{ ref('stg_orders') }} o on o.customer_id = c.id
group by c.id, c.name
