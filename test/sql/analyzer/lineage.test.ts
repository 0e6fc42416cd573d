import { describe, expect, it } from 'vitest'
import { READ_ONLY } from '../../../src/connectors/spi/connector.ts'
import type { Lineage, MetadataPort } from '../../../src/sql/front-end.ts'
import { analyze, session, shopMetadata } from '../../support/front-end.ts'
import { rightsUnder } from '../../support/rights-under.ts'

/** The shop, with permission to create tables and insert rows. */
const open: MetadataPort = {
  ...shopMetadata(),
  abilities: () => ({ ...READ_ONLY, createSchema: true, createTable: true, insert: true, views: true }),
}

/** Returns `orders.id:IDENTITY` and so on for each column, and for the rows if a column decides about them. */
async function reported(sql: string, as = session): Promise<readonly string[]> {
  const analyzed = await analyze(sql, open, as)
  const made = analyzed.kind === 'write' ? (analyzed.source ?? analyzed.defines) : analyzed
  if (made === undefined || !('lineage' in made)) throw new Error(`Neither query nor rows: ${sql}`)
  return texts(made.lineage)
}

function texts({ columns, rows }: Lineage): readonly string[] {
  const text = (sources: Lineage['rows']): string =>
    sources
      .map(({ source, direct, indirect, masked }) => {
        const uses = [...(direct === undefined ? [] : [direct]), ...indirect].join('+')
        return `${source.replace('shop.main.', '')}:${uses}${masked ? '!' : ''}`
      })
      .join(' ')
  return [...columns.map(text), ...(rows.length === 0 ? [] : [`| ${text(rows)}`])]
}

describe('The lineage of a query', () => {
  it.each<[string, string[]]>([
    // Values
    ['SELECT 1', ['']],
    ['SELECT id FROM orders', ['orders.id:IDENTITY']],
    ['SELECT o.id AS x FROM orders o', ['orders.id:IDENTITY']],
    ['SELECT id, id FROM orders', ['orders.id:IDENTITY', 'orders.id:IDENTITY']],
    ['SELECT (id) FROM orders', ['orders.id:IDENTITY']],
    ['SELECT id + customer FROM orders', ['orders.customer:TRANSFORMATION orders.id:TRANSFORMATION']],
    ['SELECT -id FROM orders', ['orders.id:TRANSFORMATION']],
    ['SELECT CAST(id AS varchar) FROM orders', ['orders.id:TRANSFORMATION']],
    ['SELECT TRY(1 / id) FROM orders', ['orders.id:TRANSFORMATION']],
    ['SELECT upper(name) FROM customers', ['customers.name:TRANSFORMATION']],
    ["SELECT name || 'x' FROM customers", ['customers.name:TRANSFORMATION']],
    ['SELECT tags[1] FROM orders', ['orders.tags:TRANSFORMATION']],
    ['SELECT ARRAY[id, customer] FROM orders', ['orders.customer:TRANSFORMATION orders.id:TRANSFORMATION']],
    ['SELECT ROW(id, 1) FROM orders', ['orders.id:TRANSFORMATION']],
    [
      'SELECT transform(tags, t -> t || CAST(id AS varchar)) FROM orders',
      ['orders.id:TRANSFORMATION orders.tags:TRANSFORMATION'],
    ],
    ['SELECT id = customer FROM orders', ['orders.customer:TRANSFORMATION orders.id:TRANSFORMATION']],
    ['SELECT coalesce(id, customer) FROM orders', ['orders.customer:TRANSFORMATION orders.id:TRANSFORMATION']],
    [
      'SELECT CASE WHEN id > 1 THEN customer ELSE 0 END FROM orders',
      ['orders.customer:TRANSFORMATION orders.id:CONDITIONAL'],
    ],
    [
      'SELECT CASE id WHEN customer THEN id END FROM orders',
      ['orders.customer:CONDITIONAL orders.id:TRANSFORMATION+CONDITIONAL'],
    ],
    ['SELECT if(id > 1, total) FROM orders', ['orders.id:CONDITIONAL orders.total:TRANSFORMATION']],
    ['SELECT nullif(id, customer) FROM orders', ['orders.customer:CONDITIONAL orders.id:TRANSFORMATION+CONDITIONAL']],
    ['SELECT a + 1 FROM (SELECT CASE WHEN id > 1 THEN 1 END a FROM orders)', ['orders.id:CONDITIONAL']],
    // Rows
    ['SELECT id FROM orders WHERE total > 1', ['orders.id:IDENTITY', '| orders.total:FILTER']],
    [
      'SELECT id FROM (SELECT id, total + 1 AS t FROM orders) WHERE t > 1',
      ['orders.id:IDENTITY', '| orders.total:FILTER'],
    ],
    ['SELECT id FROM orders ORDER BY total', ['orders.id:IDENTITY', '| orders.total:SORT']],
    ['SELECT id FROM orders ORDER BY id + total LIMIT 3', ['orders.id:IDENTITY', '| orders.id:SORT orders.total:SORT']],
    ['SELECT id FROM orders LIMIT 3', ['orders.id:IDENTITY']],
    [
      'SELECT id FROM orders ORDER BY total FETCH FIRST 2 ROWS WITH TIES',
      ['orders.id:IDENTITY', '| orders.total:SORT'],
    ],
    [
      'SELECT DISTINCT id, total FROM orders',
      ['orders.id:IDENTITY', 'orders.total:IDENTITY', '| orders.id:GROUP_BY orders.total:GROUP_BY'],
    ],
    ['SELECT id FROM orders TABLESAMPLE BERNOULLI (10)', ['orders.id:IDENTITY']],
    // Aggregates
    ['SELECT count(*) FROM orders', ['']],
    ['SELECT sum(total) FROM orders', ['orders.total:AGGREGATION']],
    ['SELECT sum(total) + 1 FROM orders', ['orders.total:AGGREGATION']],
    ['SELECT sum(total + id) FROM orders', ['orders.id:AGGREGATION orders.total:AGGREGATION']],
    [
      'SELECT customer, sum(total) FROM orders GROUP BY customer',
      ['orders.customer:IDENTITY', 'orders.total:AGGREGATION', '| orders.customer:GROUP_BY'],
    ],
    [
      'SELECT customer + 1 FROM orders GROUP BY customer + 1',
      ['orders.customer:TRANSFORMATION', '| orders.customer:GROUP_BY'],
    ],
    [
      'SELECT customer FROM orders GROUP BY customer HAVING sum(total) > 1',
      ['orders.customer:IDENTITY', '| orders.customer:GROUP_BY orders.total:FILTER'],
    ],
    ['SELECT count(*) FILTER (WHERE id > 1) FROM orders', ['orders.id:FILTER']],
    ['SELECT array_agg(id ORDER BY total) FROM orders', ['orders.id:AGGREGATION orders.total:SORT']],
    ['SELECT max_by(id, total) FROM orders', ['orders.id:AGGREGATION orders.total:AGGREGATION']],
    [
      'SELECT sum(s) FROM (SELECT sum(total) s FROM orders GROUP BY customer)',
      ['orders.total:AGGREGATION', '| orders.customer:GROUP_BY'],
    ],
    [
      'SELECT customer, grouping(customer) FROM orders GROUP BY ROLLUP (customer)',
      ['orders.customer:IDENTITY', '', '| orders.customer:GROUP_BY'],
    ],
    // Windows
    ['SELECT row_number() OVER (ORDER BY total) FROM orders', ['orders.total:WINDOW']],
    [
      'SELECT sum(total) OVER (PARTITION BY customer ORDER BY id) FROM orders',
      ['orders.customer:WINDOW orders.id:WINDOW orders.total:AGGREGATION'],
    ],
    ['SELECT lag(total) OVER (ORDER BY total) FROM orders', ['orders.total:TRANSFORMATION+WINDOW']],
    // Joins
    [
      'SELECT name FROM orders JOIN customers ON customer = customers.id',
      ['customers.name:IDENTITY', '| customers.id:JOIN orders.customer:JOIN'],
    ],
    ['SELECT total FROM orders CROSS JOIN customers', ['orders.total:IDENTITY']],
    ['SELECT id FROM orders JOIN customers USING (id)', ['orders.id:IDENTITY', '| customers.id:JOIN orders.id:JOIN']],
    [
      'SELECT id FROM orders FULL JOIN customers USING (id)',
      ['customers.id:TRANSFORMATION orders.id:TRANSFORMATION', '| customers.id:JOIN orders.id:JOIN'],
    ],
    [
      'SELECT a.id FROM orders a JOIN orders b ON a.customer = b.id WHERE b.total > 1',
      ['orders.id:IDENTITY', '| orders.customer:JOIN orders.id:JOIN orders.total:FILTER'],
    ],
    ['SELECT x FROM orders CROSS JOIN UNNEST(tags) u(x)', ['orders.tags:TRANSFORMATION']],
    [
      'SELECT x FROM customers CROSS JOIN LATERAL (SELECT max(total) x FROM orders WHERE customer = customers.id) l',
      ['orders.total:AGGREGATION', '| customers.id:FILTER orders.customer:FILTER'],
    ],
    // Set operations, WITH, views, queries within
    ['SELECT id FROM orders UNION ALL SELECT id FROM customers', ['customers.id:IDENTITY orders.id:IDENTITY']],
    [
      'SELECT id FROM orders UNION SELECT id + 1 FROM customers',
      ['customers.id:TRANSFORMATION orders.id:IDENTITY', '| customers.id:GROUP_BY orders.id:GROUP_BY'],
    ],
    ['SELECT id FROM orders EXCEPT ALL SELECT id FROM customers', ['orders.id:IDENTITY', '| customers.id:FILTER']],
    [
      'SELECT id FROM orders INTERSECT SELECT id FROM customers',
      ['orders.id:IDENTITY', '| customers.id:FILTER orders.id:GROUP_BY'],
    ],
    ['WITH t AS (SELECT total * 2 AS d FROM orders) SELECT d FROM t', ['orders.total:TRANSFORMATION']],
    [
      'WITH t AS (SELECT id FROM orders WHERE total > 1) SELECT a.id FROM t a JOIN t b ON a.id = b.id',
      ['orders.id:IDENTITY', '| orders.id:JOIN orders.total:FILTER'],
    ],
    [
      'WITH RECURSIVE t(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT n FROM t',
      ['orders.id:TRANSFORMATION', '| orders.id:FILTER'],
    ],
    ['SELECT total FROM big_orders', ['orders.total:TRANSFORMATION', '| orders.total:FILTER']],
    ['SELECT (SELECT max(total) FROM orders) FROM customers', ['orders.total:AGGREGATION']],
    [
      'SELECT name FROM customers WHERE id IN (SELECT customer FROM orders WHERE total > 1)',
      ['customers.name:IDENTITY', '| customers.id:FILTER orders.customer:FILTER orders.total:FILTER'],
    ],
    [
      'SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders WHERE customer = c.id)',
      ['customers.name:IDENTITY', '| customers.id:FILTER orders.customer:FILTER'],
    ],
    [
      'SELECT id > ALL (SELECT customer FROM orders) FROM customers',
      ['customers.id:TRANSFORMATION orders.customer:TRANSFORMATION'],
    ],
    ['SELECT name FROM (VALUES 1) v(x) JOIN customers ON id = x', ['customers.name:IDENTITY', '| customers.id:JOIN']],
    ['VALUES (1, 2)', ['', '']],
    // Deeper
    ['SELECT t, n FROM orders CROSS JOIN UNNEST(tags) WITH ORDINALITY AS u (t, n)', ['orders.tags:TRANSFORMATION', '']],
    [
      'SELECT k, v FROM orders CROSS JOIN UNNEST(map(tags, tags)) AS u (k, v)',
      ['orders.tags:TRANSFORMATION', 'orders.tags:TRANSFORMATION'],
    ],
    [
      'SELECT id, t FROM orders LEFT JOIN UNNEST(tags) AS u (t) ON TRUE',
      ['orders.id:IDENTITY', 'orders.tags:TRANSFORMATION'],
    ],
    [
      'SELECT sum(total) OVER w FROM orders WINDOW w AS (PARTITION BY customer)',
      ['orders.customer:WINDOW orders.total:AGGREGATION'],
    ],
    [
      'SELECT sum(total) OVER (ORDER BY id ROWS BETWEEN customer PRECEDING AND CURRENT ROW) FROM orders',
      ['orders.customer:WINDOW orders.id:WINDOW orders.total:AGGREGATION'],
    ],
    [
      'SELECT customer, id, count(*) FROM orders GROUP BY GROUPING SETS ((customer), (id), ())',
      ['orders.customer:IDENTITY', 'orders.id:IDENTITY', '', '| orders.customer:GROUP_BY orders.id:GROUP_BY'],
    ],
    ['SELECT count(DISTINCT customer) FROM orders', ['orders.customer:AGGREGATION']],
    [
      'SELECT max(b.total) FROM big_orders b JOIN big_orders c USING (id)',
      ['orders.total:AGGREGATION', '| orders.id:JOIN orders.total:FILTER'],
    ],
    [
      'WITH a AS (SELECT id, name FROM customers), b AS (SELECT id + 1 AS i, name FROM a) SELECT i, name FROM b',
      ['customers.id:TRANSFORMATION', 'customers.name:IDENTITY'],
    ],
    [
      'SELECT x FROM (SELECT id x FROM orders UNION ALL SELECT id * 2 FROM customers) WHERE x > 1',
      ['customers.id:TRANSFORMATION orders.id:IDENTITY', '| customers.id:FILTER orders.id:FILTER'],
    ],
    [
      'SELECT r.a FROM (SELECT CAST(ROW(id, total) AS ROW(a bigint, b double)) r FROM orders)',
      ['orders.id:TRANSFORMATION orders.total:TRANSFORMATION'],
    ],
    [
      'SELECT CASE WHEN EXISTS (SELECT 1 FROM customers WHERE customers.id = customer) THEN id END FROM orders',
      ['customers.id:CONDITIONAL orders.customer:CONDITIONAL orders.id:TRANSFORMATION'],
    ],
    [
      'SELECT id IN (SELECT customer FROM orders) FROM customers',
      ['customers.id:TRANSFORMATION orders.customer:TRANSFORMATION'],
    ],
    // A subquery that makes a value decides about this value, not about rows.
    [
      'SELECT id, (SELECT max(total) FROM orders WHERE customer = c.id) FROM customers c',
      ['customers.id:IDENTITY', 'customers.id:FILTER orders.customer:FILTER orders.total:AGGREGATION'],
    ],
    [
      'SELECT id, EXISTS (SELECT 1 FROM orders WHERE customer = c.id) FROM customers c WHERE since IS NULL',
      ['customers.id:IDENTITY', 'customers.id:FILTER orders.customer:FILTER', '| customers.since:FILTER'],
    ],
    [
      'SELECT id IN (SELECT customer FROM orders o JOIN customers d ON d.id = o.id) FROM customers',
      ['customers.id:TRANSFORMATION+JOIN orders.customer:TRANSFORMATION orders.id:JOIN'],
    ],
    [
      'SELECT name FROM customers ORDER BY (SELECT max(total) FROM orders WHERE customer = customers.id)',
      ['customers.name:IDENTITY', '| customers.id:SORT orders.customer:SORT orders.total:SORT'],
    ],
    ['WITH t AS (SELECT id FROM orders WHERE total > 1) SELECT name FROM customers', ['customers.name:IDENTITY']],
    [
      'WITH t AS (SELECT id FROM orders WHERE total > 1), u AS (SELECT id FROM t WHERE id > 1) SELECT id FROM u',
      ['orders.id:IDENTITY', '| orders.id:FILTER orders.total:FILTER'],
    ],
    [
      'WITH t AS (SELECT id FROM orders WHERE total > 1) SELECT name, (SELECT max(id) FROM t) FROM customers',
      ['customers.name:IDENTITY', 'orders.id:AGGREGATION orders.total:FILTER'],
    ],
    [
      'WITH RECURSIVE t(n) AS (SELECT id FROM orders WHERE total > 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT name, (SELECT max(n) FROM t) FROM customers',
      ['customers.name:IDENTITY', 'orders.id:AGGREGATION+FILTER orders.total:FILTER'],
    ],
    ['TABLE customers', ['customers.id:IDENTITY', 'customers.name:IDENTITY', 'customers.since:IDENTITY']],
    [
      'SELECT reduce(tags, id, (s, t) -> s + customer, s -> s) FROM orders',
      ['orders.customer:TRANSFORMATION orders.id:TRANSFORMATION orders.tags:TRANSFORMATION'],
    ],
  ])('%s', async (sql, expected) => expect(await reported(sql)).toEqual(expected))
})

describe('The lineage of written rows and of views, by target column', () => {
  it.each<[string, string[]]>([
    ['CREATE TABLE t AS SELECT id, total * 2 AS d FROM orders', ['orders.id:IDENTITY', 'orders.total:TRANSFORMATION']],
    [
      'CREATE TABLE t (a, b) AS SELECT total, id FROM orders WHERE customer = 1',
      ['orders.total:IDENTITY', 'orders.id:IDENTITY', '| orders.customer:FILTER'],
    ],
    [
      'CREATE TABLE t AS SELECT name, count(*) c FROM customers GROUP BY name',
      ['customers.name:IDENTITY', '', '| customers.name:GROUP_BY'],
    ],
    [
      'CREATE TABLE t AS WITH o AS (SELECT * FROM big_orders) SELECT id FROM o',
      ['orders.id:IDENTITY', '| orders.total:FILTER'],
    ],
    [
      'INSERT INTO customers SELECT id, CAST(total AS varchar(20)), NULL FROM orders',
      ['orders.id:IDENTITY', 'orders.total:TRANSFORMATION', ''],
    ],
    [
      'INSERT INTO customers (name, id) SELECT name, id FROM customers',
      ['customers.id:IDENTITY', 'customers.name:IDENTITY', ''],
    ],
    [
      'INSERT INTO orders (id, total) SELECT id, id FROM customers',
      ['customers.id:IDENTITY', '', 'customers.id:IDENTITY', ''],
    ],
    [
      'INSERT INTO orders (id) SELECT id FROM customers UNION SELECT customer FROM orders',
      [
        'customers.id:IDENTITY orders.customer:IDENTITY',
        '',
        '',
        '',
        '| customers.id:GROUP_BY orders.customer:GROUP_BY',
      ],
    ],
    [
      'CREATE VIEW v AS SELECT customer AS c, max(total) AS m FROM orders GROUP BY customer',
      ['orders.customer:IDENTITY', 'orders.total:AGGREGATION', '| orders.customer:GROUP_BY'],
    ],
    [
      'CREATE VIEW v AS SELECT * FROM big_orders',
      ['orders.id:IDENTITY', 'orders.total:TRANSFORMATION', '| orders.total:FILTER'],
    ],
    ['INSERT INTO orders (id) VALUES 1, 2', ['', '', '', '']],
    [
      'INSERT INTO orders (tags) SELECT array_agg(name ORDER BY since) FROM customers',
      ['', '', '', 'customers.name:AGGREGATION customers.since:SORT'],
    ],
  ])('%s', async (sql, expected) => expect(await reported(sql)).toEqual(expected))
})

describe('The lineage of a query under access rules', () => {
  const rules = {
    tables: [
      {
        table: 'orders',
        privileges: ['SELECT'],
        filter: 'customer = 1',
        columns: [{ name: 'total', mask: 'CAST(id AS decimal(12, 2))' }],
      },
      { privileges: ['SELECT', 'GRANT_SELECT'] },
    ],
  }
  const under = { ...session, rightsOf: rightsUnder(rules) }

  it.each<[string, string[]]>([
    ['SELECT total FROM orders', ['orders.total:TRANSFORMATION!']],
    ['SELECT id FROM orders WHERE total > 1', ['orders.id:IDENTITY', '| orders.total:FILTER!']],
    [
      'SELECT sum(total) FROM orders o JOIN customers c ON c.id = o.id',
      ['orders.total:AGGREGATION!', '| customers.id:JOIN orders.id:JOIN'],
    ],
  ])('omits columns that rules read: %s', async (sql, expected) => expect(await reported(sql, under)).toEqual(expected))
})
