/**
 * A macro of the engine: SQL that DuckDB puts in the place of a call. The first letter of a name says what is called:
 *
 * - `q_…`  a macro: a piece of the dialect (`q_substr3`: substr of three arguments, `q_text_date`: a date as text)
 * - `t_…`  a macro too: those of text-macros.ts (`t_lpad`, `t_split`)
 * - `u_…`  a function written in JavaScript (`src/duckdb/scripts`); `u_raise` ends the statement with an error
 *
 * No statement of a client names one: they are not in the function table.
 *
 * Macros are not hygienic: parameters of lambdas in them are named `q1`, `q2` …, the statement's own never are, and macros
 * that call each other use different ones.
 */
export interface Macro {
  /** `q_idiv(a, b)` */
  readonly head: string
  readonly body: string
}

/** Where the body is broken for reading, the engine gets a space. */
export function macro(head: string, body: string): Macro {
  return { head, body: body.trim().replaceAll(/\n\s*/g, ' ') }
}

/**
 * A field's value in a body, where it may be a macro's call: DuckDB loses the field's name where it looks for a column of the
 * query around ("Need named argument for struct pack"). The optimizer takes the CASE away.
 */
export function keptField(value: string): string {
  return `CASE WHEN true THEN ${value} END`
}
