import { resolveArithmetic } from '../functions/operators.ts'
import { resolveFunction, type ResolvedFunction } from '../functions/resolve-function.ts'
import { MASK_BASE } from '../functions/javascript/row-patterns.ts'
import type { Expression, FunctionCall } from '../syntax/ast.ts'
import type { PatternRecognitionRelation } from '../syntax/ast-patterns.ts'
import { BIGINT, BOOLEAN, INTEGER, VARCHAR } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { castTo, columnOf, constant, constantOf } from './build.ts'
import { errorAt, newId, type AnalysisContext } from './context.ts'
import type { ExpressionState } from './expression-state.ts'
import { analyzeExpression } from './expressions.ts'
import type { Labels } from './pattern-labels.ts'
import type { Field, Scope } from './scope.ts'
import type { AggregateExpr, ColumnId, CommonTable, Expr, ExprSortKey, RelationNode, WindowExpr } from './tree.ts'
import { visitColumns } from './walk.ts'

export interface Relation {
  readonly node: RelationNode
  readonly fields: readonly Field[]
}

export function call(
  name: string,
  args: readonly Expr[],
): { readonly resolved: ResolvedFunction; readonly args: readonly Expr[] } {
  const resolved = resolveFunction(
    name,
    args.map((argument) => ({ kind: 'value', type: argument.type })),
  )
  return { resolved, args: args.map((argument, i) => castTo(argument, resolved.argumentTypes[i]!)) }
}

export function aggregateOf(name: string, args: readonly Expr[], filter: Expr | undefined): AggregateExpr {
  const { resolved, args: coerced } = call(name, args)
  return {
    kind: 'aggregate',
    type: resolved.resultType,
    function: resolved,
    arguments: coerced,
    distinct: false,
    orderBy: [],
    filter,
  }
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

/** How many rows a navigation goes; one where it does not say. */
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
  readonly partition: readonly Expr[]
}

/** The rows of the input, numbered in their partitions, with what PREV and NEXT look at. */
export class PatternRows {
  readonly partitionBy: readonly Expr[]
  readonly partitionNames: readonly (string | undefined)[]
  readonly orderBy: readonly ExprSortKey[]
  private readonly navigations: { readonly id: ColumnId; readonly call: WindowExpr }[] = []
  private readonly context: AnalysisContext
  private readonly input: Relation
  private readonly scope: Scope

  constructor(context: AnalysisContext, node: PatternRecognitionRelation, input: Relation, scope: Scope) {
    this.context = context
    this.input = input
    this.scope = { fields: input.fields, parent: scope, boundary: false }
    this.partitionBy = node.partitionBy.map((expression) => analyzeExpression(context, expression, this.scope).expr)
    this.partitionNames = this.partitionBy.map(
      (expr) => input.fields.find((field) => expr.kind === 'column' && field.column === expr.id)?.name,
    )
    this.orderBy = (node.orderBy?.sortItems ?? []).map((item) => ({
      value: analyzeExpression(context, item.sortKey, this.scope).expr,
      descending: item.ordering === 'DESCENDING',
      nullsFirst: item.nullOrdering === 'FIRST',
    }))
  }

  private window(name: string, args: readonly Expr[]): WindowExpr {
    const { resolved, args: coerced } = call(name, args)
    return {
      kind: 'window',
      type: resolved.resultType,
      function: resolved,
      arguments: coerced,
      ignoreNulls: false,
      distinct: false,
      filter: undefined,
      argumentOrder: [],
      partitionBy: this.partitionBy,
      orderBy: this.orderBy,
      frame: undefined,
    }
  }

  /** The value some rows before (PREV) or after (NEXT), whatever they were matched to. */
  navigation(name: string, value: Expr, offset: number): Expr {
    const id = newId(this.context)
    const function_ = this.window(name === 'prev' ? 'lag' : 'lead', [value, constantOf(BIGINT, String(offset))])
    this.navigations.push({ id, call: function_ })
    return columnOf(id, value.type)
  }

  condition(labels: Labels, { name, expression }: PatternRecognitionRelation['variableDefinitions'][number]): Expr {
    const own = labels.nameOf(name)
    const others = new Set<ColumnId>()
    const fields = [...labels.names.keys()].flatMap((label) =>
      this.input.fields.map((field): Field => {
        if (label === own) return { ...field, relation: [label.toLowerCase()], qualified: true }
        const column = newId(this.context)
        others.add(column)
        return { ...field, relation: [label.toLowerCase()], qualified: true, column }
      }),
    )
    const plain = this.input.fields.map((field) => ({ ...field, relation: undefined }))
    const context: AnalysisContext = {
      ...this.context,
      patternCall: (state, node) => this.inCondition(state, node),
    }
    const { expr, aggregates } = analyzeExpression(context, expression, {
      ...this.scope,
      fields: [...plain, ...fields],
    })
    if (aggregates.length > 0) throw this.notSupported(expression)
    if (expr.type.kind !== 'boolean' && expr.type.kind !== 'unknown') {
      throw errorAt(
        this.context,
        expression,
        'TYPE_MISMATCH',
        `Expression defining a label must be boolean (actual type: ${typeName(expr.type)})`,
      )
    }
    const refuse = (id: ColumnId): void => {
      if (others.has(id)) throw this.notSupported(expression)
    }
    visitColumns(expr, refuse)
    for (const { call: navigated } of this.navigations) visitColumns(navigated, refuse)
    return castTo(expr, BOOLEAN)
  }

  private notSupported(node: Expression): Error {
    return errorAt(
      this.context,
      node,
      'NOT_SUPPORTED',
      'Conditions of a row pattern that depend on the rows matched before are not supported',
    )
  }

  private inCondition(state: ExpressionState, node: FunctionCall): Expr | undefined {
    const name = node.name.parts.at(-1)!.value.toLowerCase()
    switch (name) {
      case 'prev':
      case 'next':
        return this.navigation(name, state.analyze(node.arguments[0]!), offsetOf(state, node, 1))
      case 'last':
        // Of its own variable the last row is this one.
        if (offsetOf(state, node, 0) === 0) return state.analyze(node.arguments[0]!)
        throw this.notSupported(node)
      case 'first':
      case 'classifier':
      case 'match_number':
        throw this.notSupported(node)
      default:
        return undefined
    }
  }

  build(labels: Labels, conditions: readonly Expr[]): BuiltRows {
    const number = newId(this.context)
    const windows = [{ id: number, call: this.window('row_number', []) }, ...this.navigations]
    const partition = this.partitionBy.map((expr) => ({ id: newId(this.context), expression: expr }))
    const bits = [...labels.primary].map(([name, index]): Expr => {
      const bit = constantOf(INTEGER, String(1 << index))
      const defined = labels.defined.get(name)
      if (defined === undefined) return bit
      return {
        kind: 'case',
        type: INTEGER,
        branches: [{ when: conditions[defined]!, then: bit }],
        otherwise: constantOf(INTEGER, '0'),
      }
    })
    const mask = newId(this.context)
    const sum = bits.reduce((total, bit) => arithmetic('+', total, bit), constantOf(INTEGER, String(MASK_BASE)) as Expr)
    const node: RelationNode = {
      kind: 'project',
      input: {
        kind: 'window',
        input: { kind: 'project', input: this.input.node, columns: partition },
        columns: windows,
      },
      columns: [{ id: mask, expression: { kind: 'engineCall', type: VARCHAR, name: 'chr', arguments: [sum] } }],
    }
    const columns = [
      ...this.input.fields.map((field) => ({ id: field.column, type: field.type })),
      ...partition.map(({ id, expression }) => ({ id, type: expression.type })),
      ...windows.map(({ id, call: { type } }) => ({ id, type })),
      { id: mask, type: VARCHAR },
    ]
    const unique = [...new Map(columns.map((column) => [column.id, column])).values()]
    return {
      table: { id: newId(this.context), node, columns: unique },
      number,
      mask,
      partition: partition.map(({ id, expression }) => columnOf(id, expression.type)),
    }
  }
}
