import { aggregateMacros } from './macros/aggregate-macros.ts'
import { castMacros } from './macros/cast-macros.ts'
import { collectionMacros } from './macros/collection-macros.ts'
import { datetimeMacros } from './macros/datetime-macros.ts'
import { javascriptMacros } from './macros/javascript-macros.ts'
import type { Macro } from './macros/macro.ts'
import { jsonMacros } from './macros/json-macros.ts'
import { numericMacros } from './macros/numeric-macros.ts'
import { stringMacros } from './macros/string-macros.ts'
import { textMacros } from './macros/text-macros.ts'
import { textValueMacros } from './macros/text-value-macros.ts'

const all: readonly Macro[] = [
  ...javascriptMacros,
  ...numericMacros,
  ...datetimeMacros,
  ...textValueMacros,
  ...castMacros,
  ...stringMacros,
  ...collectionMacros,
  ...textMacros,
  ...aggregateMacros,
  ...jsonMacros,
]

/** The CREATE MACRO statements of a new engine, each after the macros that it calls. */
export const macros: readonly string[] = all.map(({ head, body }) => `CREATE OR REPLACE MACRO ${head} AS ${body}`)

/** All of them as one text, 0.3 ms of CPU each: for programs with one DuckDB for many statements. */
export function setupStatements(): string {
  return macros.join(';\n')
}
