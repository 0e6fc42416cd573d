import { template, type Template } from '../../duckdb/text/template.ts'
import type { SqlType } from '../types/sql-type.ts'
import type { RenderContext, Rendering } from './rendering.ts'
import type { Sql } from '../../duckdb/text/sql.ts'

/** What the variables of a signature were bound to; a length of a varchar without bound is undefined. */
export interface Bindings {
  readonly types: Readonly<Record<string, SqlType>>
  readonly numbers: Readonly<Record<string, number | undefined>>
}

/**
 * What calling a scalar function may do besides giving a value. The planner and the renderer act on it, and nothing but its
 * author knows it: every definition says one.
 */
export interface CallRisk {
  /** Not known to give a value for all arguments: what is asked only under a condition is not computed before. */
  readonly mayRaise: boolean
  /** Makes large values of small ones, or calculates long: DuckDB folds it while it prepares. */
  readonly grows: boolean
}

/** Raises for no argument. */
export const TOTAL: CallRisk = { mayRaise: false, grows: false }
/** May raise, or nobody has shown that it does not. */
export const PARTIAL: CallRisk = { mayRaise: true, grows: false }
export const GROWING: CallRisk = { mayRaise: true, grows: true }

/** What may be written around a call of a window function. */
export interface WindowClauses {
  /** False: it is of the whole partition, whatever the frame. */
  readonly frame: boolean
  /** IGNORE NULLS and RESPECT NULLS. */
  readonly nullTreatment: boolean
  /** Whether ORDER BY must be there. */
  readonly order: 'required' | 'optional'
}

/**
 * How DISTINCT in an aggregate's call is told. `engine`: by DuckDB, where its equality is Trino's. `key`: the same, of the
 * argument's comparison key. `harmless`: the result is the same with equal rows. `marked`: by a mark on each row.
 */
export type Duplicates = 'engine' | 'key' | 'harmless' | 'marked'

/** What is said of a function by its kind. */
export type KindFacts =
  | { readonly kind: 'scalar'; readonly risk: CallRisk }
  | { readonly kind: 'aggregate'; readonly duplicates: Duplicates }
  | { readonly kind: 'window'; readonly clauses: WindowClauses }

export type FunctionKind = KindFacts['kind']

/** One row of the function table: one overload. */
export type FunctionDefinition = Definition & KindFacts

interface Definition {
  /** `substr(varchar(x), bigint)`, as `parseSignature` reads it. */
  readonly signature: string
  /** A type in the words of the signature, or computed from what its variables were bound to. */
  readonly result: string | ((bindings: Bindings) => SqlType)
  readonly rendering: Rendering
  readonly deterministic: boolean
  /** NULL arguments do not make the result NULL (scalars), or are not skipped (aggregates). */
  readonly calledOnNull: boolean
  /** The order of the input decides the result: ORDER BY inside the call is kept. */
  readonly orderSensitive: boolean
  /** Hidden functions are reached through syntax, never by name; unlisted ones by name, though no list has them. */
  readonly hidden: boolean | 'unlisted'
  /** Where the result may differ from Trino's; empty where it does not. */
  readonly note: string
}

type Options = Partial<Pick<Definition, 'deterministic' | 'calledOnNull' | 'orderSensitive' | 'hidden' | 'note'>>

/** As the table has it: a template as text, read when its module is loaded. */
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
