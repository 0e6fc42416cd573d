/** A short statement that needs very much work in planning or execution. */
export interface PlanningBomb {
  readonly name: string
  readonly sql: string
  /** Statements that run before. */
  readonly setup?: readonly string[]
  /** Whether it takes seconds, or gigabytes of an engine until a limit ends it. It runs only in the full size. */
  readonly heavy?: true
}

const times = (count: number, part: (index: number) => string, between = ', '): string =>
  Array.from({ length: count }, (_, index) => part(index)).join(between)

/** A query with a chain of common table expressions; `step` makes each from the one before. */
function doubled(levels: number, first: string, step: (before: string) => string, last = (all: string) => all): string {
  const tables = times(levels, (level) => `, a${level + 1} AS (${step(`a${level}`)})`, '')
  return `WITH a0 AS (${first})${tables} ${last(`SELECT * FROM a${levels}`)}`
}

/** A chain of views; `step` makes each from the one before. */
function doubledViews(name: string, levels: number, step: (before: string) => string): readonly string[] {
  return Array.from({ length: levels + 1 }, (_, level) => {
    const query = level === 0 ? 'SELECT 1 AS x' : step(`memory.default.${name}${level - 1}`)
    return `CREATE OR REPLACE VIEW memory.default.${name}${level} AS ${query}`
  })
}

const count = (query: string): string => `SELECT count(*) FROM (${query})`
const REGION = 'tpch.tiny.region'

/** Known planning bombs, one or two of each class. */
export const planningBombs: readonly PlanningBomb[] = [
  {
    name: 'views that read a view twice, fourteen deep',
    setup: doubledViews('bomb', 14, (before) => `SELECT x FROM ${before} UNION ALL SELECT x FROM ${before}`),
    sql: 'SELECT count(*) FROM memory.default.bomb14',
  },
  {
    name: 'columns doubled twenty times',
    sql: doubled(20, 'SELECT 1 AS x', (before) => `SELECT l.*, r.* FROM ${before} l CROSS JOIN ${before} r`),
  },
  {
    name: 'cross joins doubled thirty times',
    sql: doubled(30, 'SELECT 1 AS x', (before) => `SELECT l.x FROM ${before} l, ${before} r`, count),
  },
  {
    name: 'a row type doubled forty times',
    sql: doubled(40, 'SELECT 1 AS x', (of) => `SELECT ROW(x, x) AS x FROM ${of}`),
  },
  {
    name: 'a row type doubled nine times',
    sql: doubled(9, 'SELECT 1 AS x', (of) => `SELECT ROW(x, x) AS x FROM ${of}`),
    heavy: true,
  },
  {
    name: 'a text doubled forty times',
    sql: doubled(40, `SELECT 'x' AS x`, (of) => `SELECT x || x AS x FROM ${of}`),
    heavy: true,
  },
  {
    name: 'rows doubled thirty times',
    sql: doubled(30, 'SELECT 1 AS x', (of) => `SELECT * FROM ${of} UNION ALL SELECT * FROM ${of}`, count),
    heavy: true,
  },
  {
    name: 'subqueries of subqueries in conditions',
    sql: doubled(
      14,
      `SELECT regionkey AS x FROM ${REGION}`,
      (of) => `SELECT x FROM ${of} WHERE x IN (SELECT x FROM ${of}) OR x NOT IN (SELECT x FROM ${of})`,
      count,
    ),
  },
  {
    name: 'EXISTS in EXISTS, sixty deep',
    sql: times(60, (level) => `SELECT 1 FROM ${REGION} r${level} WHERE EXISTS (`, '') + 'SELECT 1' + ')'.repeat(60),
  },
  {
    name: 'CUBE of twenty columns',
    sql: `SELECT count(*) FROM ${REGION} GROUP BY CUBE(${times(20, (i) => `regionkey + ${i}`)})`,
  },
  {
    name: 'eight CUBEs',
    sql: `SELECT count(*) FROM ${REGION} GROUP BY ${times(8, () => 'CUBE(regionkey, name, comment)')}`,
  },
  {
    name: 'CUBE of eleven columns',
    sql: `SELECT count(*) FROM (SELECT ${times(11, (i) => `regionkey + ${i} AS c${i}`)} FROM ${REGION}) GROUP BY CUBE(${times(11, (i) => `c${i}`)})`,
    heavy: true,
  },
  {
    name: 'joins of a thousand tables',
    sql: `SELECT count(*) FROM ${times(1000, (i) => `(VALUES ${i}) t${i}(a)`, ' CROSS JOIN ')}`,
  },
  {
    name: 'lambdas, twenty deep',
    sql: `SELECT ${times(20, (i) => `transform(ARRAY[1, 2], x${i} -> `, '')}x0${')'.repeat(20)}`,
    heavy: true,
  },
  {
    name: 'functions that call each other twice',
    sql: `WITH FUNCTION f0(x bigint) RETURNS bigint RETURN x + x, ${times(24, (i) => `FUNCTION f${i + 1}(x bigint) RETURNS bigint RETURN f${i}(x) + f${i}(x)`)} SELECT f24(1)`,
  },
  {
    name: 'a loop without an end',
    sql: 'WITH FUNCTION f() RETURNS bigint BEGIN WHILE true DO END WHILE; RETURN 1; END SELECT f()',
    heavy: true,
  },
  { name: 'parentheses', sql: `SELECT ${'('.repeat(20_000)}1${')'.repeat(20_000)}` },
  { name: 'types, five hundred deep', sql: `SELECT CAST(NULL AS ${'ARRAY('.repeat(500)}INTEGER${')'.repeat(500)})` },
  { name: 'a row type of 10,000 fields', sql: `SELECT CAST(NULL AS ROW(${times(10_000, (i) => `f${i} INTEGER`)}))` },
  { name: 'stars', sql: `SELECT ${times(3000, () => '*')} FROM ${REGION}` },
  { name: 'texts wider than any text', sql: `SELECT length(format('%2000000000d', 1))` },
  { name: 'digits beyond any text', sql: `SELECT length(format('%.2000000000f', 1e0))` },
  { name: 'a text filled up to two thousand million', sql: `SELECT length(rpad('x', 2000000000, 'y'))`, heavy: true },
  {
    name: 'sequences of sequences',
    sql: 'SELECT cardinality(flatten(transform(sequence(1, 10000), x -> sequence(1, 10000))))',
    heavy: true,
  },
  {
    name: 'a pattern of LIKE with 3,000 signs',
    sql: `SELECT count(*) FROM ${REGION} WHERE comment LIKE '${'%a'.repeat(3000)}'`,
  },
  { name: 'stars of stars in an expression', sql: `SELECT regexp_like(rpad('a', 100000, 'a'), '(((((a+)+)+)+)+)+b')` },
  {
    name: 'repetitions of repetitions in an expression',
    sql: `SELECT regexp_like('a', '((((a{1,100}){1,100}){1,100}){1,100})')`,
  },
  { name: 'JSON 5,000 deep', sql: `SELECT json_parse('${'['.repeat(5000)}${']'.repeat(5000)}')` },
  { name: 'a path of JSON with 5,000 steps', sql: `SELECT json_query('{}', 'lax $${'.a'.repeat(5000)}')` },
  {
    name: 'permutations of ten in a row pattern',
    sql: `SELECT * FROM ${REGION} MATCH_RECOGNIZE (ORDER BY regionkey MEASURES A.name AS n PATTERN (PERMUTE(${times(10, (i) => 'ABCDEFGHIJ'[i]!)})) DEFINE A AS true)`,
  },
]
