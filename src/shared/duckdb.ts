import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/**
 * DuckDB's library, whose functions and classes are got here; types come from the package itself. Node reads what it
 * imports of this kind twice, and all its hundred files for the names they export: 230 ms of CPU in place of 95, in each
 * engine.
 */
export const {
  BIGINT,
  BLOB,
  BOOLEAN,
  DOUBLE,
  DuckDBInstance,
  INTEGER,
  LIST,
  listValue,
  SQLNULL,
  StatementType,
  VARCHAR,
} = require('@duckdb/node-api') as typeof import('@duckdb/node-api')

/** The bindings below it. */
export const bindings = require('@duckdb/node-bindings') as typeof import('@duckdb/node-bindings')
