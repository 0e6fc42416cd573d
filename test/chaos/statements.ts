/** A statement of the mix, with its expected result without faults. */
export interface ChaosStatement {
  readonly sql: string
  /** The SQL that gives the same rows in plain DuckDB over the same files. @default `sql` */
  readonly check?: string
  /** Whether the order of the rows is checked. */
  readonly ordered?: true
  /** The name of the expected error. */
  readonly error?: string
  /** A header that one of the answers must have. */
  readonly header?: readonly [name: string, value: string]
  /** The rows do not follow from the data: only the end of the statement is checked. */
  readonly anyRows?: true
  /** The weight in the random choice of statements. @default 1 */
  readonly weight?: number
  /** The Python client shows the same values as the wire. */
  readonly python?: true
}

/** Statements that stream, aggregate, join, sort, fail or change the session, with small and large results. */
export const statements = {
  one: { sql: 'SELECT 1', weight: 2, python: true },
  values: {
    sql: "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL)) AS t(n, s) ORDER BY n DESC NULLS LAST",
    ordered: true,
    python: true,
  },
  stream: { sql: 'SELECT orderkey, linenumber, comment FROM lineitem', weight: 4, python: true },
  large: {
    sql: 'SELECT orderkey, linenumber, shipmode, shipinstruct, comment, quantity, shipdate FROM lineitem',
    check: 'SELECT orderkey, linenumber, shipmode, shipinstruct, comment, quantity::DOUBLE, shipdate FROM lineitem',
    weight: 3,
  },
  filter: {
    sql: "SELECT custkey, name, phone FROM customer WHERE mktsegment = 'BUILDING' AND nationkey < 10",
    weight: 2,
    python: true,
  },
  group: {
    sql: 'SELECT orderpriority, count(*), min(orderkey), max(custkey) FROM orders GROUP BY orderpriority',
    weight: 2,
    python: true,
  },
  groups: {
    sql: 'SELECT suppkey, partkey, count(*), sum(linenumber) FROM lineitem GROUP BY suppkey, partkey',
    weight: 2,
  },
  sort: {
    sql: 'SELECT orderkey, custkey, orderdate FROM orders ORDER BY orderdate, orderkey DESC',
    ordered: true,
    weight: 2,
  },
  top: { sql: 'SELECT partkey, name FROM part ORDER BY name, partkey LIMIT 20', ordered: true, python: true },
  join: {
    sql: `SELECT n.name, o.orderpriority, count(*) FROM orders o
      JOIN customer c ON o.custkey = c.custkey JOIN nation n ON c.nationkey = n.nationkey
      GROUP BY n.name, o.orderpriority`,
    weight: 2,
    python: true,
  },
  window: {
    sql: `SELECT orderkey, linenumber, row_number() OVER (PARTITION BY suppkey ORDER BY orderkey, linenumber)
      FROM lineitem WHERE suppkey <= 20`,
  },
  long: {
    sql: `SELECT count(*), max(a.orderkey) FROM lineitem a JOIN lineitem b ON a.suppkey = b.suppkey
      WHERE a.partkey + b.linenumber > 7`,
    weight: 2,
    python: true,
  },
  nothing: { sql: "SELECT orderkey FROM orders WHERE orderstatus = 'no such'" },
  schemas: {
    sql: "SHOW TABLES FROM tpch.tiny LIKE 'p%'",
    check: "SELECT unnest(['part', 'partsupp'])",
  },
  columns: { sql: 'DESCRIBE nation', anyRows: true },
  explain: { sql: 'EXPLAIN SELECT count(*) FROM orders', anyRows: true },
  runtime: { sql: 'SELECT query_id, state FROM system.runtime.queries', anyRows: true },
  session: {
    sql: "SET SESSION query_max_run_time = '3m'",
    header: ['x-trino-set-session', 'query_max_run_time=3m'],
    check: 'SELECT 1 WHERE false',
  },
  use: { sql: 'USE tpch.tiny', header: ['x-trino-set-schema', 'tiny'], check: 'SELECT 1 WHERE false' },
  prepare: {
    sql: 'PREPARE later FROM SELECT 1',
    header: ['x-trino-added-prepare', 'later=SELECT+1'],
    check: 'SELECT 1 WHERE false',
  },
  syntax: { sql: 'SELEC 1', error: 'SYNTAX_ERROR' },
  column: { sql: 'SELECT nothing FROM orders', error: 'COLUMN_NOT_FOUND' },
  division: { sql: 'SELECT orderkey / (custkey - custkey) FROM orders', error: 'DIVISION_BY_ZERO' },
} as const satisfies Record<string, ChaosStatement>

export type StatementName = keyof typeof statements

export const statementOf = (name: StatementName): ChaosStatement => statements[name]

/** The names, each as often as its weight. */
export const statementMix: readonly StatementName[] = (Object.keys(statements) as StatementName[]).flatMap((name) =>
  Array.from({ length: statementOf(name).weight ?? 1 }, () => name),
)
