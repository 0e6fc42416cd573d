import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../../src/shared/engine-error.ts'
import { createStatementPlanner } from '../../../src/planner/statement-planner.ts'
import type { PlannedStatement } from '../../../src/planner/planned-statement.ts'
import type { SessionContext } from '../../../src/sql/session.ts'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'
import { fixedMetadata, recordedSession } from '../../support/sql/fixed-metadata.ts'
import { refusedStatements } from '../../support/sql/recorded-statements.ts'
import { planText } from '../../support/plan-text.ts'

const planner = createStatementPlanner()

function analyze(sql: string, session: Partial<SessionContext> = {}): Promise<PlannedStatement> {
  return planText(planner, sql, recordedSession(session), fixedMetadata)
}

async function changesOf(sql: string, session: Partial<SessionContext> = {}) {
  const analyzed = await analyze(sql, session)
  if (analyzed.kind !== 'session') throw new Error(`${sql} is ${analyzed.kind}`)
  return { updateType: analyzed.updateType, changes: analyzed.changes }
}

describe('The changes of a session that a statement returns to the client', () => {
  it.each([
    ['USE sf1', 'USE', [{ kind: 'SetSchema', schema: 'sf1' }]],
    [
      'USE TPCH."SF1"',
      'USE',
      [
        { kind: 'SetCatalog', catalog: 'tpch' },
        { kind: 'SetSchema', schema: 'sf1' },
      ],
    ],
    [
      "SET SESSION query_max_run_time = '1h'",
      'SET SESSION',
      [{ kind: 'SetSession', name: 'query_max_run_time', value: '1h' }],
    ],
    ['SET SESSION task_concurrency = 8', 'SET SESSION', [{ kind: 'SetSession', name: 'task_concurrency', value: '8' }]],
    ['RESET SESSION query_max_run_time', 'RESET SESSION', [{ kind: 'ClearSession', name: 'query_max_run_time' }]],
    [
      "SET TIME ZONE 'Asia/Tokyo'",
      'SET TIME ZONE',
      [{ kind: 'SetSession', name: 'time_zone_id', value: 'Asia/Tokyo' }],
    ],
    [
      "SET TIME ZONE INTERVAL '5' HOUR",
      'SET TIME ZONE',
      [{ kind: 'SetSession', name: 'time_zone_id', value: '+05:00' }],
    ],
    [
      "SET TIME ZONE INTERVAL -'05:30' HOUR TO MINUTE",
      'SET TIME ZONE',
      [{ kind: 'SetSession', name: 'time_zone_id', value: '-05:30' }],
    ],
    ['SET TIME ZONE LOCAL', 'SET TIME ZONE', [{ kind: 'ClearSession', name: 'time_zone_id' }]],
    ['SET PATH tpch.tiny, other', 'SET PATH', [{ kind: 'SetPath', path: 'tpch.tiny, other' }]],
    ['SET ROLE NONE', 'SET ROLE', [{ kind: 'SetRole', catalog: 'system', role: 'NONE' }]],
    [
      'SET SESSION AUTHORIZATION conformance',
      'SET SESSION AUTHORIZATION',
      [{ kind: 'SetAuthorizationUser', user: 'conformance' }],
    ],
    ['RESET SESSION AUTHORIZATION', 'RESET SESSION AUTHORIZATION', [{ kind: 'ResetAuthorizationUser' }]],
    ['PREPARE p FROM SELECT ? + 1 -- x', 'PREPARE', [{ kind: 'AddedPrepare', name: 'p', sql: 'SELECT ? + 1' }]],
    [
      'START TRANSACTION READ ONLY',
      'START TRANSACTION',
      [{ kind: 'StartTransaction', isolation: 'READ UNCOMMITTED', readOnly: true }],
    ],
    [
      'START TRANSACTION ISOLATION LEVEL SERIALIZABLE',
      'START TRANSACTION',
      [{ kind: 'StartTransaction', isolation: 'SERIALIZABLE', readOnly: false }],
    ],
  ])('%s', async (sql, updateType, changes) => expect(await changesOf(sql)).toEqual({ updateType, changes }))

  it('DEALLOCATE PREPARE removes a prepared statement', async () => {
    const session = { preparedStatements: { p: 'SELECT 1' } }
    const deallocated = { updateType: 'DEALLOCATE', changes: [{ kind: 'DeallocatedPrepare', name: 'P' }] }
    expect(await changesOf('DEALLOCATE PREPARE P', session)).toEqual(deallocated)
  })

  it.each([
    ['EXECUTE p', 'EXECUTE'],
    ['EXPLAIN EXPLAIN ANALYZE EXECUTE p', 'EXECUTE'],
    ["EXECUTE IMMEDIATE 'EXECUTE p'", 'EXECUTEIMMEDIATE'],
    ['PREPARE p FROM SELECT 1', 'PREPARE'],
    ['DEALLOCATE PREPARE p', 'DEALLOCATE'],
  ])('%s as a prepared text is refused, since it could run without end', async (text, kind) => {
    const refusal = {
      errorName: 'NOT_SUPPORTED',
      message: `Invalid statement type for prepared statement: ${kind}`,
    }
    await expect(analyze('EXECUTE p', { preparedStatements: { p: text } })).rejects.toMatchObject(refusal)
    await expect(analyze(`EXECUTE IMMEDIATE '${text.replaceAll("'", "''")}'`)).rejects.toMatchObject(refusal)
  })

  it('COMMIT and ROLLBACK end an open transaction', async () => {
    const session = { transactionId: '7fe1a2b0-0000-4000-8000-000000000000' }
    expect(await changesOf('COMMIT', session)).toEqual({ updateType: 'COMMIT', changes: [{ kind: 'Commit' }] })
    expect(await changesOf('ROLLBACK WORK', session)).toEqual({
      updateType: 'ROLLBACK',
      changes: [{ kind: 'Rollback' }],
    })
    await expect(analyze('START TRANSACTION', session)).rejects.toThrow('Nested transactions not supported')
  })
})

describe('The columns of SHOW and DESCRIBE', () => {
  it.each<[string, Record<string, string>]>([
    ['SHOW CATALOGS', { Catalog: 'varchar(6)' }],
    ["SHOW SCHEMAS FROM tpch LIKE 's%'", { Schema: 'varchar' }],
    ['SHOW TABLES', { Table: 'varchar' }],
    ['SHOW TABLES FROM information_schema', { Table: 'varchar' }],
    ['DESCRIBE nation', { Column: 'varchar', Type: 'varchar', Extra: 'varchar', Comment: 'varchar' }],
    ['SHOW CREATE TABLE nation', { 'Create Table': 'varchar(156)' }],
    ['SHOW CREATE SCHEMA tiny', { 'Create Schema': 'varchar(23)' }],
    ['SHOW CREATE VIEW big_nation', { 'Create View': 'varchar(76)' }],
    [
      "SHOW SESSION LIKE 'query%'",
      {
        Name: 'varchar(57)',
        Value: 'varchar(14)',
        Default: 'varchar(14)',
        Type: 'varchar(14)',
        Description: 'varchar(162)',
      },
    ],
    ['SHOW ROLES', { Role: 'varchar' }],
    ['SHOW ROLE GRANTS', { 'Role Grants': 'varchar' }],
    [
      'SHOW STATS FOR nation',
      {
        column_name: 'varchar',
        data_size: 'double',
        distinct_values_count: 'double',
        nulls_fraction: 'double',
        row_count: 'double',
        low_value: 'varchar',
        high_value: 'varchar',
      },
    ],
    [
      'SHOW STATS FOR (SELECT name, regionkey + 1 FROM nation)',
      {
        column_name: 'varchar',
        data_size: 'double',
        distinct_values_count: 'double',
        nulls_fraction: 'double',
        row_count: 'double',
        low_value: 'varchar',
        high_value: 'varchar',
      },
    ],
    ['DESCRIBE INPUT p', { Position: 'integer', Type: 'varchar(7)' }],
    [
      'DESCRIBE OUTPUT p',
      {
        'Column Name': 'varchar(5)',
        Catalog: 'varchar(4)',
        Schema: 'varchar(4)',
        Table: 'varchar(6)',
        Type: 'varchar(11)',
        'Type Size': 'integer',
        Aliased: 'boolean',
      },
    ],
  ])('%s', async (sql, columns) => {
    const preparedStatements = { p: 'SELECT name, nationkey AS k, ? AS other FROM nation' }
    const analyzed = await analyze(sql, { preparedStatements })
    if (analyzed.kind !== 'query') throw new Error(`${sql} is ${analyzed.kind}`)
    expect(analyzed.queryType).toBe('DESCRIBE')
    expect(Object.fromEntries(analyzed.columns.map(({ name, type }) => [name, type]))).toEqual(columns)
  })

  it("SHOW FUNCTIONS has Trino's columns, with at least Trino's width", async () => {
    const analyzed = await analyze("SHOW FUNCTIONS LIKE 'array%'")
    if (analyzed.kind !== 'query') throw new Error(analyzed.kind)
    const names = ['Function', 'Return Type', 'Argument Types', 'Function Type', 'Deterministic', 'Description']
    expect(analyzed.columns.map(({ name }) => name)).toEqual(names)
    expect(analyzed.columns[0]!.type).toBe('varchar(31)')
  })
})

describe('The rows of SHOW and DESCRIBE', () => {
  let database: InProcessDuckDB
  beforeAll(async () => {
    database = await openDuckDB()
  })
  afterAll(() => database.close())

  async function rowsOf(sql: string, session: Partial<SessionContext> = {}): Promise<unknown[][]> {
    const analyzed = await analyze(sql, session)
    if (analyzed.kind !== 'query') throw new Error(`${sql} is ${analyzed.kind}`)
    return database.rows(analyzed.query.sql)
  }

  it.each([
    ['SHOW CATALOGS', [['system'], ['tpch']]],
    ["SHOW CATALOGS LIKE 't%'", [['tpch']]],
    ["SHOW SCHEMAS LIKE 's_1'", [['sf1']]],
    ['SHOW TABLES', [['nation'], ['orders'], ['region']]],
    ["SHOW TABLES IN sf1 LIKE '%ion'", [['nation'], ['region']]],
    ["SHOW TABLES LIKE 'x%'", []],
    ['SHOW TABLES FROM information_schema', []],
    [
      'DESCRIBE orders',
      [
        ['orderkey', 'bigint', '', ''],
        ['totalprice', 'double', '', ''],
        ['orderdate', 'date', '', ''],
      ],
    ],
    [
      "SHOW COLUMNS FROM nation LIKE '%key'",
      [
        ['nationkey', 'bigint', '', ''],
        ['regionkey', 'bigint', '', ''],
      ],
    ],
    [
      'SHOW CREATE VIEW big_nation',
      [['CREATE VIEW tpch.tiny.big_nation SECURITY DEFINER AS\nSELECT name FROM nation']],
    ],
    ['SHOW GRANTS', []],
    [
      'DESCRIBE INPUT p',
      [
        [0, 'unknown'],
        [1, 'bigint'],
      ],
    ],
    ['DESCRIBE INPUT none', []],
    [
      'DESCRIBE INPUT writing',
      [
        [0, 'bigint'],
        [1, 'bigint'],
      ],
    ],
    ['DESCRIBE OUTPUT writing', [['rows', '', '', '', 'bigint', 8, false]]],
    ['DESCRIBE INPUT deleting', [[0, 'bigint']]],
    [
      'DESCRIBE INPUT updating',
      [
        [0, 'varchar(25)'],
        [1, 'bigint'],
        [2, 'bigint'],
      ],
    ],
    [
      'DESCRIBE INPUT merging',
      [
        [0, 'bigint'],
        [1, 'bigint'],
        [2, 'varchar(25)'],
      ],
    ],
    ['DESCRIBE OUTPUT deleting', [['rows', '', '', '', 'bigint', 8, false]]],
    ['DESCRIBE OUTPUT updating', [['rows', '', '', '', 'bigint', 8, false]]],
    ['DESCRIBE OUTPUT merging', [['rows', '', '', '', 'bigint', 8, false]]],
    ['DESCRIBE OUTPUT altering', []],
    [
      'DESCRIBE OUTPUT p',
      [
        ['name', 'tpch', 'tiny', 'nation', 'varchar(25)', 0, false],
        ['k', 'tpch', 'tiny', 'nation', 'bigint', 8, true],
        ['_col2', '', '', '', 'unknown', 1, false],
      ],
    ],
  ])('%s', async (sql, rows) => {
    const preparedStatements = {
      p: 'SELECT name, nationkey AS k, ? FROM nation WHERE nationkey = ?',
      none: 'SELECT 1',
      writing: 'CREATE TABLE x AS SELECT nationkey + ? AS k FROM nation LIMIT ?',
      deleting: 'DELETE FROM nation WHERE nationkey = ?',
      updating: 'UPDATE nation SET name = ?, nationkey = ? WHERE regionkey = ?',
      merging:
        'MERGE INTO nation n USING region r ON n.regionkey = r.regionkey AND r.regionkey > ? WHEN MATCHED AND nationkey = ? THEN UPDATE SET name = ?',
      altering: 'ALTER TABLE nation RENAME TO nations',
    }
    expect(await rowsOf(sql, { preparedStatements })).toEqual(rows)
  })

  it.each([
    ['UPDATE nation SET nope = ?', "The UPDATE SET target column nope doesn't exist"],
    ['DELETE FROM nowhere WHERE a = ?', "Table 'tpch.tiny.nowhere' does not exist"],
    ['DELETE FROM nation WHERE nope = ?', "Column 'nope' cannot be resolved"],
  ])('DESCRIBE INPUT and OUTPUT refuse %s', async (text, message) => {
    for (const described of ['INPUT', 'OUTPUT'])
      await expect(rowsOf(`DESCRIBE ${described} p`, { preparedStatements: { p: text } })).rejects.toThrow(message)
  })

  it('SHOW SESSION shows the values of the session', async () => {
    const rows = await rowsOf("SHOW SESSION LIKE 'query_max_run_time'", { properties: { query_max_run_time: '5m' } })
    expect(rows.map((row) => row.slice(0, 4))).toEqual([['query_max_run_time', '5m', '100.00d', 'varchar']])
  })

  it('SHOW FUNCTIONS shows a function of the function table', async () => {
    const rows = await rowsOf("SHOW FUNCTIONS LIKE 'array_join'")
    expect(rows.map((row) => row.slice(0, 5))).toContainEqual([
      'array_join',
      'varchar',
      'array(E), varchar',
      'scalar',
      true,
    ])
  })
})

describe('The errors of statements about the session and about objects', () => {
  const statements =
    /^(?:SHOW|DESC|USE|SET|RESET|PREPARE|EXECUTE|DEALLOCATE|START|COMMIT|ROLLBACK|CREATE (?:ROLE|FUNCTION)|DROP (?:ROLE|CATALOG|TABLE|VIEW)|UPDATE nosuch|MERGE INTO nosuch|TRUNCATE TABLE nosuch)\b/i
  // These names depend on the server of the recording: a user, the schema `memory`.
  const cases = refusedStatements().filter(
    ({ sql, errorName }) => statements.test(sql) && errorName !== 'SYNTAX_ERROR' && !/AUTHORIZATION|memory/.test(sql),
  )
  it.each(cases.map(({ sql, errorName, message }) => [sql, errorName, message] as const))(
    '%s',
    async (sql, errorName, message) => {
      const error = await analyze(sql).then(
        () => undefined,
        (reason: unknown) => reason,
      )
      expect(error).toBeInstanceOf(EngineError)
      expect({ errorName: (error as EngineError).errorName, message: (error as EngineError).message }).toEqual({
        errorName,
        message,
      })
    },
  )

  it.each([
    ['SHOW TABLES FROM missing', 'SCHEMA_NOT_FOUND', "line 1:1: Schema 'missing' does not exist"],
    ['SHOW TABLES FROM a.b.c', 'SYNTAX_ERROR', 'line 1:1: Too many parts in schema name: a.b.c'],
    ['USE nowhere.x', 'CATALOG_NOT_FOUND', "Catalog 'nowhere' not found"],
    ['SET SESSION nope = 1', 'INVALID_SESSION_PROPERTY', "line 1:20: Session property 'nope' does not exist"],
    [
      "SET SESSION query_max_run_time = 'soon'",
      'INVALID_SESSION_PROPERTY',
      'line 1:34: duration is not a valid data duration string: soon',
    ],
    [
      'SET SESSION task_concurrency = random()',
      'NOT_SUPPORTED',
      'line 1:32: A session property is set to a literal, not to random()',
    ],
    [
      'SET SESSION AUTHORIZATION eve',
      'PERMISSION_DENIED',
      'Access Denied: User conformance cannot impersonate user eve',
    ],
    ['CALL system.runtime.x()', 'PROCEDURE_NOT_FOUND', 'Procedure not registered: runtime.x'],
    ['CALL nowhere.x.y()', 'CATALOG_NOT_FOUND', "line 1:1: Catalog 'nowhere' not found"],
    ['SHOW SCHEMAS FROM nowhere', 'CATALOG_NOT_FOUND', "Catalog 'nowhere' not found"],
    ['CALL kill_query()', 'PROCEDURE_NOT_FOUND', 'Procedure not registered: tiny.kill_query'],
    [
      "CALL system.runtime.kill_query(query_id => 'x', 'y')",
      'INVALID_ARGUMENTS',
      'line 1:1: Named and positional arguments cannot be mixed',
    ],
    [
      "CALL system.runtime.kill_query(message => 'x')",
      'INVALID_ARGUMENTS',
      "line 1:1: Required procedure argument 'QUERY_ID' is missing",
    ],
    [
      'CALL system.runtime.kill_query("query_id" => \'x\')',
      'INVALID_ARGUMENTS',
      'line 1:32: Unknown argument name: query_id',
    ],
    ["CALL system.runtime.kill_query(1, 'x')", 'TYPE_MISMATCH', 'line 1:32: Cannot cast type integer to varchar'],
    [
      'CALL system.runtime.kill_query(a)',
      'EXPRESSION_NOT_CONSTANT',
      'line 1:32: Constant expression cannot contain column references',
    ],
    [
      'CALL system.runtime.kill_query((SELECT max(name) FROM tpch.tiny.nation))',
      'EXPRESSION_NOT_CONSTANT',
      'line 1:32: Constant expression cannot contain column references',
    ],
    [
      'CALL system.runtime.kill_query(?)',
      'INVALID_PARAMETER_USAGE',
      'line 1:1: Incorrect number of parameters: expected 1 but found 0',
    ],
    ['GRANT a TO b', 'NOT_SUPPORTED', 'line 1:1: GRANT ROLES is not supported'],
    ['CREATE TABLE t ("a\0" int)', 'NOT_SUPPORTED', 'line 1:17: The name of a column must not hold NUL'],
    ['CREATE TABLE t AS SELECT 1 AS "\0a"', 'NOT_SUPPORTED', 'line 1:1: The name of a column must not hold NUL'],
    ['CREATE TABLE t ("\0a") AS SELECT 1', 'NOT_SUPPORTED', 'line 1:1: The name of a column must not hold NUL'],
  ])('%j', async (sql, errorName, message) => {
    await expect(analyze(sql)).rejects.toThrow(expect.objectContaining({ errorName, message }))
  })

  it('A statement that the client cannot support is refused', async () => {
    const session = { clientCapabilities: [] }
    await expect(analyze('SET PATH a', session)).rejects.toThrow('SET PATH not supported by client')
    const { transactionId: _, ...noTransactions } = recordedSession()
    const started = planText(planner, 'START TRANSACTION', noTransactions, fixedMetadata)
    await expect(started).rejects.toThrow(expect.objectContaining({ errorName: 'INCOMPATIBLE_CLIENT' }))
  })

  it('The time zone of the session applies to the next statement', async () => {
    const analyzed = await analyze('SELECT current_timezone()', { properties: { time_zone_id: 'Asia/Tokyo' } })
    expect(analyzed.kind === 'query' && analyzed.query.sql).toContain('Asia/Tokyo')
  })
})
