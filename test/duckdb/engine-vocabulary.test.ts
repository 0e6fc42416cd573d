import { DuckDBInstance } from '@duckdb/node-api'
import { expect, it } from 'vitest'
import { engineVocabulary } from '../../src/duckdb/engine-vocabulary.ts'
import { macros } from '../../src/duckdb/engine-setup.ts'
import registerAll, { registerScripts } from '../../src/duckdb/scripts/register.ts'
import { createMacros } from '../../src/execution/engine/engine-macros.ts'

// Every test that runs rendered statements checks that the wall accepts each rendering: `openDuckDB` and
// `openLibraryRunner` check each statement as an engine does, also those of every overload and of the whole corpus.

/** Names of DuckDB's functions that read or change data outside the statement, or that show the state of the engine. */
const FORBIDDEN =
  /^(read_|scan|query|parquet_|sniff|glob|duckdb_|pragma_|pg_|current_|get|set|which_|enable_|disable_|json_.*(sql|plan)|write_|sleep|nextval|currval|txid|version|in_search_path|copy|import|export|force_|checkpoint|error$|create_sort_key|inet_|has_.*privilege|parse_duckdb|now$|user$|session_user$|__internal)/

it('engineVocabulary contains only functions that compute values, and none that reads files or acts', async () => {
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
  // Syntax of DuckDB that looks like a call.
  const syntax = ['coalesce', 'grouping', 'try', 'unnest']
  const windows = ['row_number', 'rank', 'dense_rank', 'percent_rank', 'cume_dist', 'ntile', 'lag', 'lead']
  const names = [...engineVocabulary.functions].filter((name) => ![...syntax, ...windows].includes(name))
  const unknown = names.filter(
    (name) => !known.get(name)?.types.some((type) => ['scalar', 'aggregate', 'macro'].includes(type)),
  )
  expect(unknown.filter((name) => !['first_value', 'last_value', 'nth_value'].includes(name))).toEqual([])
  expect([...engineVocabulary.functions].filter((name) => FORBIDDEN.test(name))).toEqual([])
  const effects = names.filter((name) => known.get(name)?.effects === 1 && !/^[qtu]_/.test(name))
  // The only side effect of these functions is a new value at each call.
  expect(effects.toSorted()).toEqual(['random', 'uuid'])
  expect(macros.length).toBeGreaterThan(100)
})

it('engineVocabulary contains only table functions that generate numbers', () => {
  expect([...engineVocabulary.tableFunctions]).toEqual(['generate_series', 'range'])
})

it('engineVocabulary lists the calls of each macro, so that a statement can call any macro first', async () => {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await registerScripts(connection)
  const engine = createMacros(engineVocabulary.macros, (sql) => connection.run(sql))
  // DuckDB binds a macro when it is created: a macro that calls a missing macro fails.
  for (const name of [...engineVocabulary.macros.keys()].toReversed()) await engine.define([name])
  const reader = await connection.runAndReadAll(
    `SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'macro' AND NOT internal`,
  )
  connection.closeSync()
  instance.closeSync()
  expect(reader.getRows().flat().map(String).toSorted()).toEqual([...engineVocabulary.macros.keys()].toSorted())
})

it('engineVocabulary marks macros that compute in JavaScript as scripted, but not macros that raise errors', () => {
  const { scripted } = engineVocabulary
  expect(['u_raise', 'q_ddiv', 'q_substr3'].filter((name) => scripted.has(name))).toEqual([])
  expect(['u_strpos', 'u_levenshtein'].filter((name) => !scripted.has(name))).toEqual([])
})
