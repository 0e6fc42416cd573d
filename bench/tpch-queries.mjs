/** The 22 TPC-H queries in Trino's dialect, over the columns of its tpch connector. DuckDB takes them as they are. */
export const tpchQueries = {
  q1: `select l.returnflag, l.linestatus, sum(l.quantity) as sum_qty, sum(l.extendedprice) as sum_base_price,
  sum(l.extendedprice * (1 - l.discount)) as sum_disc_price, sum(l.extendedprice * (1 - l.discount) * (1 + l.tax)) as sum_charge,
  avg(l.quantity) as avg_qty, avg(l.extendedprice) as avg_price, avg(l.discount) as avg_disc, count(*) as count_order
from lineitem l where l.shipdate <= date '1998-12-01' - interval '90' day
group by l.returnflag, l.linestatus order by l.returnflag, l.linestatus`,
  q2: `select s.acctbal, s.name, n.name, p.partkey, p.mfgr, s.address, s.phone, s.comment
from part p, supplier s, partsupp ps, nation n, region r
where p.partkey = ps.partkey and s.suppkey = ps.suppkey and p.size = 15 and p.type like '%BRASS' and s.nationkey = n.nationkey
  and n.regionkey = r.regionkey and r.name = 'EUROPE' and ps.supplycost = (
    select min(ps2.supplycost) from partsupp ps2, supplier s2, nation n2, region r2
    where p.partkey = ps2.partkey and s2.suppkey = ps2.suppkey and s2.nationkey = n2.nationkey
      and n2.regionkey = r2.regionkey and r2.name = 'EUROPE')
order by s.acctbal desc, n.name, s.name, p.partkey limit 100`,
  q3: `select l.orderkey, sum(l.extendedprice * (1 - l.discount)) as revenue, o.orderdate, o.shippriority
from customer c, orders o, lineitem l
where c.mktsegment = 'BUILDING' and c.custkey = o.custkey and l.orderkey = o.orderkey and o.orderdate < date '1995-03-15' and l.shipdate > date '1995-03-15'
group by l.orderkey, o.orderdate, o.shippriority order by revenue desc, o.orderdate limit 10`,
  q4: `select o.orderpriority, count(*) as order_count from orders o
where o.orderdate >= date '1993-07-01' and o.orderdate < date '1993-07-01' + interval '3' month
  and exists (select * from lineitem l where l.orderkey = o.orderkey and l.commitdate < l.receiptdate)
group by o.orderpriority order by o.orderpriority`,
  q5: `select n.name, sum(l.extendedprice * (1 - l.discount)) as revenue
from customer c, orders o, lineitem l, supplier s, nation n, region r
where c.custkey = o.custkey and l.orderkey = o.orderkey and l.suppkey = s.suppkey and c.nationkey = s.nationkey
  and s.nationkey = n.nationkey and n.regionkey = r.regionkey and r.name = 'ASIA'
  and o.orderdate >= date '1994-01-01' and o.orderdate < date '1994-01-01' + interval '1' year
group by n.name order by revenue desc`,
  q6: `select sum(l.extendedprice * l.discount) as revenue from lineitem l
where l.shipdate >= date '1994-01-01' and l.shipdate < date '1994-01-01' + interval '1' year
  and l.discount between 0.06 - 0.01 and 0.06 + 0.01 and l.quantity < 24`,
  q7: `select supp_nation, cust_nation, l_year, sum(volume) as revenue from (
  select n1.name as supp_nation, n2.name as cust_nation, extract(year from l.shipdate) as l_year,
    l.extendedprice * (1 - l.discount) as volume
  from supplier s, lineitem l, orders o, customer c, nation n1, nation n2
  where s.suppkey = l.suppkey and o.orderkey = l.orderkey and c.custkey = o.custkey
    and s.nationkey = n1.nationkey and c.nationkey = n2.nationkey
    and ((n1.name = 'FRANCE' and n2.name = 'GERMANY') or (n1.name = 'GERMANY' and n2.name = 'FRANCE'))
    and l.shipdate between date '1995-01-01' and date '1996-12-31') as shipping
group by supp_nation, cust_nation, l_year order by supp_nation, cust_nation, l_year`,
  q8: `select o_year, sum(case when nation = 'BRAZIL' then volume else 0 end) / sum(volume) as mkt_share from (
  select extract(year from o.orderdate) as o_year, l.extendedprice * (1 - l.discount) as volume, n2.name as nation
  from part p, supplier s, lineitem l, orders o, customer c, nation n1, nation n2, region r
  where p.partkey = l.partkey and s.suppkey = l.suppkey and l.orderkey = o.orderkey and o.custkey = c.custkey and c.nationkey = n1.nationkey
    and n1.regionkey = r.regionkey and r.name = 'AMERICA' and s.nationkey = n2.nationkey
    and o.orderdate between date '1995-01-01' and date '1996-12-31' and p.type = 'ECONOMY ANODIZED STEEL') as all_nations
group by o_year order by o_year`,
  q9: `select nation, o_year, sum(amount) as sum_profit from (
  select n.name as nation, extract(year from o.orderdate) as o_year, l.extendedprice * (1 - l.discount) - ps.supplycost * l.quantity as amount
  from part p, supplier s, lineitem l, partsupp ps, orders o, nation n
  where s.suppkey = l.suppkey and ps.suppkey = l.suppkey and ps.partkey = l.partkey and p.partkey = l.partkey and o.orderkey = l.orderkey
    and s.nationkey = n.nationkey and p.name like '%green%') as profit
group by nation, o_year order by nation, o_year desc`,
  q10: `select c.custkey, c.name, sum(l.extendedprice * (1 - l.discount)) as revenue, c.acctbal, n.name as nation, c.address, c.phone, c.comment
from customer c, orders o, lineitem l, nation n
where c.custkey = o.custkey and l.orderkey = o.orderkey and o.orderdate >= date '1993-10-01' and o.orderdate < date '1993-10-01' + interval '3' month
  and l.returnflag = 'R' and c.nationkey = n.nationkey
group by c.custkey, c.name, c.acctbal, c.phone, n.name, c.address, c.comment order by revenue desc limit 20`,
  q11: `select ps.partkey, sum(ps.supplycost * ps.availqty) as value from partsupp ps, supplier s, nation n
where ps.suppkey = s.suppkey and s.nationkey = n.nationkey and n.name = 'GERMANY'
group by ps.partkey having sum(ps.supplycost * ps.availqty) > (
  select sum(ps2.supplycost * ps2.availqty) * 0.0001 from partsupp ps2, supplier s2, nation n2
  where ps2.suppkey = s2.suppkey and s2.nationkey = n2.nationkey and n2.name = 'GERMANY')
order by value desc`,
  q12: `select l.shipmode, sum(case when o.orderpriority = '1-URGENT' or o.orderpriority = '2-HIGH' then 1 else 0 end) as high_line_count,
  sum(case when o.orderpriority <> '1-URGENT' and o.orderpriority <> '2-HIGH' then 1 else 0 end) as low_line_count
from orders o, lineitem l where o.orderkey = l.orderkey and l.shipmode in ('MAIL', 'SHIP')
  and l.commitdate < l.receiptdate and l.shipdate < l.commitdate and l.receiptdate >= date '1994-01-01'
  and l.receiptdate < date '1994-01-01' + interval '1' year
group by l.shipmode order by l.shipmode`,
  q13: `select c_count, count(*) as custdist from (
  select c.custkey, count(o.orderkey) as c_count from customer c left outer join orders o on c.custkey = o.custkey and o.comment not like '%special%requests%' group by c.custkey) as c_orders
group by c_count order by custdist desc, c_count desc`,
  q14: `select 100.00 * sum(case when p.type like 'PROMO%' then l.extendedprice * (1 - l.discount) else 0 end) / sum(l.extendedprice * (1 - l.discount)) as promo_revenue
from lineitem l, part p where l.partkey = p.partkey and l.shipdate >= date '1995-09-01' and l.shipdate < date '1995-09-01' + interval '1' month`,
  q15: `with revenue0 as (
  select l.suppkey as supplier_no, sum(l.extendedprice * (1 - l.discount)) as total_revenue from lineitem l
  where l.shipdate >= date '1996-01-01' and l.shipdate < date '1996-01-01' + interval '3' month group by l.suppkey)
select s.suppkey, s.name, s.address, s.phone, total_revenue from supplier s, revenue0
where s.suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue0) order by s.suppkey`,
  q16: `select p.brand, p.type, p.size, count(distinct ps.suppkey) as supplier_cnt from partsupp ps, part p
where p.partkey = ps.partkey and p.brand <> 'Brand#45' and p.type not like 'MEDIUM POLISHED%' and p.size in (49, 14, 23, 45, 19, 3, 36, 9)
  and ps.suppkey not in (select s.suppkey from supplier s where s.comment like '%Customer%Complaints%')
group by p.brand, p.type, p.size order by supplier_cnt desc, p.brand, p.type, p.size limit 120`,
  q17: `select sum(l.extendedprice) / 7.0 as avg_yearly from lineitem l, part p
where p.partkey = l.partkey and p.brand = 'Brand#23' and p.container = 'MED BOX'
  and l.quantity < (select 0.2 * avg(l2.quantity) from lineitem l2 where l2.partkey = p.partkey)`,
  q18: `select c.name, c.custkey, o.orderkey, o.orderdate, o.totalprice, sum(l.quantity) as qty from customer c, orders o, lineitem l
where o.orderkey in (select orderkey from lineitem group by orderkey having sum(quantity) > 250) and c.custkey = o.custkey and o.orderkey = l.orderkey
group by c.name, c.custkey, o.orderkey, o.orderdate, o.totalprice order by o.totalprice desc, o.orderdate limit 100`,
  q19: `select sum(l.extendedprice * (1 - l.discount)) as revenue from lineitem l, part p
where (p.partkey = l.partkey and p.brand = 'Brand#12' and p.container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') and l.quantity >= 1 and l.quantity <= 11 and p.size between 1 and 5 and l.shipmode in ('AIR', 'AIR REG') and l.shipinstruct = 'DELIVER IN PERSON')
  or (p.partkey = l.partkey and p.brand = 'Brand#23' and p.container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK') and l.quantity >= 10 and l.quantity <= 20 and p.size between 1 and 10 and l.shipmode in ('AIR', 'AIR REG') and l.shipinstruct = 'DELIVER IN PERSON')
  or (p.partkey = l.partkey and p.brand = 'Brand#34' and p.container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG') and l.quantity >= 20 and l.quantity <= 30 and p.size between 1 and 15 and l.shipmode in ('AIR', 'AIR REG') and l.shipinstruct = 'DELIVER IN PERSON')`,
  q20: `select s.name, s.address from supplier s, nation n
where s.suppkey in (select ps.suppkey from partsupp ps
    where ps.partkey in (select p.partkey from part p where p.name like 'forest%')
      and ps.availqty > (select 0.5 * sum(l.quantity) from lineitem l
        where l.partkey = ps.partkey and l.suppkey = ps.suppkey and l.shipdate >= date '1994-01-01'
          and l.shipdate < date '1994-01-01' + interval '1' year))
  and s.nationkey = n.nationkey and n.name = 'CANADA' order by s.name`,
  q21: `select s.name, count(*) as numwait from supplier s, lineitem l1, orders o, nation n
where s.suppkey = l1.suppkey and o.orderkey = l1.orderkey and o.orderstatus = 'F' and l1.receiptdate > l1.commitdate
  and exists (select * from lineitem l2 where l2.orderkey = l1.orderkey and l2.suppkey <> l1.suppkey)
  and not exists (select * from lineitem l3 where l3.orderkey = l1.orderkey and l3.suppkey <> l1.suppkey and l3.receiptdate > l3.commitdate)
  and s.nationkey = n.nationkey and n.name = 'SAUDI ARABIA'
group by s.name order by numwait desc, s.name limit 100`,
  q22: `select cntrycode, count(*) as numcust, sum(acctbal) as totacctbal from (
  select substr(c.phone, 1, 2) as cntrycode, c.acctbal from customer c
  where substr(c.phone, 1, 2) in ('13', '31', '23', '29', '30', '18', '17')
    and c.acctbal > (select avg(c2.acctbal) from customer c2 where c2.acctbal > 0.00 and substr(c2.phone, 1, 2) in ('13', '31', '23', '29', '30', '18', '17'))
    and not exists (select * from orders o where o.custkey = c.custkey)) as custsale
group by cntrycode order by cntrycode`,
}
