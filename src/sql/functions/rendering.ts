import type { Sql } from '../../duckdb/text/sql.ts'
import type { Template } from '../../duckdb/text/template.ts'
import type { SqlType } from '../types/sql-type.ts'

/** A value known while the statement is rendered: a literal, or NULL. Text for characters, numbers as written. */
export type Constant = string | number | bigint | boolean | null

/** An argument as the renderer hands it over: already coerced to the type the function asks for. */
export type RenderArgument = ValueArgument | LambdaArgument

export interface ValueArgument {
  readonly kind: 'value'
  /** A DuckDB expression, safe to stand in any place of a larger one. */
  readonly sql: Sql
  /** Its value where it is a literal: formats, units, patterns and paths are compiled from it. */
  readonly constant?: Constant
}

export interface LambdaArgument {
  readonly kind: 'lambda'
  /** The body with these expressions for its parameters, coerced to the type the function asks for. */
  apply(...parameters: readonly Sql[]): Sql
}

/** What of a session a rendering may depend on. */
export interface RenderSession {
  /** Trino's zone id. */
  readonly timeZone: string
  /** What now() gives, milliseconds since the epoch. */
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
  /** What stands in the parentheses of OVER. */
  readonly over?: Sql | undefined
  readonly ignoreNulls?: boolean
}

/** Where fresh names for lambda parameters come from: one for the whole statement. */
export interface Names {
  fresh(): Sql
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
  value(index: number): Sql
  lambda(index: number): LambdaArgument
  /** The literal of argument `index`; undefined where it is an expression. */
  constant(index: number): Constant | undefined
  /**
   * context.fill`coalesce($1, ${other})`: the marks of templates (`Mark`), where they stand in the source, filled with this
   * call. What is put in is never read again: a template is filled, all else stands as it is.
   */
  fill(strings: TemplateStringsArray, ...pieces: readonly (Sql | Template)[]): Sql
}

/**
 * A template of DuckDB SQL, or a function where types or constants decide. In templates:
 * `$1` … an argument; `$R` the DuckDB type of the result; `$T1` … the DuckDB type of an argument.
 * Aggregates: every call of an aggregate is written `name($D… $O)$F`: DISTINCT, ORDER BY, FILTER and OVER are put
 * there; `$F(condition)$E` adds a condition of its own; `$N` is IGNORE NULLS.
 */
export type Rendering = Template | ((context: RenderContext) => Sql)
