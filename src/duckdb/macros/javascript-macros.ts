import { engineScripts } from '../scripts/all.ts'
import { macro, type Macro } from './macro.ts'

/** The name under which a function written in JavaScript is registered; what calls it calls the macro `u_…`. */
export function registeredName(name: string): string {
  return name.replace(/^u_/, 'j_')
}

/**
 * DuckDB takes a function that is registered from outside for one that never fails, so it would call it for rows that a
 * filter removes, ask it before the condition that guards it, or for every value of a column's dictionary, where one that
 * fails leaves garbage behind for TRY's other rows. There is no way to tell it but that its argument may fail: then what is
 * calculated of it may, too.
 */
function mayFail(argument: string): string {
  return `list_extract([${argument}], 1)`
}

export const javascriptMacros: readonly Macro[] = [
  macro('u_raise(m)', `j_nothing(CAST(j_raise(${mayFail('m')}) AS INTEGER))`),
  // What TRY must not make NULL of: DuckDB's TRY catches what a function of ours throws, but no error of a parser.
  macro(
    'u_fail(m)',
    `
      j_nothing(CAST(json_deserialize_sql(json_object('error', true, 'error_type', '', 'error_message', chr(1) || m)) AS
          INTEGER))
    `,
  ),
  ...engineScripts.map(({ name, parameters }) => {
    const names = parameters.map((_, i) => `a${i}`)
    const given = names.map((argument, i) => (i === 0 ? mayFail(argument) : argument))
    return macro(`${name}(${names.join(', ')})`, `${registeredName(name)}(${given.join(', ')})`)
  }),
]
