import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/**
 * DuckDB's library, loaded by `require`; its types come from the package itself. With `import`, Node reads such a
 * package twice, and reads all of its hundred files for their exports: 230 ms of CPU instead of 95, in each engine.
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

/** The native bindings of that library. */
export const bindings = require('@duckdb/node-bindings') as typeof import('@duckdb/node-bindings')
