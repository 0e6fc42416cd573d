import { describe, expect, it } from 'vitest'
import type { ConnectorTable } from '../../../src/connectors/spi/connector.ts'
import type { MetadataPort } from '../../../src/sql/front-end.ts'
import { createStatementPlanner } from '../../../src/planner/statement-planner.ts'
import { planText } from '../../support/plan-text.ts'
import { fixedMetadata, recordedSession } from '../../support/sql/fixed-metadata.ts'

const planner = createStatementPlanner()

const columns = [
  { name: 'a', type: 'bigint', nullable: false },
  { name: 'b', type: 'varchar', nullable: true },
]
const table = (name: string): ConnectorTable => ({
  schema: 's',
  table: name,
  kind: 'TABLE',
  handle: {},
  columns,
})
const objects: Readonly<Record<string, ConnectorTable>> = {
  t: table('t'),
  u: table('u'),
  single: { ...table('single'), columns: columns.slice(0, 1) },
  v: { ...table('v'), kind: 'VIEW', view: { sql: 'SELECT a, b FROM t', catalog: 'c', schema: 's' } },
}

/** A catalog `c` with the schemas s and r; s has the tables t, u and single, and a view v of t. */
const metadata: MetadataPort = {
  ...fixedMetadata,
  catalogs: () => ['c', 'other'],
  schemas: async () => ['r', 's'],
  tables: async () => [],
  table: async (catalog, schema, name) => (catalog === 'c' && schema === 's' ? objects[name] : undefined),
}

const plan = (sql: string) => planText(planner, sql, recordedSession({ catalog: 'c', schema: 's' }), metadata)

const didYouMean = (doing: string): string => `with that name exists. Did you mean ${doing}`

describe('A statement that changes data or definitions', () => {
  it.each([
    ['ALTER TABLE x RENAME TO y', 'TABLE_NOT_FOUND', "Table 'c.s.x' does not exist"],
    [
      'ALTER TABLE v RENAME TO y',
      'GENERIC_USER_ERROR',
      `Table 'c.s.v' does not exist, but a view ${didYouMean('ALTER VIEW c.s.v RENAME TO ...?')}`,
    ],
    ['ALTER TABLE t RENAME TO t', 'TABLE_ALREADY_EXISTS', "Target table 'c.s.t' already exists"],
    ['ALTER TABLE t RENAME TO s.u', 'TABLE_ALREADY_EXISTS', "Target table 'c.s.u' already exists"],
    [
      'ALTER TABLE t RENAME TO v',
      'GENERIC_USER_ERROR',
      "Target table 'c.s.v' does not exist, but a view with that name exists.",
    ],
    ['ALTER TABLE t RENAME TO other.s.t', 'NOT_SUPPORTED', 'Table rename across catalogs is not supported'],
    ['ALTER TABLE t RENAME TO nope.s.t', 'CATALOG_NOT_FOUND', "Target catalog 'nope' not found"],
    ['ALTER VIEW x RENAME TO y', 'TABLE_NOT_FOUND', "View 'c.s.x' does not exist"],
    [
      'ALTER VIEW t RENAME TO y',
      'TABLE_NOT_FOUND',
      `View 'c.s.t' does not exist, but a table ${didYouMean('ALTER TABLE c.s.t RENAME TO ...?')}`,
    ],
    ['ALTER VIEW v RENAME TO v', 'GENERIC_USER_ERROR', "Target view 'c.s.v' already exists"],
    [
      'ALTER VIEW v RENAME TO t',
      'TABLE_ALREADY_EXISTS',
      "Target view 'c.s.t' does not exist, but a table with that name exists.",
    ],
    ['ALTER VIEW v RENAME TO other.s.v', 'NOT_SUPPORTED', 'View rename across catalogs is not supported'],
    [
      'ALTER MATERIALIZED VIEW IF EXISTS v RENAME TO y',
      'TABLE_NOT_FOUND',
      `Materialized View 'c.s.v' does not exist, but a view ${didYouMean('ALTER VIEW c.s.v RENAME TO ...?')}`,
    ],
    ['ALTER SCHEMA r RENAME TO s', 'SCHEMA_ALREADY_EXISTS', "Target schema 'c.s' already exists"],
    ['ALTER TABLE v ADD COLUMN c int', 'TABLE_NOT_FOUND', "Table 'c.s.v' does not exist"],
    ['ALTER TABLE t ADD COLUMN A int', 'COLUMN_ALREADY_EXISTS', "Column 'A' already exists"],
    ['ALTER TABLE t ADD COLUMN c int AFTER nope', 'COLUMN_NOT_FOUND', "Column 'nope' does not"],
    ['ALTER TABLE t DROP COLUMN nope', 'COLUMN_NOT_FOUND', "Column 'nope' does not exist"],
    ['ALTER TABLE single DROP COLUMN a', 'NOT_SUPPORTED', 'Cannot drop the only column in a table'],
    ['ALTER TABLE t RENAME COLUMN a TO A', 'COLUMN_ALREADY_EXISTS', "Column 'a' already exists"],
    ['ALTER TABLE t ALTER COLUMN b DROP NOT NULL', 'NOT_SUPPORTED', 'Column is already nullable'],
    ['ALTER TABLE v SET PROPERTIES x = 1', 'NOT_SUPPORTED', 'Cannot set properties to a view in ALTER TABLE'],
    ['COMMENT ON TABLE x IS NULL', 'TABLE_NOT_FOUND', 'Table does not exist: c.s.x'],
    [
      "COMMENT ON TABLE v IS ''",
      'TABLE_NOT_FOUND',
      `Table 'c.s.v' does not exist, but a view ${didYouMean('COMMENT ON VIEW c.s.v IS ...?')}`,
    ],
    ['COMMENT ON VIEW x IS NULL', 'TABLE_NOT_FOUND', "View 'c.s.x' does not exist"],
    [
      "COMMENT ON VIEW t IS ''",
      'TABLE_NOT_FOUND',
      `View 'c.s.t' does not exist, but a table ${didYouMean('COMMENT ON TABLE c.s.t IS ...?')}`,
    ],
    ['COMMENT ON COLUMN a IS NULL', 'MISSING_TABLE', 'Table must be specified'],
    ['TRUNCATE TABLE v', 'NOT_SUPPORTED', 'Cannot truncate a view'],
    [
      'DROP TABLE IF EXISTS v',
      'GENERIC_USER_ERROR',
      `Table 'c.s.v' does not exist, but a view ${didYouMean('DROP VIEW c.s.v?')}`,
    ],
    [
      'DROP VIEW IF EXISTS t',
      'GENERIC_USER_ERROR',
      `View 'c.s.t' does not exist, but a table ${didYouMean('DROP TABLE c.s.t?')}`,
    ],
    ['DROP MATERIALIZED VIEW x', 'GENERIC_USER_ERROR', "Materialized view 'c.s.x' does not exist"],
    [
      'DROP MATERIALIZED VIEW IF EXISTS v',
      'GENERIC_USER_ERROR',
      `Materialized view 'c.s.v' does not exist, but a view ${didYouMean('DROP VIEW c.s.v?')}`,
    ],
    ['ALTER TABLE v EXECUTE optimize', 'NOT_SUPPORTED', 'ALTER TABLE EXECUTE is not supported for views'],
    [
      'DROP FUNCTION f(int)',
      'NOT_SUPPORTED',
      'Catalog and schema must be specified when function schema is not configured',
    ],
    ['DROP FUNCTION c.s.f(int)', 'NOT_FOUND', 'Function not found'],
  ])('is refused: %s', async (sql, errorName, message) => {
    await expect(plan(sql)).rejects.toMatchObject({ errorName, message: expect.stringMatching(/^line 1:1: /) })
    await expect(plan(sql)).rejects.toThrow(`line 1:1: ${message}`)
  })

  it.each([
    ['DROP FUNCTION IF EXISTS "c"."s"."abs"(bigint)', { kind: 'session', updateType: 'DROP FUNCTION', changes: [] }],
    ['DROP MATERIALIZED VIEW IF EXISTS x', { kind: 'write', updateType: 'DROP MATERIALIZED VIEW', settled: true }],
    [
      'ALTER MATERIALIZED VIEW IF EXISTS x RENAME TO y',
      { kind: 'write', updateType: 'RENAME MATERIALIZED VIEW', settled: true },
    ],
  ])('changes nothing: %s', async (sql, planned) => {
    expect(await plan(sql)).toMatchObject(planned)
  })
})

describe('SHOW FUNCTIONS FROM', () => {
  it('lists the functions of the schema, and not the global functions', async () => {
    expect(await plan('SHOW FUNCTIONS FROM c.s')).toMatchObject({ query: { literalRow: undefined } })
    const bound = await plan('SHOW FUNCTIONS FROM c.s')
    expect(bound.kind === 'query' && bound.query.sql).not.toContain('abs')
    await expect(plan('SHOW FUNCTIONS FROM c.nope')).rejects.toThrow("line 1:1: Schema 'nope' does not exist")
  })
})
