import { template, type Template } from '../../duckdb/text/template.ts'
import type { SqlType } from '../types/sql-type.ts'
import type { RenderContext, Rendering } from './rendering.ts'
import type { Sql } from '../../duckdb/text/sql.ts'

/** The values bound to the variables of a signature; the length of an unbounded varchar is undefined. */
export interface Bindings {
  readonly types: Readonly<Record<string, SqlType>>
  readonly numbers: Readonly<Record<string, number | undefined>>
}

/**
 * The risks of calling a scalar function. The planner and the renderer rely on them and cannot derive them, so every
 * definition states them.
 */
export interface CallRisk {
  /** Whether the call may fail for some arguments: a conditional call is then not evaluated before its condition. */
  readonly mayRaise: boolean
  /**
   * Whether the call makes large values of small ones or runs long: DuckDB would fold it while it prepares the
   * statement.
   */
  readonly grows: boolean
}

/** Never fails. */
export const TOTAL: CallRisk = { mayRaise: false, grows: false }
/** May fail, or is not proven to succeed for all arguments. */
export const PARTIAL: CallRisk = { mayRaise: true, grows: false }
export const GROWING: CallRisk = { mayRaise: true, grows: true }

/** The clauses that a call of a window function accepts. */
export interface WindowClauses {
  /** False if the function covers the whole partition regardless of the frame. */
  readonly frame: boolean
  /** Whether IGNORE NULLS and RESPECT NULLS are allowed. */
  readonly nullTreatment: boolean
  /** Whether ORDER BY is required. */
  readonly order: 'required' | 'optional'
}

/**
 * How DISTINCT in an aggregate call is implemented. `engine`: by DuckDB, if its equality is Trino's. `key`: by DuckDB,
 * on the argument's comparison key. `harmless`: not at all, since duplicates do not change the result. `marked`: by
 * marking rows.
 */
export type Duplicates = 'engine' | 'key' | 'harmless' | 'marked'

/** The attributes of a function that depend on its kind. */
export type KindFacts =
  | { readonly kind: 'scalar'; readonly risk: CallRisk }
  | { readonly kind: 'aggregate'; readonly duplicates: Duplicates }
  | { readonly kind: 'window'; readonly clauses: WindowClauses }

export type FunctionKind = KindFacts['kind']

/** One overload: a row of the function table. */
export type FunctionDefinition = Definition & KindFacts

interface Definition {
  /** For example `substr(varchar(x), bigint)`, as `parseSignature` reads it. */
  readonly signature: string
  /** A type in the signature's notation, or a function that computes it from the bound variables. */
  readonly result: string | ((bindings: Bindings) => SqlType)
  readonly rendering: Rendering
  readonly deterministic: boolean
  /** Set if the result is the time of the statement. */
  readonly ofTime?: true
  /**
   * Whether the function is called for NULL arguments. Otherwise a scalar function returns NULL and an aggregate skips
   * the row.
   */
  readonly calledOnNull: boolean
  /** Whether the order of the input affects the result: ORDER BY inside the call is then kept. */
  readonly orderSensitive: boolean
  /** Hidden functions are reached through syntax, never by name; unlisted ones work by name but appear in no list. */
  readonly hidden: boolean | 'unlisted'
  /** Where the result may differ from Trino's; empty if it does not. */
  readonly note: string
}

type Options = Partial<
  Pick<Definition, 'deterministic' | 'ofTime' | 'calledOnNull' | 'orderSensitive' | 'hidden' | 'note'>
>

/** A rendering as written in the table: text is a template, which is parsed when the module loads. */
type Written = string | Template | ((context: RenderContext) => Sql)

function define(
  signature: string,
  result: Definition['result'],
  rendering: Written,
  facts: KindFacts,
  options: Options = {},
): FunctionDefinition {
  return {
    ...facts,
    signature,
    result,
    rendering: typeof rendering === 'string' ? template(rendering) : rendering,
    deterministic: true,
    calledOnNull: false,
    orderSensitive: false,
    hidden: false,
    note: '',
    ...options,
  }
}

export function scalar(
  signature: string,
  result: Definition['result'],
  rendering: Written,
  risk: CallRisk,
  options?: Options,
): FunctionDefinition {
  return define(signature, result, rendering, { kind: 'scalar', risk }, options)
}

export function aggregate(
  signature: string,
  result: Definition['result'],
  rendering: Written,
  { duplicates = 'marked', ...options }: Options & { readonly duplicates?: Duplicates } = {},
): FunctionDefinition {
  return define(signature, result, rendering, { kind: 'aggregate', duplicates }, options)
}

export function windowFunction(
  signature: string,
  result: Definition['result'],
  rendering: Written,
  clauses: WindowClauses,
): FunctionDefinition {
  return define(signature, result, rendering, { kind: 'window', clauses })
}

/** The same definition under several names. */
export function named(names: readonly string[], make: (name: string) => FunctionDefinition): FunctionDefinition[] {
  return names.map(make)
}
