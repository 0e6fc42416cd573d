import type { Sql } from '../../duckdb/text/sql.ts'
import type { Template } from '../../duckdb/text/template.ts'
import type { SqlType } from '../types/sql-type.ts'

/** A value known while rendering: a literal, or NULL. Character values are texts, numbers are kept as written. */
export type Constant = string | number | bigint | boolean | null

/** A rendered argument, already coerced to the function's parameter type. */
export type RenderArgument = ValueArgument | LambdaArgument

export interface ValueArgument {
  readonly kind: 'value'
  /** A DuckDB expression that may be inserted anywhere in a larger one. */
  readonly sql: Sql
  /** The value of a literal argument: formats, units, patterns and paths are compiled from it. */
  readonly constant?: Constant
}

export interface LambdaArgument {
  readonly kind: 'lambda'
  /** Renders the body with these expressions for its parameters, coerced to the function's parameter type. */
  apply(...parameters: readonly Sql[]): Sql
}

/** The session values that a rendering may depend on. */
export interface RenderSession {
  /** Trino's zone id. */
  readonly timeZone: string
  /** The result of now(), milliseconds since the epoch. */
  readonly startTimeMillis: number
  readonly user: string
  readonly groups: readonly string[]
  readonly catalog?: string | undefined
  readonly schema?: string | undefined
}

/** The clauses of an aggregate or window call, rendered. */
export interface CallClauses {
  readonly distinct?: boolean
  /** Sort items without the words ORDER BY, each with its NULLS clause. */
  readonly orderBy?: Sql | undefined
  /** The condition of FILTER. */
  readonly filter?: Sql | undefined
  /** The content of the parentheses after OVER. */
  readonly over?: Sql | undefined
  readonly ignoreNulls?: boolean
}

/** Supplies fresh names for lambda parameters, unique in the statement. */
export interface Names {
  fresh(): Sql
}

export interface RenderCall {
  readonly args: readonly RenderArgument[]
  readonly session: RenderSession
  readonly names: Names
  readonly clauses?: CallClauses
}

/** The input of a rendering in TypeScript: the call and its resolved types. */
export interface RenderContext extends RenderCall {
  /** Types of the arguments after coercion. */
  readonly types: readonly SqlType[]
  readonly result: SqlType
  /** The expression of argument `index`, from 0. */
  value(index: number): Sql
  lambda(index: number): LambdaArgument
  /** The literal of argument `index`; undefined if the argument is an expression. */
  constant(index: number): Constant | undefined
  /**
   * context.fill`coalesce($1, ${other})`: fills the marks of templates (`Mark`) in the source text with this call.
   * Inserted pieces are not filled again.
   */
  fill(strings: TemplateStringsArray, ...pieces: readonly (Sql | Template)[]): Sql
}

/**
 * A template of DuckDB SQL, or a function if types or constants decide. Marks in templates:
 * `$1` … an argument; `$R` the DuckDB type of the result; `$T1` … the DuckDB type of an argument.
 * Aggregates: each call of an aggregate is written as `name($D… $O)$F`, which receives DISTINCT, ORDER BY, FILTER and
 * OVER; `$F(condition)$E` adds a condition; `$N` is IGNORE NULLS.
 */
export type Rendering = Template | ((context: RenderContext) => Sql)
