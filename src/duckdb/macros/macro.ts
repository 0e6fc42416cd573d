/**
 * A macro of the engine: SQL that DuckDB puts in the place of a call. The first letter of a name says which kind it is:
 *
 * - `q_…`  a macro: a piece of the dialect (`q_substr3`: substr of three arguments, `q_text_date`: a date as text)
 * - `t_…`  also a macro, from text-macros.ts (`t_lpad`, `t_split`)
 * - `u_…`  a function written in JavaScript (`src/duckdb/scripts`); `u_raise` ends the statement with an error
 *
 * Clients' statements cannot name one: they are not in the function table.
 *
 * Macros are not hygienic: parameters of lambdas in them are named `q1`, `q2` …, a statement's own parameters never
 * are, and macros that call each other use different names.
 */
export interface Macro {
  /** `q_idiv(a, b)` */
  readonly head: string
  readonly body: string
}

/** Makes a macro; line breaks in the body become spaces. */
export function macro(head: string, body: string): Macro {
  return { head, body: body.trim().replaceAll(/\n\s*/g, ' ') }
}

/**
 * Wraps a struct field's value that may be a macro's call: DuckDB loses the field's name when it looks for a column of
 * the outer query ("Need named argument for struct pack"). The optimizer removes the CASE.
 */
export function keptField(value: string): string {
  return `CASE WHEN true THEN ${value} END`
}
