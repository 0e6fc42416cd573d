import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EngineQuery } from '../../../src/execution/engine/engine-query.ts'
import { checkQuery, statementText } from '../../../src/execution/engine/statement-text.ts'
import {
  checkExpression,
  checkStatement,
  checkType,
  RESERVED,
  type EngineVocabulary,
} from '../../../src/execution/engine/statement-wall.ts'
import { openTestPool, type TestPool } from '../../support/engines.ts'
import { csvPart, jsonPart } from '../../support/text-parts.ts'

const vocabulary: EngineVocabulary = {
  functions: new Set(['count', 'sum', 'left', 'json_array', 'coalesce', 'unnest', 'mode', 'row_number', 'chr', 'trim']),
  tableFunctions: new Set(['range']),
  scripted: new Set<string>(),
  macros: new Map(),
}

describe('The statement wall', () => {
  it.each([
    `SELECT 1 AS c0`,
    `SELECT x0 AS c0, count(*) FILTER (WHERE x0 > 1) AS c1 FROM (SELECT "a ""b" AS x0 FROM "$s0") GROUP BY x0 ORDER BY c0 ASC NULLS LAST LIMIT 3`,
    `WITH w0 AS (SELECT 1 AS x0), w1_0 AS NOT MATERIALIZED (SELECT x0 FROM w0) SELECT x0 AS c0 FROM w1_0 UNION ALL SELECT 2`,
    `SELECT * FROM (VALUES (1, 'a;--/*'), (2, 'b')) AS v0(x0, x1) CROSS JOIN range(3) r(i) LEFT JOIN "$s1" ON x0 = i, "$s0" AS s`,
    `SELECT c0 FROM ((SELECT 1 AS c0) UNION ALL (SELECT 2)) ORDER BY c0`,
    `SELECT c0 FROM ("$s0" INNER JOIN ("$s1" JOIN "$s0" AS b ON true) ON b.x = a.y) WHERE EXISTS (SELECT 1 FROM "$s1")`,
    `SELECT sum(x) OVER (PARTITION BY a ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS c0 FROM "$s0"`,
    `SELECT a IS NOT DISTINCT FROM b AS c0, left(a, 1), {'f0': (a).f1, 'q"': [1, 2][1]} FROM "$s0" LEFT JOIN LATERAL (SELECT 1 AS one) ON true`,
    `SELECT CAST(x AS DECIMAL(9,2))::VARCHAR AS c0, CAST(NULL AS STRUCT(t TIMESTAMP WITH TIME ZONE)[]), coalesce([x for_], lambda y: -y) FROM "$s0"`,
    `SELECT x0 IN (SELECT 1) AS c0, CASE WHEN (x0) THEN 'it''s' ELSE (SELECT 2) END FROM (SELECT DISTINCT ON (x0) x0 FROM "$s0")`,
    `SELECT 'мир', "мир" AS c0`,
  ])('accepts %s', (sql) => {
    expect(() => checkStatement(sql, 2, vocabulary)).not.toThrow()
  })
})

/** Statements that a client may try to inject, by the kind of attack. `$F` is a file that the engine may read. */
const hostile: Readonly<Record<string, readonly string[]>> = {
  'functions that read': [
    `SELECT (SELECT content FROM read_text('$F'))`,
    `SELECT * FROM read_csv('$F')`,
    `SELECT * FROM "read_csv"('$F')`,
    `SELECT * FROM read_csv /**/ ('$F')`,
    `SELECT * FROM main.read_csv('$F')`,
    `SELECT * FROM system.main.read_text('$F')`,
    `SELECT * FROM "system"."main"."read_text"('$F')`,
    `SELECT * FROM LATERAL read_text('$F')`,
    `SELECT * FROM range(1), read_text('$F')`,
    `SELECT * FROM range(1) AS r JOIN read_text('$F') ON true`,
    `SELECT * FROM (read_text('$F'))`,
    `SELECT * FROM (range(1) r0 CROSS JOIN read_text('$F'))`,
    `SELECT * FROM glob('/*')`,
    `SELECT * FROM sniff_csv('$F')`,
    `SELECT * FROM parquet_metadata('$F')`,
    `SELECT * FROM query('SELECT 1')`,
    `SELECT * FROM query_table('x')`,
    `SELECT * FROM duckdb_settings()`,
    `SELECT * FROM duckdb_logs()`,
    `SELECT * FROM pragma_table_info('x')`,
    `SELECT * FROM test_all_types()`,
    `SELECT current_setting('temp_directory')`,
    `SELECT getvariable('x')`,
    `SELECT getenv('HOME')`,
    `SELECT 'x'.getenv()`,
    `SELECT ('x').current_setting()`,
    `SELECT system.main.current_setting('threads')`,
    `SELECT "current_setting"('threads')`,
    `SELECT current_setting\n('threads')`,
    `SELECT json_serialize_sql('SELECT 1')`,
    `SELECT count(*) + (SELECT max(size) FROM read_blob('$F'))`,
    `SELECT COLUMNS('x') FROM range(1)`,
    `SELECT * FROM range(1) ORDER BY (SELECT 1 FROM read_text('$F'))`,
    `SELECT 1 LIMIT (SELECT 1 FROM read_text('$F'))`,
    `VALUES ((SELECT content FROM read_text('$F')))`,
    `SELECT sum(1) OVER (PARTITION BY (SELECT content FROM read_text('$F')))`,
    `SELECT sum(1) FILTER (WHERE (SELECT true FROM read_text('$F')))`,
    `SELECT [x for x in (SELECT content FROM read_text('$F'))]`,
  ],
  'names and strings that are files or views': [
    `SELECT * FROM '$F'`,
    `SELECT * FROM "$F"`,
    `SELECT * FROM range(1), '$F'`,
    `SELECT * FROM range(1) CROSS JOIN '$F'`,
    `SELECT * FROM range(1) r JOIN range(1) s ON true, '$F'`,
    `SELECT * FROM range(1) r JOIN range(1) s ON r.where = 1, '$F'`,
    `SELECT * FROM range(1) r JOIN range(1) s ON mode() WITHIN GROUP (ORDER BY 1) = 1, '$F'`,
    `SELECT * FROM range(1) r JOIN range(1) s USING (range), '$F'`,
    `SELECT * FROM ('$F')`,
    `SELECT * FROM (range(1) r CROSS JOIN '$F')`,
    `SELECT * FROM ((range(1) r CROSS JOIN '$F'))`,
    `SELECT * FROM ((SELECT 1) v0, '$F')`,
    `SELECT 1 IN (FROM '$F')`,
    `SELECT (FROM '$F')`,
    `FROM '$F'`,
    `FROM '$F' SELECT 1`,
    `FROM range(1) SELECT 1`,
    `SELECT 1 UNION ALL FROM '$F'`,
    `SELECT 1 UNION ALL TABLE "$F"`,
    `TABLE "$F"`,
    `SELECT * FROM range(1) NATURAL JOIN '$F'`,
    `SELECT * FROM range(1) POSITIONAL JOIN '$F'`,
    `SELECT * FROM range(1) r ASOF JOIN '$F' ON true`,
    `SELECT * FROM range(1) r SEMI JOIN '$F' ON true`,
    `SELECT "is" "distinct" FROM '$F'`,
    `SELECT 1 AS "is", 2 AS "distinct" FROM '$F'`,
    `SELECT x.is DISTINCT FROM '$F'`,
    `WITH w0 AS (SELECT 1) SELECT * FROM w0: '$F'`,
    `SELECT * FROM a0: '$F'`,
    `WITH "$F" AS (SELECT 1) SELECT * FROM "$F"`,
    `SELECT * FROM (WITH "$F" AS (SELECT 1) SELECT 1), "$F"`,
    `SELECT * FROM (WITH duckdb_settings AS (SELECT 1) SELECT 1), duckdb_settings`,
    `WITH sqlite_master AS (SELECT 1) SELECT * FROM sqlite_master`,
    `WITH w0 AS MATERIALIZED (FROM '$F') SELECT * FROM w0`,
    `WITH RECURSIVE w0 AS (SELECT 1) SELECT * FROM w0`,
    `SELECT * FROM duckdb_settings`,
    `SELECT * FROM information_schema.tables`,
    `SELECT * FROM main.w0`,
    `SELECT * FROM w0`,
    `SELECT * FROM "$s2"`,
    `SELECT * FROM "$s0".x`,
    `PIVOT '$F' ON x`,
    `SELECT * FROM (PIVOT '$F' ON x)`,
    `SELECT * FROM '$F' PIVOT (count(*) FOR x IN (1))`,
    `SELECT * FROM (UNPIVOT '$F' ON x)`,
    `SELECT * FROM (DESCRIBE '$F')`,
    `SELECT * FROM (SUMMARIZE '$F')`,
    `SELECT * FROM (SHOW ALL TABLES)`,
    `SELECT * FROM (TABLE "$F")`,
    `DESCRIBE SELECT 1`,
    `SUMMARIZE '$F'`,
    `SELECT extract(year FROM '$F')`,
    `SELECT trim(BOTH FROM '$F')`,
  ],
  'statements that are not a SELECT': [
    ``,
    `COPY (SELECT 1) TO '$F'`,
    `ATTACH '$F' AS other`,
    `INSTALL httpfs`,
    `LOAD '$F'`,
    `CALL enable_logging()`,
    `PRAGMA enable_profiling`,
    `SET threads = 8`,
    `RESET threads`,
    `EXPLAIN SELECT 1`,
    `PREPARE p AS SELECT 1`,
    `EXECUTE p`,
    `CREATE TEMP TABLE t AS SELECT 1`,
    `INSERT INTO t VALUES (1)`,
    `SELECT 1; SELECT 2`,
    `SELECT 1;`,
    `SELECT 1 INTO t`,
    `WITH w0 AS (DELETE FROM t RETURNING 1) SELECT * FROM w0`,
    `(SELECT 1) SELECT 2`,
    `SELECT 1)`,
    `SELECT (1`,
    `SELECT 1) AS q(c0) UNION ALL SELECT * FROM (SELECT 2`,
  ],
  'text that a lexer may read in different ways': [
    `SELECT 1 -- '\n FROM read_text('$F')`,
    `SELECT 1 /* ' */ FROM read_text('$F') /* ' */`,
    `SELECT E'\\' FROM read_text(''$F'') --'`,
    `SELECT e'\\'', (SELECT 1)`,
    `SELECT U&"\\0066oo"`,
    `SELECT u&'x'`,
    `SELECT x'00'`,
    `SELECT B'01'`,
    `SELECT $$ a $$`,
    `SELECT $x$ a $x$`,
    `SELECT $1`,
    `SELECT ?`,
    `SELECT 'a'\n'b'`,
    `SELECT 'a`,
    `SELECT "a`,
    `SELECT 'a\0' FROM read_text('$F')`,
    `SELECT\u00a01`,
    `SELECT\u30001`,
    `SELECT ｃ０`,
    `SELECT 1\t+ 1`,
    `SELECT 1abc`,
    `SELECT 0x1F`,
    `SELECT #1`,
    `SELECT @x`,
    `SELECT a\\b`,
    `SELECT [x FOR x IN [1]]`,
    `SELECT 1 AS from`,
    `SELECT (count)(1)`,
    `SELECT 'count'(1)`,
    `SELECT "count"(1)`,
  ],
}

/** The texts have one output column, so that the engine would run them if the wall accepted them. */
const all = Object.entries(hostile).flatMap(([what, texts]) => texts.map((text) => [what, text] as const))

describe('The statement wall for hostile input', () => {
  it.each(all)('refuses %s: %s', (_what, text) => {
    expect(() => checkStatement(text.replaceAll('$F', '/data/secret.csv'), 2, vocabulary)).toThrow(
      'The statement was refused',
    )
  })

  it('refuses texts that are not exactly one expression', () => {
    for (const text of ['c0', `coalesce(c0, 'x''y')`, `CASE WHEN c0 IS NULL THEN 1 END`, '(SELECT 1)'])
      expect(() => checkExpression(text, vocabulary)).not.toThrow()
    const wrong = [
      `c0, c1`,
      `c0) FROM range(1`,
      `c0 FROM range(1)`,
      `c0 AS x UNION SELECT 1`,
      `read_text('x')`,
      `(SELECT 1 FROM '/x.csv')`,
      `SELECT 1`,
      `c0; SELECT 1`,
      `c0 -- `,
    ]
    for (const text of wrong) expect(() => checkExpression(text, vocabulary), text).toThrow('refused')
  })

  it('refuses texts that are not a type', () => {
    const types = [
      'INTEGER',
      'DECIMAL(9,2)[]',
      'STRUCT("a ""b" INTEGER, c TIMESTAMP WITH TIME ZONE[3])',
      `MAP(VARCHAR, STRUCT(x ENUM('a', 'b')))`,
    ]
    for (const type of types) expect(() => checkType(type), type).not.toThrow()
    const wrong = ['', 'INTEGER)', `INTEGER), read_text('x'`, 'SELECT', 'x()', `'x'`, 'INTEGER; SELECT 1', 'STRUCT(a']
    for (const type of wrong) expect(() => checkType(type), type).toThrow('refused')
  })

  it('refuses nesting so deep that it would overflow the stack of the parser', () => {
    for (const open of ['(', '[', 'coalesce(', '(SELECT '])
      expect(() => checkStatement(`SELECT ${open.repeat(100_000)}`, 0, vocabulary)).toThrow('nested too deeply')
  })
})

it('RESERVED of the statement wall equals the reserved keywords of this DuckDB', async () => {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  const reader = await connection.runAndReadAll(
    `SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')`,
  )
  const words = reader.getRowsJson().map(([word]) => String(word))
  connection.closeSync()
  instance.closeSync()
  expect([...RESERVED].toSorted()).toEqual(words.toSorted())
})

describe('An engine that receives hostile statements', () => {
  let engines: TestPool
  let secret: string
  const functionsModule = new URL('../../../dist/duckdb/engine-module.js', import.meta.url).href
  beforeAll(async () => {
    engines = await openTestPool({ functionsModule })
    mkdirSync(engines.data, { recursive: true })
    secret = join(engines.data, 'secret.csv')
    writeFileSync(secret, 'hidden\n42\n')
  })
  afterAll(async () => {
    await engines[Symbol.asyncDispose]()
  })

  it('refuses each of them for each kind of output, and stays usable', async () => {
    for (const [, text] of all) {
      const sql = text.replaceAll('$F', secret)
      await expect(engines.run(sql).done, text).rejects.toMatchObject({
        errorName: 'GENERIC_INTERNAL_ERROR',
        message: expect.stringMatching(/^The statement was refused: /),
      })
    }
    // Each kind of output puts another text around the statement.
    const tried = `SELECT content FROM read_text('${secret}')`
    const folder = join(engines.data, 'written')
    for (const output of [
      { kind: 'stream', onRows: () => undefined },
      { kind: 'parquet', folder },
    ] as const)
      await expect(engines.run(tried, { output }).done).rejects.toThrow('refused')
    expect(existsSync(folder)).toBe(false)
    expect(engines.events.filter(({ type }) => type === 'refused')).toHaveLength(all.length + 2)
    expect(engines.events.filter(({ type }) => type === 'ended')).toEqual([])
    expect(readFileSync(secret, 'utf8')).toBe('hidden\n42\n')
    expect(await engines.rows(`SELECT '[1]'`)).toEqual([[1]])
  })

  it('refuses SQL that is injected as a value, a name or a type beside the statement', async () => {
    const scan = (columns: { name: string; source?: string; cast?: string }[]): EngineQuery['scans'] => [
      [csvPart(secret, columns)],
    ]
    const reads = `(SELECT content FROM read_text('${secret}'))`
    const queries: EngineQuery[] = [
      { sql: 'SELECT 1 AS c0', scans: [], row: { kind: 'json', values: [reads] } },
      {
        sql: 'SELECT 1 AS c0',
        scans: [],
        row: { kind: 'json', values: [`c0), content FROM read_text('${secret}') --`] },
      },
      {
        sql: 'SELECT 1 AS c0',
        scans: [],
        row: { kind: 'typed', columns: [{ name: 'x', type: `INTEGER), ${reads}` }] },
      },
      {
        sql: 'SELECT x AS c0 FROM "$s0"',
        scans: scan([{ name: 'x', cast: `VARCHAR), ${reads} AS y, (1` }]),
        row: { kind: 'json', values: ['c0'] },
      },
    ]
    for (const query of queries) await expect(engines.run('', { query }).done).rejects.toThrow('refused')
    const ranges = [{ path: secret, firstRow: `0 OR true` as unknown as number, rows: 1, fileRows: 9 }]
    const injected: EngineQuery = {
      sql: 'SELECT 1 AS c0 FROM "$s0"',
      scans: [[{ kind: 'parquet', ranges, columns: [] }]],
      row: { kind: 'json', values: ['c0'] },
    }
    await expect(engines.run('', { query: injected }).done).rejects.toThrow('refused')
    // Names are quoted, so any text can be the name of a column.
    const odd = `x"; SELECT '--`
    const named: EngineQuery = {
      sql: `SELECT "${odd.replaceAll('"', '""')}" AS c0 FROM "$s0"`,
      scans: scan([{ name: odd, source: 'c0' }]),
      row: { kind: 'json', values: ['c0'] },
    }
    expect(JSON.parse((await engines.run('', { query: named }).done).inline!.toString())).toEqual(['42'])
  })

  it('names no literal of the statement in the error of a refusal', async () => {
    const refused = engines.run(`SELECT 'hunter5', "hunter5" FROM read_text('hunter5')`).done
    await expect(refused).rejects.toThrow('The statement was refused: the table function read_text at character 33')
  })

  it('refuses a hostile statement again, also with the cache of prepared statements', async () => {
    const cachePrepared = true
    expect(await engines.rows(`SELECT '[1]'`, { cachePrepared })).toEqual([[1]])
    expect(await engines.rows(`SELECT '[1]'`, { cachePrepared })).toEqual([[1]])
    const refused = `SELECT content FROM read_text('${secret}')`
    for (let time = 0; time < 2; time++)
      await expect(engines.run(refused, { cachePrepared }).done).rejects.toThrow('refused')
  })
})

it.each([`'; SELECT 2; --`, `"; SELECT 2; --`, `''";/*`, `\\'; SELECT 2`, `$$; SELECT 2`, `мир;`])(
  '`statementText` makes one statement from scans whose names and values contain %s',
  async (odd) => {
    const query: EngineQuery = {
      sql: 'SELECT * FROM "$s0", "$s1", "$s2"',
      row: { kind: 'typed', columns: [{ name: odd, type: 'VARCHAR' }] },
      scans: [
        [
          { ...csvPart(`/${odd}.csv`, [{ name: odd, source: odd }]), types: [{ field: 0, type: odd, blanks: false }] },
          jsonPart(`/${odd}.json`, [{ name: odd, source: odd }], [{ source: odd, type: odd }]),
        ],
        [{ kind: 'rows', rows: [{ [odd]: odd }], columns: [{ name: odd, shape: 'VARCHAR' }] }],
        [
          {
            kind: 'parquet',
            ranges: [{ path: `/${odd}.parquet`, firstRow: 1, rows: 1, fileRows: 3 }],
            columns: [{ name: odd, source: odd, cast: 'DECIMAL(9,2)' }],
          },
        ],
      ],
    }
    const scans = checkQuery(query, vocabulary).scans
    expect(scans).toHaveLength(3)
    const instance = await DuckDBInstance.create(':memory:')
    const connection = await instance.connect()
    try {
      expect((await connection.extractStatements(statementText(query, scans))).count).toBe(1)
    } finally {
      connection.closeSync()
      instance.closeSync()
    }
  },
)
