import fc from 'fast-check'
import type { Expr } from '../../src/sql/analyzer/tree.ts'
import { resolveArithmetic } from '../../src/sql/functions/operators.ts'
import { BIGINT, BOOLEAN, type SqlType } from '../../src/sql/types/sql-type.ts'

/** The value of an expression for a row, evaluated as the language defines: from the left, and only as far as needed. */
export type Meaning = (row: readonly unknown[]) => unknown
export interface Case {
  readonly expr: Expr
  readonly of: Meaning
}

export class Raised extends Error {}

const COMPARISONS = {
  '=': (a: unknown, b: unknown) => a === b,
  '<>': (a: unknown, b: unknown) => a !== b,
  '<': (a: number, b: number) => a < b,
  '<=': (a: number, b: number) => a <= b,
  '>': (a: number, b: number) => a > b,
  '>=': (a: number, b: number) => a >= b,
} as const
type Operator = keyof typeof COMPARISONS
const compare = (operator: Operator, a: unknown, b: unknown): boolean | null =>
  a === null || b === null ? null : COMPARISONS[operator](a as never, b as never)
const operators = fc.constantFrom(...(Object.keys(COMPARISONS) as Operator[]))

export const column = (id: number, type: SqlType): Case => ({
  expr: { kind: 'column', type, id },
  of: (row) => row[id],
})
export const constant = (type: SqlType, value: number | null): Case => ({
  expr: { kind: 'constant', type, value: value === null ? null : Object.is(value, -0) ? '-0' : String(value) },
  of: () => value,
})
export const whole = fc.oneof(
  fc.constantFrom(0, 1, 2).map((id) => column(id, BIGINT)),
  fc.constantFrom(0, 1, 2, null).map((value) => constant(BIGINT, value)),
)
const divide = resolveArithmetic('/', BIGINT, BIGINT)
/** 2 / x, which fails for x = 0. */
export function divided(id: number): Case {
  const by = column(id, BIGINT)
  return {
    expr: {
      kind: 'operator',
      type: BIGINT,
      name: '/',
      operator: divide,
      left: constant(BIGINT, 2).expr,
      right: by.expr,
    },
    of(row) {
      if (row[id] === 0) throw new Raised()
      return row[id] === null ? null : Math.trunc(2 / (row[id] as number))
    },
  }
}
export const division = fc.constantFrom(0, 1, 2).map(divided)

export function comparison(operator: Operator, left: Case, right: Case): Case {
  return {
    expr: { kind: 'compare', type: BOOLEAN, operator, left: left.expr, right: right.expr },
    of(row) {
      const a = left.of(row)
      return compare(operator, a, right.of(row))
    },
  }
}
export const compared = (side: fc.Arbitrary<Case>): fc.Arbitrary<Case> =>
  fc.tuple(operators, side, side).map((parts) => comparison(...parts))

/** Trino stops at the first term that decides. */
export function logical(kind: 'and' | 'or', terms: readonly Case[]): Case {
  return {
    expr: { kind, type: BOOLEAN, terms: terms.map(({ expr }) => expr) },
    of(row) {
      let result: unknown = kind === 'and'
      for (const term of terms) {
        const value = term.of(row)
        if (value === (kind === 'or')) return value
        if (value === null) result = null
      }
      return result
    },
  }
}

export function between(value: Case, min: Case, max: Case): Case {
  return {
    expr: { kind: 'between', type: BOOLEAN, value: value.expr, min: min.expr, max: max.expr },
    of(row) {
      const x = value.of(row)
      const above = compare('>=', x, min.of(row))
      if (above === false) return false
      const below = compare('<=', x, max.of(row))
      return below === false ? false : above === null || below === null ? null : true
    },
  }
}

export function inList(value: Case, values: readonly Case[]): Case {
  return {
    expr: { kind: 'inList', type: BOOLEAN, value: value.expr, values: values.map(({ expr }) => expr) },
    of(row) {
      const x = value.of(row)
      const found = values.map((one) => compare('=', x, one.of(row)))
      return found.includes(true) ? true : found.includes(null) ? null : false
    },
  }
}

export function not({ expr: value, of }: Case): Case {
  return {
    expr: { kind: 'not', type: BOOLEAN, value },
    of(row) {
      const was = of(row)
      return was === null ? null : was === false
    },
  }
}

const boolean = (expr: Expr, of: Meaning): Case => ({ expr, of })
export const { condition } = fc.letrec<{ condition: Case }>((tie) => {
  const one = tie('condition')
  const some = fc.array(one, { minLength: 2, maxLength: 3 })
  const type = BOOLEAN
  return {
    condition: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      compared(whole),
      compared(fc.oneof(whole, division)),
      fc.tuple(whole, whole, fc.oneof(whole, division)).map(([x, min, max]) => between(x, min, max)),
      fc.tuple(whole, fc.array(whole, { minLength: 1, maxLength: 3 })).map(([x, list]) => inList(x, list)),
      fc.tuple(fc.constantFrom('and' as const, 'or' as const), some).map(([kind, terms]) => logical(kind, terms)),
      one.map(not),
      one.map(({ expr: value, of }) => boolean({ kind: 'isNull', type, value }, (row) => of(row) === null)),
      some.map(([when, then, otherwise]) =>
        boolean(
          { kind: 'case', type, branches: [{ when: when!.expr, then: then!.expr }], otherwise: otherwise?.expr },
          (row) => (when!.of(row) === true ? then!.of(row) : otherwise ? otherwise.of(row) : null),
        ),
      ),
      some.map((operands) =>
        boolean({ kind: 'coalesce', type, operands: operands.map(({ expr }) => expr) }, (row) => {
          for (const operand of operands) {
            const value = operand.of(row)
            if (value !== null) return value
          }
          return null
        }),
      ),
    ),
  }
})
