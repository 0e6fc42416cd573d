import { DuckDBInstance } from '@duckdb/node-api'
import { expect, it } from 'vitest'
import { engineVocabulary } from '../../src/duckdb/engine-vocabulary.ts'
import { macros } from '../../src/duckdb/engine-setup.ts'
import registerAll, { registerScripts } from '../../src/duckdb/scripts/register.ts'
import { createMacros } from '../../src/execution/engine/engine-macros.ts'

// That every rendering passes is seen wherever tests run rendered statements: `openDuckDB` and `openLibraryRunner` read
// each as an engine would, those of every overload and of the whole corpus among them.

/** Names of DuckDB's functions by which a statement would read or change what is not its own, or say what it is not told. */
const FORBIDDEN =
  /^(read_|scan|query|parquet_|sniff|glob|duckdb_|pragma_|pg_|current_|get|set|which_|enable_|disable_|json_.*(sql|plan)|write_|sleep|nextval|currval|txid|version|in_search_path|copy|import|export|force_|checkpoint|error$|create_sort_key|inet_|has_.*privilege|parse_duckdb|now$|user$|session_user$|__internal)/

it('is of functions of the engine that compute values, none of them one that reads or acts', async () => {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await registerAll(connection)
  const reader = await connection.runAndReadAll(
    'SELECT function_name, list(DISTINCT function_type), max(has_side_effects::INTEGER) FROM duckdb_functions() GROUP BY 1',
  )
  const known = new Map(
    reader.getRowsJson().map(([name, types, effects]) => [String(name), { types: types as string[], effects }]),
  )
  connection.closeSync()
  instance.closeSync()
  // Syntax of DuckDB that reads like a call.
  const syntax = ['coalesce', 'grouping', 'try', 'unnest']
  const windows = ['row_number', 'rank', 'dense_rank', 'percent_rank', 'cume_dist', 'ntile', 'lag', 'lead']
  const names = [...engineVocabulary.functions].filter((name) => ![...syntax, ...windows].includes(name))
  const unknown = names.filter(
    (name) => !known.get(name)?.types.some((type) => ['scalar', 'aggregate', 'macro'].includes(type)),
  )
  expect(unknown.filter((name) => !['first_value', 'last_value', 'nth_value'].includes(name))).toEqual([])
  expect([...engineVocabulary.functions].filter((name) => FORBIDDEN.test(name))).toEqual([])
  const effects = names.filter((name) => known.get(name)?.effects === 1 && !/^[qtu]_/.test(name))
  // Another value at each call is all that these do.
  expect(effects.toSorted()).toEqual(['random', 'uuid'])
  expect(macros.length).toBeGreaterThan(100)
})

it('knows table functions that make numbers alone', () => {
  expect([...engineVocabulary.tableFunctions]).toEqual(['generate_series', 'range'])
})

it('defines each macro with what it calls, whichever a statement calls first', async () => {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await registerScripts(connection)
  const engine = createMacros(engineVocabulary.macros, (sql) => connection.run(sql))
  // DuckDB binds a macro when it is made: one that calls what is not there fails.
  for (const name of [...engineVocabulary.macros.keys()].toReversed()) await engine.define([name])
  const reader = await connection.runAndReadAll(
    `SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'macro' AND NOT internal`,
  )
  connection.closeSync()
  instance.closeSync()
  expect(reader.getRows().flat().map(String).toSorted()).toEqual([...engineVocabulary.macros.keys()].toSorted())
})

it('takes for scripted what calculates in JavaScript, and not what raises an error', () => {
  const { scripted } = engineVocabulary
  expect(['u_raise', 'q_ddiv', 'q_substr3'].filter((name) => scripted.has(name))).toEqual([])
  expect(['u_strpos', 'u_levenshtein'].filter((name) => !scripted.has(name))).toEqual([])
})
