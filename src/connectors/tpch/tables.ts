/** Trino's TPC-H tables: names and types as its tpch connector gives them; doubles, not decimals. */
export interface TpchTable {
  /** Prefix of the columns in generated files: `n_nationkey`. */
  readonly prefix: string
  readonly columns: readonly (readonly [name: string, type: string])[]
}

export const tpchTables: Readonly<Record<string, TpchTable>> = {
  customer: {
    prefix: 'c_',
    columns: [
      ['custkey', 'bigint'],
      ['name', 'varchar(25)'],
      ['address', 'varchar(40)'],
      ['nationkey', 'bigint'],
      ['phone', 'varchar(15)'],
      ['acctbal', 'double'],
      ['mktsegment', 'varchar(10)'],
      ['comment', 'varchar(117)'],
    ],
  },
  lineitem: {
    prefix: 'l_',
    columns: [
      ['orderkey', 'bigint'],
      ['partkey', 'bigint'],
      ['suppkey', 'bigint'],
      ['linenumber', 'integer'],
      ['quantity', 'double'],
      ['extendedprice', 'double'],
      ['discount', 'double'],
      ['tax', 'double'],
      ['returnflag', 'varchar(1)'],
      ['linestatus', 'varchar(1)'],
      ['shipdate', 'date'],
      ['commitdate', 'date'],
      ['receiptdate', 'date'],
      ['shipinstruct', 'varchar(25)'],
      ['shipmode', 'varchar(10)'],
      ['comment', 'varchar(44)'],
    ],
  },
  nation: {
    prefix: 'n_',
    columns: [
      ['nationkey', 'bigint'],
      ['name', 'varchar(25)'],
      ['regionkey', 'bigint'],
      ['comment', 'varchar(152)'],
    ],
  },
  orders: {
    prefix: 'o_',
    columns: [
      ['orderkey', 'bigint'],
      ['custkey', 'bigint'],
      ['orderstatus', 'varchar(1)'],
      ['totalprice', 'double'],
      ['orderdate', 'date'],
      ['orderpriority', 'varchar(15)'],
      ['clerk', 'varchar(15)'],
      ['shippriority', 'integer'],
      ['comment', 'varchar(79)'],
    ],
  },
  part: {
    prefix: 'p_',
    columns: [
      ['partkey', 'bigint'],
      ['name', 'varchar(55)'],
      ['mfgr', 'varchar(25)'],
      ['brand', 'varchar(10)'],
      ['type', 'varchar(25)'],
      ['size', 'integer'],
      ['container', 'varchar(10)'],
      ['retailprice', 'double'],
      ['comment', 'varchar(23)'],
    ],
  },
  partsupp: {
    prefix: 'ps_',
    columns: [
      ['partkey', 'bigint'],
      ['suppkey', 'bigint'],
      ['availqty', 'integer'],
      ['supplycost', 'double'],
      ['comment', 'varchar(199)'],
    ],
  },
  region: {
    prefix: 'r_',
    columns: [
      ['regionkey', 'bigint'],
      ['name', 'varchar(25)'],
      ['comment', 'varchar(152)'],
    ],
  },
  supplier: {
    prefix: 's_',
    columns: [
      ['suppkey', 'bigint'],
      ['name', 'varchar(25)'],
      ['address', 'varchar(40)'],
      ['nationkey', 'bigint'],
      ['phone', 'varchar(15)'],
      ['acctbal', 'double'],
      ['comment', 'varchar(101)'],
    ],
  },
}

/** The DuckDB type that holds a column; generated files have decimals and 32-bit integers in some columns. */
export function tpchDuckdbType(type: string): string {
  return type.startsWith('varchar') ? 'VARCHAR' : type.toUpperCase()
}
