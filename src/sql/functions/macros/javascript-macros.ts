import { engineScripts } from '../javascript/all.ts'
import { macro, type Macro } from './macro.ts'

/** The name under which a function written in JavaScript is registered; what calls it calls the macro `u_…`. */
export function registeredName(name: string): string {
  return name.replace(/^u_/, 'j_')
}

/**
 * DuckDB takes a function that is registered from outside for one that never fails, so it would call it for rows that a
 * filter removes, ask it before the condition that guards it, or for every value of a column's dictionary. There is no way
 * to tell it but to put what it knows to fail around the call.
 */
export const javascriptMacros: readonly Macro[] = [
  macro('u_raise(m)', `j_nothing(CAST(j_raise(m) AS INTEGER))`),
  // What TRY must not make NULL of: DuckDB's TRY catches what a function of ours throws, but no error of a parser.
  macro(
    'u_fail(m)',
    `
      j_nothing(CAST(json_deserialize_sql(json_object('error', true, 'error_type', '', 'error_message', chr(1) || m)) AS
          INTEGER))
    `,
  ),
  ...engineScripts.map(({ name, parameters }) => {
    const names = parameters.map((_, i) => `a${i}`).join(', ')
    return macro(`${name}(${names})`, `list_extract([${registeredName(name)}(${names})], 1)`)
  }),
]
