import { template, type Template } from '../text/template.ts'
import type { SqlType } from '../types/sql-type.ts'
import type { RenderContext, Rendering } from './rendering.ts'
import type { Sql } from '../text/sql.ts'

export type FunctionKind = 'scalar' | 'aggregate' | 'window'

/** What the variables of a signature were bound to; a length of a varchar without bound is undefined. */
export interface Bindings {
  readonly types: Readonly<Record<string, SqlType>>
  readonly numbers: Readonly<Record<string, number | undefined>>
}

/** One row of the function table: one overload. */
export interface FunctionDefinition {
  /** `substr(varchar(x), bigint)`, as `parseSignature` reads it. */
  readonly signature: string
  readonly kind: FunctionKind
  /** A type in the words of the signature, or computed from what its variables were bound to. */
  readonly result: string | ((bindings: Bindings) => SqlType)
  readonly rendering: Rendering
  readonly deterministic: boolean
  /** NULL arguments do not make the result NULL (scalars), or are not skipped (aggregates). */
  readonly calledOnNull: boolean
  /** The order of the input decides the result: ORDER BY inside the call is kept. */
  readonly orderSensitive: boolean
  /** Hidden functions are reached through syntax, never by name. */
  readonly hidden: boolean
  /** Where the result may differ from Trino's; empty where it does not. */
  readonly note: string
}

type Options = Partial<
  Pick<FunctionDefinition, 'deterministic' | 'calledOnNull' | 'orderSensitive' | 'hidden' | 'note'>
>

/** As the table has it: a template as text, read when its module is loaded. */
type Written = string | Template | ((context: RenderContext) => Sql)

function define(
  kind: FunctionKind,
  signature: string,
  result: FunctionDefinition['result'],
  rendering: Written,
  options: Options = {},
): FunctionDefinition {
  return {
    kind,
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
  result: FunctionDefinition['result'],
  rendering: Written,
  options?: Options,
): FunctionDefinition {
  return define('scalar', signature, result, rendering, options)
}

export function aggregate(
  signature: string,
  result: FunctionDefinition['result'],
  rendering: Written,
  options?: Options,
): FunctionDefinition {
  return define('aggregate', signature, result, rendering, options)
}

export function windowFunction(
  signature: string,
  result: FunctionDefinition['result'],
  rendering: Written,
  options?: Options,
): FunctionDefinition {
  return define('window', signature, result, rendering, options)
}

/** The same definition under several names. */
export function named(names: readonly string[], make: (name: string) => FunctionDefinition): FunctionDefinition[] {
  return names.map(make)
}
