import { resolveArithmetic } from '../functions/operators.ts'
import { MASK_BASE } from '../../duckdb/scripts/row-patterns.ts'
import type { Expression, FunctionCall } from '../syntax/ast.ts'
import type { PatternRecognitionRelation } from '../syntax/ast-patterns.ts'
import { qualifiedNameOf } from '../syntax/tree.ts'
import { BIGINT, BOOLEAN, INTEGER, isComparable, isOrderable, VARCHAR } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { castTo, columnOf, constant, constantOf, windowOf } from './build.ts'
import { errorAt, newId, type AnalysisContext, type ExpressionState } from './context.ts'
import { analyzeExpression } from './expressions.ts'
import type { Labels } from './pattern-labels.ts'
import { findField, type Field, type Scope } from './scope.ts'
import type { ColumnId, CommonTable, Expr, ExprSortKey, RelationNode, WindowExpr } from './tree.ts'

export interface TypedRelation {
  readonly node: RelationNode
  readonly fields: readonly Field[]
}

/** One MATCH_RECOGNIZE, shared by the parts of its analysis. */
export interface Recognition {
  readonly context: AnalysisContext
  readonly labels: Labels
  readonly input: TypedRelation
  /** The scope of the query that contains the MATCH_RECOGNIZE. */
  readonly scope: Scope
  readonly rows: PatternRows
}

export function arithmetic(name: '+' | '-', left: Expr, right: Expr): Expr {
  const operator = resolveArithmetic(name, left.type, right.type)
  return {
    kind: 'operator',
    type: operator.result,
    name,
    operator,
    left: castTo(left, operator.left),
    right: castTo(right, operator.right),
  }
}

export function compare(operator: '=' | '<' | '>=' | 'IS NOT DISTINCT FROM', left: Expr, right: Expr): Expr {
  return { kind: 'compare', type: BOOLEAN, operator, left, right }
}

/** The number of rows that a navigation moves; `otherwise` if not given. */
export function offsetOf(state: ExpressionState, node: FunctionCall, otherwise: number): number {
  const argument = node.arguments[1]
  if (argument === undefined) return otherwise
  const value = constant(state.analyze(argument))
  if (typeof value !== 'string' || Number(value) < 0) {
    throw errorAt(state.context, argument, 'NUMERIC_VALUE_OUT_OF_RANGE', 'Navigation offset must be a whole number')
  }
  return Number(value)
}

export interface BuiltRows {
  readonly table: CommonTable
  readonly number: ColumnId
  readonly mask: ColumnId
  /** The values of the row that conditions on the whole match need. */
  readonly texts: ColumnId | undefined
  readonly partition: readonly Expr[]
}

/** Checks that the input's columns have different names: a row pattern refers to them by bare names. */
function verifyNames(context: AnalysisContext, node: PatternRecognitionRelation, input: TypedRelation): void {
  const names = new Set<string>()
  for (const { name } of input.fields) {
    const key = name?.toUpperCase()
    if (key === undefined) continue
    if (names.has(key)) {
      throw errorAt(context, node.input, 'AMBIGUOUS_NAME', `ambiguous column: ${name} in row pattern input relation`)
    }
    names.add(key)
  }
}

/** The rows of the input, numbered within their partitions, with the values for PREV and NEXT. */
export class PatternRows {
  readonly partitionBy: readonly Expr[]
  readonly partitionNames: readonly (string | undefined)[]
  readonly orderBy: readonly ExprSortKey[]
  private readonly navigations: { readonly id: ColumnId; readonly call: WindowExpr }[] = []
  private readonly context: AnalysisContext
  private readonly input: TypedRelation
  private readonly scope: Scope

  constructor(context: AnalysisContext, node: PatternRecognitionRelation, input: TypedRelation, scope: Scope) {
    this.context = context
    this.input = input
    this.scope = { fields: input.fields, parent: scope, boundary: false }
    verifyNames(context, node, input)
    this.partitionBy = node.partitionBy.map((expression) => {
      const expr = this.#column(expression)
      if (isComparable(expr.type)) return expr
      const message = `${typeName(expr.type)} is not comparable, and therefore cannot be used in PARTITION BY`
      throw errorAt(context, expression, 'TYPE_MISMATCH', message)
    })
    this.partitionNames = this.partitionBy.map(
      (expr) => input.fields.find((field) => expr.kind === 'column' && field.column === expr.id)?.name,
    )
    this.orderBy = (node.orderBy?.sortItems ?? []).map((item) => {
      const value = this.#column(item.sortKey)
      if (!isOrderable(value.type)) {
        const message = `${typeName(value.type)} is not orderable, and therefore cannot be used in ORDER BY`
        throw errorAt(context, item, 'TYPE_MISMATCH', message)
      }
      return { value, descending: item.ordering === 'DESCENDING', nullsFirst: item.nullOrdering === 'FIRST' }
    })
  }

  /** A column of the input: PARTITION BY and ORDER BY allow no other expressions. */
  #column(expression: Expression): Expr {
    if (expression.kind !== 'Identifier' && expression.kind !== 'DereferenceExpression') {
      const message = `Expected column reference. Actual: ${this.context.print(expression)}`
      throw errorAt(this.context, expression, 'INVALID_COLUMN_REFERENCE', message)
    }
    const name = qualifiedNameOf(expression)?.map((part) => part.value.toLowerCase())
    const found = name === undefined ? undefined : findField({ ...this.scope, parent: undefined }, name)
    if (found === undefined || found === 'ambiguous') {
      const message = `Column ${this.context.print(expression)} is not present in the input relation`
      throw errorAt(this.context, expression, 'COLUMN_NOT_FOUND', message)
    }
    return analyzeExpression(this.context, expression, this.scope).expr
  }

  private window(name: string, args: readonly Expr[]): WindowExpr {
    return windowOf(name, args, this)
  }

  /** The value some rows before (PREV) or after (NEXT), regardless of matches. */
  navigation(name: string, value: Expr, offset: number): Expr {
    const id = newId(this.context)
    const function_ = this.window(name === 'prev' ? 'lag' : 'lead', [value, constantOf(BIGINT, String(offset))])
    this.navigations.push({ id, call: function_ })
    return columnOf(id, value.type)
  }

  /**
   * @param conditions in the order of DEFINE, those that depend on a row alone
   * @param values the values of each row that the other conditions need
   */
  build(labels: Labels, conditions: readonly (Expr | undefined)[], values: readonly Expr[]): BuiltRows {
    const number = newId(this.context)
    const windows = [{ id: number, call: this.window('row_number', []) }, ...this.navigations]
    const partition = this.partitionBy.map((expr) => ({ id: newId(this.context), expression: expr }))
    const bits = [...labels.primary].map(([name, index]): Expr => {
      const bit = constantOf(INTEGER, String(1 << index))
      const defined = labels.defined.get(name)
      const condition = defined === undefined ? undefined : conditions[defined]
      if (condition === undefined) return bit
      return {
        kind: 'case',
        type: INTEGER,
        branches: [{ when: condition, then: bit }],
        otherwise: constantOf(INTEGER, '0'),
      }
    })
    const mask = newId(this.context)
    const texts = newId(this.context)
    const list: Expr = {
      kind: 'engineCall',
      type: VARCHAR,
      name: 'json_array',
      arguments: values.map((value) => castTo(value, VARCHAR)),
    }
    const text: Expr = {
      kind: 'engineCall',
      type: VARCHAR,
      name: 'concat',
      arguments: [list, constantOf(VARCHAR, ',')],
    }
    const sum = bits.reduce((total, bit) => arithmetic('+', total, bit), constantOf(INTEGER, String(MASK_BASE)) as Expr)
    const node: RelationNode = {
      kind: 'project',
      input: {
        kind: 'window',
        input: { kind: 'project', input: this.input.node, columns: partition },
        columns: windows,
      },
      columns: [
        { id: mask, expression: { kind: 'engineCall', type: VARCHAR, name: 'chr', arguments: [sum] } },
        ...(values.length === 0 ? [] : [{ id: texts, expression: text }]),
      ],
    }
    const columns = [
      ...this.input.fields.map((field) => ({ id: field.column, type: field.type })),
      ...partition.map(({ id, expression }) => ({ id, type: expression.type })),
      ...windows.map(({ id, call: { type } }) => ({ id, type })),
      { id: mask, type: VARCHAR },
      ...(values.length === 0 ? [] : [{ id: texts, type: VARCHAR }]),
    ]
    const unique = [...new Map(columns.map((column) => [column.id, column])).values()]
    return {
      table: { id: newId(this.context), node, columns: unique },
      number,
      mask,
      texts: values.length === 0 ? undefined : texts,
      partition: partition.map(({ id, expression }) => columnOf(id, expression.type)),
    }
  }
}
