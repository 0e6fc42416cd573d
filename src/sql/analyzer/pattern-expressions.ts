import { EXCLUDED, VARIABLE_BASE } from '../../duckdb/scripts/row-patterns.ts'
import type { ResolvedFunction } from '../functions/resolve-function.ts'
import { sql } from '../../duckdb/text/sql.ts'
import { BOOLEAN, VARCHAR } from '../types/sql-type.ts'
import { constantOf } from './build.ts'
import type { Labels } from './pattern-labels.ts'
import type { AggregateExpr, Expr, WindowExpr } from './tree.ts'

/** An aggregate over the rows of a match up to the current row, or over all of them if `final`. */
export function overMatch(
  aggregate: AggregateExpr,
  partitionBy: readonly Expr[],
  row: Expr,
  final: boolean,
): WindowExpr {
  const { type, function: called, arguments: args, distinct, filter, orderBy: argumentOrder } = aggregate
  return {
    kind: 'window',
    type,
    function: called,
    arguments: args,
    ignoreNulls: false,
    distinct,
    filter,
    argumentOrder,
    partitionBy,
    orderBy: [{ value: row, descending: false, nullsFirst: false }],
    frame: {
      type: 'ROWS',
      start: { type: 'UNBOUNDED_PRECEDING', value: undefined },
      end: { type: final ? 'UNBOUNDED_FOLLOWING' : 'CURRENT_ROW', value: undefined },
    },
  }
}

/** The letter of a variable, and the letter of its rows that are matched but excluded. */
export function lettersOf(variable: number): readonly string[] {
  return [letterOf(variable), letterOf(variable + EXCLUDED)]
}

export function letterOf(variable: number): string {
  return String.fromCharCode(VARIABLE_BASE + variable)
}

/** The name of the variable with a letter. */
export function nameOfLetter(labels: Labels, letter: Expr): Expr {
  return {
    kind: 'case',
    type: VARCHAR,
    branches: [...labels.primary].map(([name, index]) => ({
      when: isOneOf(letter, lettersOf(index)),
      then: constantOf(VARCHAR, name),
    })),
    otherwise: undefined,
  }
}

/** Concatenates texts of rows in order. */
export function concatenated(value: Expr, order: Expr): AggregateExpr {
  const joined: ResolvedFunction = {
    name: 'string_agg',
    kind: 'aggregate',
    duplicates: 'marked',
    argumentTypes: [VARCHAR],
    resultType: VARCHAR,
    deterministic: true,
    calledOnNull: false,
    orderSensitive: true,
    render({ args: [text], clauses }) {
      if (text?.kind !== 'value') throw new Error('Texts are values')
      return sql`string_agg(${text.sql}, '' ORDER BY ${clauses?.orderBy ?? sql`1`})`
    },
  }
  return {
    kind: 'aggregate',
    type: VARCHAR,
    function: joined,
    arguments: [value],
    distinct: false,
    orderBy: [{ value: order, descending: false, nullsFirst: false }],
    filter: undefined,
  }
}

/** Whether a letter is one of the given letters. */
export function isOneOf(letter: Expr, letters: readonly string[]): Expr {
  return {
    kind: 'inList',
    type: BOOLEAN,
    value: letter,
    values: letters.map((each) => constantOf(VARCHAR, each)),
  }
}
