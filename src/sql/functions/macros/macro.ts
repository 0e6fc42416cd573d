/**
 * A macro of the engine. Macros are not hygienic: parameters of lambdas in them are named `q…`, the statement's own
 * never are, and macros that call each other use different ones.
 */
export interface Macro {
  /** `q_idiv(a, b)` */
  readonly head: string
  readonly body: string
}

export function macro(head: string, body: string): Macro {
  return { head, body }
}
