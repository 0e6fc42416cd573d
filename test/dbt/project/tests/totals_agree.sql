select 1 from (select sum(total) as total from {{ ref('customer_orders') }}) a,
  (select sum(amount) as total from {{ ref('orders') }}) b where a.total <> b.total
