import { engineScripts } from '../scripts/all.ts'
import { macro, type Macro } from './macro.ts'

/** The name under which a function written in JavaScript is registered; SQL calls it through the macro `u_…`. */
export function registeredName(name: string): string {
  return name.replace(/^u_/, 'j_')
}

/**
 * Makes an argument that DuckDB assumes may fail. DuckDB assumes that a registered function never fails. It would
 * therefore call it for rows that a filter removes, before the condition that guards it, or for every value of a
 * column's dictionary. There a failing call leaves invalid values for TRY's other rows. DuckDB has no flag for this,
 * but an expression may fail if its argument may.
 */
function mayFail(argument: string): string {
  return `list_extract([${argument}], 1)`
}

export const javascriptMacros: readonly Macro[] = [
  macro('u_raise(m)', `j_nothing(CAST(j_raise(${mayFail('m')}) AS INTEGER))`),
  // For errors that TRY must not turn into NULL: DuckDB's TRY catches errors of registered functions, but no parser
  // errors.
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
