import type { SqlType } from '../types/sql-type.ts'

/** A value known while the statement is rendered: a literal, or NULL. Text for characters, numbers as written. */
export type Constant = string | number | bigint | boolean | null

/** An argument as the renderer hands it over: already coerced to the type the function asks for. */
export type RenderArgument = ValueArgument | LambdaArgument

export interface ValueArgument {
  readonly kind: 'value'
  /** A DuckDB expression, safe to stand in any place of a larger one. */
  readonly sql: string
  /** Its value where it is a literal: formats, units, patterns and paths are compiled from it. */
  readonly constant?: Constant
}

export interface LambdaArgument {
  readonly kind: 'lambda'
  /** The body with these expressions for its parameters, coerced to the type the function asks for. */
  apply(...parameters: readonly string[]): string
}

/** What of a session a rendering may depend on. */
export interface RenderSession {
  /** Trino's zone id. */
  readonly timeZone: string
  /** What now() gives, milliseconds since the epoch. */
  readonly startTimeMillis: number
  readonly user: string
  readonly catalog?: string | undefined
  readonly schema?: string | undefined
}

/** The clauses of an aggregate or window call, rendered. */
export interface CallClauses {
  readonly distinct?: boolean
  /** Sort items without the words ORDER BY, each with its NULLS clause. */
  readonly orderBy?: string | undefined
  /** The condition of FILTER. */
  readonly filter?: string | undefined
  /** What stands in the parentheses of OVER. */
  readonly over?: string | undefined
  readonly ignoreNulls?: boolean
}

/** Where fresh names for lambda parameters come from: one for the whole statement. */
export interface Names {
  fresh(): string
}

export interface RenderCall {
  readonly args: readonly RenderArgument[]
  readonly session: RenderSession
  readonly names: Names
  readonly clauses?: CallClauses
}

/** What a rendering written in TypeScript gets: the call, and the types that resolution found. */
export interface RenderContext extends RenderCall {
  /** Types of the arguments after coercion. */
  readonly types: readonly SqlType[]
  readonly result: SqlType
  /** The expression of argument `index`, from 0. */
  value(index: number): string
  lambda(index: number): LambdaArgument
  /** The literal of argument `index`; undefined where it is an expression. */
  constant(index: number): Constant | undefined
  /** Fills a template as below with this call. */
  fill(template: string): string
}

/**
 * A template of DuckDB SQL, or a function where types or constants decide. In templates:
 * `$1` … an argument; `$R` the DuckDB type of the result; `$T1` … the DuckDB type of an argument.
 * Aggregates: every call of an aggregate is written `name($D… $O)$F`: DISTINCT, ORDER BY, FILTER and OVER are put
 * there; `$F(condition)` adds a condition of its own; `$N` is IGNORE NULLS.
 */
export type Rendering = string | ((context: RenderContext) => string)

/** A text as a DuckDB string literal. */
export function quote(text: string): string {
  // NUL cannot stand in a DuckDB statement.
  const quoted = `'${text.replaceAll("'", "''")}'`
  return quoted.includes('\0') ? `(${quoted.replaceAll('\0', `'||chr(0)||'`)})` : quoted
}
