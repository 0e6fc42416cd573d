import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkStatement } from '../../../src/execution/engine/statement-wall.ts'

/** Statements as the renderer makes them, one token per word. DuckDB's own parser examines the mutations of them. */
const rendered = [
  `SELECT 1 AS c0 FROM range ( 1 ) AS r JOIN range ( 2 ) s ON r.x = s.y , "$s0" a WHERE x IS NOT DISTINCT FROM y`,
  `WITH w0 AS NOT MATERIALIZED ( SELECT 1 ) SELECT * FROM ( ( SELECT 1 ) UNION ALL ( SELECT 2 ) ) ORDER BY x LIMIT 3`,
  `SELECT x FROM ( VALUES ( 1 , 2 ) , ( 3 , 4 ) ) AS v0 ( a , b ) LEFT JOIN LATERAL ( SELECT 1 ) ON true , "$s0"`,
  `WITH w0 AS ( SELECT 1 ) SELECT sum ( x ) FILTER ( WHERE a ) OVER ( PARTITION BY b ORDER BY c ) FROM w0 GROUP BY a HAVING x`,
  `SELECT c FROM ( "$s0" a CROSS JOIN ( "$s0" b JOIN range ( 3 ) ON true ) ) WHERE EXISTS ( SELECT 1 FROM "$s0" )`,
  `SELECT CASE WHEN x IN ( SELECT 1 ) THEN [ 1 , 2 ] ELSE { 'a' : b } END , CAST ( x AS TIMESTAMP WITH TIME ZONE ) :: INTEGER`,
].map((text) => text.split(' '))

const pieces = (
  `SELECT FROM 'f.csv' "f.csv" , ( ) AS "is" is "distinct" DISTINCT IS NOT WHERE GROUP BY ORDER LIMIT OFFSET UNION ALL ` +
  `INTERSECT EXCEPT WITH w0 "$s0" range count sum read_csv left LEFT RIGHT JOIN CROSS INNER NATURAL LATERAL ON USING VALUES ` +
  `TABLE PIVOT UNPIVOT DESCRIBE SUMMARIZE SHOW : :: := . * = + - [ ] { } 1 x "x" a TIMESTAMP TIME ZONE CAST CASE WHEN THEN ` +
  `END lambda FOR IN EXISTS ANY OVER FILTER WITHIN WINDOW QUALIFY HAVING SAMPLE TABLESAMPLE AT VERSION POSITIONAL ASOF SEMI ` +
  `ANTI RECURSIVE MATERIALIZED COLUMNS EXCLUDE REPLACE PARTITION ROWS BETWEEN AND EXTRACT TRIM BOTH struct MAP ARRAY UNPACK ` +
  `INTO TRY_CAST COLLATE INTERVAL DATE duckdb_settings main system partition timestamp by ; ';' ";"`
).split(' ')

const vocabulary = {
  functions: new Set(['count', 'sum', 'left', 'coalesce', 'trim']),
  tableFunctions: new Set(['range']),
  scripted: new Set<string>(),
  macros: new Map(),
}
/** Functions that DuckDB's parser makes from syntax. */
const SYNTAX =
  /^(list_value|struct_pack|row|array_extract|struct_extract|array_slice|map|contains|count_star|[^\w]+|.*_like_escape|list_(filter|apply|contains)|to_\w+)$/

let connection: DuckDBConnection
let instance: DuckDBInstance
beforeAll(async () => {
  instance = await DuckDBInstance.create(':memory:')
  connection = await instance.connect()
})
afterAll(() => {
  connection.closeSync()
  instance.closeSync()
})

/** Returns the tables and functions that DuckDB finds in a statement, or undefined if it cannot parse the text. */
async function reads(sql: string): Promise<readonly string[] | undefined> {
  const reader = await connection.runAndReadAll(`SELECT json_serialize_sql($$${sql}$$)`)
  const tree = JSON.parse(String(reader.getRows()[0]![0])) as { error: boolean; statements: unknown[] }
  if (tree.error) return undefined
  const found: string[] = []
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) node.forEach(visit)
    if (typeof node !== 'object' || node === null || Array.isArray(node)) return
    const { type, class: kind, ...rest } = node as Record<string, unknown>
    if (type === 'BASE_TABLE') {
      found.push(`table ${[rest['catalog_name'], rest['schema_name'], rest['table_name']].filter(Boolean).join('.')}`)
    } else if (type === 'TABLE_FUNCTION') {
      found.push(`table function ${String((rest['function'] as Record<string, unknown>)['function_name'])}`)
    } else if (type === 'PIVOT' || type === 'SHOW_REF' || type === 'COLUMN_DATA') found.push(type)
    else if (kind === 'FUNCTION' || kind === 'WINDOW') found.push(`function ${String(rest['function_name'])}`)
    Object.values(node).forEach(visit)
  }
  visit(tree.statements)
  if (tree.statements.length !== 1) found.push(`${tree.statements.length} statements`)
  return found
}

function isAllowed(read: string): boolean {
  const name = read.slice(read.lastIndexOf(' ') + 1).toLowerCase()
  if (read.startsWith('table function')) return name === 'range'
  if (read.startsWith('table')) return /^(\$s0|[a-z]\d+(_\d+)?)$/.test(name)
  // A table function also appears as a function call.
  return read.startsWith('function') && (vocabulary.functions.has(name) || SYNTAX.test(name) || name === 'range')
}

it('Mutated statements that pass the statement wall use only allowed tables and functions', async () => {
  let seed = 20261122
  const below = (n: number): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff
    return (seed >>> 8) % n
  }
  const known = [...rendered]
  const wrong: string[] = []
  let parsed = 0
  for (let tried = 0; tried < 20_000; tried++) {
    const tokens = [...known[below(known.length)]!]
    for (let change = below(4); change >= 0; change--) {
      const at = below(tokens.length + 1)
      const other = known[below(known.length)]!
      const from = below(other.length)
      const made = [[], [pieces[below(pieces.length)]!], other.slice(from, from + 1 + below(5))][below(3)]!
      tokens.splice(at, below(2), ...made)
    }
    if (tokens.length > 60) continue
    const sql = tokens.join(' ')
    try {
      checkStatement(sql, 1, vocabulary)
    } catch {
      continue
    }
    const found = await reads(sql)
    if (found === undefined) continue
    parsed++
    if (known.length < 3000) known.push(tokens)
    wrong.push(...found.filter((read) => !isAllowed(read)).map((read) => `${read}: ${sql}`))
  }
  expect(parsed).toBeGreaterThan(200)
  expect(wrong).toEqual([])
})
