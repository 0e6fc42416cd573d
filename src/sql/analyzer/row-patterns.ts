import type { ResolvedFunction } from '../functions/resolve-function.ts'
import { VARIABLE_BASE, type PatternProgram } from '../functions/javascript/row-patterns.ts'
import type { Expression, FunctionCall } from '../syntax/ast.ts'
import type { PatternRecognitionRelation } from '../syntax/ast-patterns.ts'
import { array, BIGINT, BOOLEAN, INTEGER, VARCHAR, type SqlType } from '../types/sql-type.ts'
import { castTo, columnOf, constantOf } from './build.ts'
import { errorAt, newId, type AnalysisContext } from './context.ts'
import type { ExpressionState } from './expression-state.ts'
import { analyzeExpression } from './expressions.ts'
import { codeOf, labelsOf, skipOf, type Labels } from './pattern-labels.ts'
import {
  aggregateOf,
  arithmetic,
  call,
  compare,
  offsetOf,
  PatternRows,
  type BuiltRows,
  type Relation,
} from './pattern-rows.ts'
import type { Field, Scope } from './scope.ts'
import type { AggregateExpr, ColumnId, Expr, RelationNode } from './tree.ts'
import { mapChildren, visitColumns } from './walk.ts'

/** A name in a measure: the column of the rows that one of the variables was matched to (all rows: undefined). */
interface Placeholder {
  readonly variables: readonly number[] | undefined
  readonly value: Expr
  readonly from: 'first' | 'last'
  readonly skip: number
}

/**
 * MATCH_RECOGNIZE with ONE ROW PER MATCH: every row of a partition gets a mask of the variables whose conditions it
 * meets, a function of the engine finds the matches in the sequence of masks, and the measures are aggregates over the
 * rows of a match. So conditions may look at rows around (PREV, NEXT), but not at what was matched before.
 */
export function analyzeRowPattern(
  context: AnalysisContext,
  node: PatternRecognitionRelation,
  input: Relation,
  scope: Scope,
): Relation {
  if (node.rowsPerMatch !== undefined && node.rowsPerMatch !== 'ONE') {
    throw errorAt(context, node, 'NOT_SUPPORTED', 'ALL ROWS PER MATCH is not supported')
  }
  const labels = labelsOf(context, node)
  const rows = new PatternRows(context, node, input, scope)
  const conditions = node.variableDefinitions.map((definition) => rows.condition(labels, definition))
  const measures = new PatternMeasures(context, labels, input, scope, rows)
  const columns = node.measures.map(({ expression, name }) => ({
    id: newId(context),
    name: name.value,
    expr: measures.analyze(expression),
  }))
  return measures.build(
    rows.build(labels, conditions),
    { pattern: codeOf(labels, node.pattern), skip: skipOf(labels, node) },
    columns,
  )
}

interface Measure {
  readonly id: ColumnId
  readonly name: string
  readonly expr: Expr
}

/** The measures over the rows of a match: names of columns mean the last row that fits, aggregates all that do. */
class PatternMeasures {
  private readonly placeholders = new Map<ColumnId, Placeholder>()
  private readonly classifiers = new Map<ColumnId, readonly number[] | undefined>()
  private readonly numberOfMatch: ColumnId
  private readonly context: AnalysisContext
  private readonly labels: Labels
  private readonly input: Relation
  private readonly rows: PatternRows
  private readonly measureScope: Scope

  constructor(context: AnalysisContext, labels: Labels, input: Relation, scope: Scope, rows: PatternRows) {
    this.labels = labels
    this.input = input
    this.rows = rows
    this.numberOfMatch = newId(context)
    this.context = { ...context, patternCall: (state, node) => this.inMeasure(state, node) }
    const of = (relation: readonly string[] | undefined, variables: readonly number[] | undefined): Field[] =>
      input.fields.map((field) => ({
        ...field,
        relation,
        qualified: relation !== undefined,
        column: this.placeholder({ variables, value: columnOf(field.column, field.type), from: 'last', skip: 0 }),
      }))
    const fields = [
      ...of(undefined, undefined),
      ...[...labels.names].flatMap(([name, variables]) => of([name.toLowerCase()], variables)),
    ]
    this.measureScope = { fields, parent: scope, boundary: false }
  }

  private placeholder(placeholder: Placeholder): ColumnId {
    const id = newId(this.context)
    this.placeholders.set(id, placeholder)
    return id
  }

  analyze(expression: Expression): Expr {
    return analyzeExpression(this.context, expression, this.measureScope).expr
  }

  private inMeasure(state: ExpressionState, node: FunctionCall): Expr | undefined {
    const name = node.name.parts.at(-1)!.value.toLowerCase()
    const [argument] = node.arguments
    if (name === 'match_number') return columnOf(this.numberOfMatch, BIGINT)
    if (name === 'classifier') {
      const id = newId(this.context)
      this.classifiers.set(id, argument?.kind === 'Identifier' ? this.labels.variablesOf(argument) : undefined)
      return columnOf(id, VARCHAR)
    }
    if (argument === undefined) return undefined
    if (name === 'count' && argument.kind === 'LabelDereference') {
      const variables = this.labels.variablesOf(argument.label)
      const id = this.placeholder({ variables, value: constantOf(BOOLEAN, true), from: 'last', skip: 0 })
      return aggregateOf('count', [columnOf(id, BOOLEAN)], undefined)
    }
    switch (name) {
      case 'first':
      case 'last': {
        const { variables, value } = this.plain(state.analyze(argument))
        return columnOf(this.placeholder({ variables, value, from: name, skip: offsetOf(state, node, 0) }), value.type)
      }
      case 'prev':
      case 'next': {
        const inner = state.analyze(argument)
        const known = inner.kind === 'column' ? this.placeholders.get(inner.id) : undefined
        const { variables, value } = known ?? this.plain(inner)
        const moved = this.rows.navigation(name, value, offsetOf(state, node, 1))
        const at = { from: known?.from ?? 'last', skip: known?.skip ?? 0 } as const
        return columnOf(this.placeholder({ variables, value: moved, ...at }), moved.type)
      }
      default:
        return undefined
    }
  }

  /** An expression over columns of the rows, and the variables its names ask for. */
  private plain(expr: Expr): { readonly variables: readonly number[] | undefined; readonly value: Expr } {
    let variables: readonly number[] | undefined
    const change = (part: Expr): Expr => {
      const known = part.kind === 'column' ? this.placeholders.get(part.id) : undefined
      if (known === undefined) return mapChildren(part, change)
      variables ??= known.variables
      return known.value
    }
    const value = change(expr)
    return { variables, value }
  }

  build(rows: BuiltRows, program: PatternProgram, measures: readonly Measure[]): Relation {
    const { context } = this
    const scan = (): { readonly node: RelationNode; readonly of: (expr: Expr) => Expr } => {
      const columns = rows.table.columns.map(({ id, type }) => ({ id: newId(context), source: id, type }))
      const byId = new Map(columns.map((column) => [column.source, column]))
      const of = (expr: Expr): Expr => {
        const column = expr.kind === 'column' ? byId.get(expr.id) : undefined
        return column === undefined ? mapChildren(expr, of) : columnOf(column.id, column.type)
      }
      return { node: { kind: 'cte', table: rows.table.id, columns }, of }
    }
    const sequence = scan()
    const matched = scan()
    const text = (value: string): Expr => constantOf(VARCHAR, value)
    const number = columnOf(rows.number, BIGINT)

    // One row a partition: the masks of its rows in order; then one row a match.
    const masks = newId(context)
    const matches = newId(context)
    const match = newId(context)
    const [start, variables] = [newId(context), newId(context)]
    const keys = rows.partition
      .map((expr) => sequence.of(expr))
      .map((expr) => ({
        id: (expr as { readonly id: ColumnId }).id,
        input: (expr as { readonly id: ColumnId }).id,
        type: expr.type,
      }))
    const found: RelationNode = {
      kind: 'project',
      input: {
        kind: 'aggregate',
        input: sequence.node,
        keys,
        sets: undefined,
        aggregates: [{ id: masks, call: concatenated(sequence.of(columnOf(rows.mask, VARCHAR)), sequence.of(number)) }],
        groupings: [],
      },
      columns: [
        {
          id: matches,
          expression: {
            kind: 'engineCall',
            type: array(VARCHAR),
            name: 'u_match_rows',
            arguments: [columnOf(masks, VARCHAR), text(JSON.stringify(program))],
          },
        },
      ],
    }
    const part = (index: string): Expr => ({
      kind: 'engineCall',
      type: VARCHAR,
      name: 'split_part',
      arguments: [columnOf(match, VARCHAR), text(','), constantOf(INTEGER, index)],
    })
    const one: RelationNode = {
      kind: 'project',
      input: {
        kind: 'join',
        type: 'cross',
        lateral: true,
        left: found,
        right: {
          kind: 'unnest',
          arguments: [{ value: columnOf(matches, array(VARCHAR)), columns: [match] }],
          ordinality: this.numberOfMatch,
        },
        condition: undefined,
      },
      columns: [
        { id: start, expression: castTo(part('1'), BIGINT) },
        { id: variables, expression: part('2') },
      ],
    }

    // The rows of each match; a match without rows keeps its row.
    const first = columnOf(start, BIGINT)
    const length: Expr = { kind: 'engineCall', type: BIGINT, name: 'length', arguments: [columnOf(variables, VARCHAR)] }
    const row = matched.of(number)
    const label = newId(context)
    const joined: RelationNode = {
      kind: 'project',
      input: {
        kind: 'join',
        type: 'left',
        lateral: false,
        left: one,
        right: matched.node,
        condition: {
          kind: 'and',
          type: BOOLEAN,
          terms: [
            ...rows.partition.map((expr) => compare('IS NOT DISTINCT FROM', sequence.of(expr), matched.of(expr))),
            compare('>=', row, first),
            compare('<', row, arithmetic('+', first, length)),
          ],
        },
      },
      columns: [
        {
          id: label,
          expression: {
            kind: 'engineCall',
            type: VARCHAR,
            name: 'substr',
            arguments: [
              columnOf(variables, VARCHAR),
              arithmetic('+', arithmetic('-', row, first), constantOf(BIGINT, '1')),
              constantOf(INTEGER, '1'),
            ],
          },
        },
      ],
    }

    const aggregates: { readonly id: ColumnId; readonly call: AggregateExpr }[] = []
    const add = (aggregate: AggregateExpr): Expr => {
      const id = newId(context)
      aggregates.push({ id, call: aggregate })
      return columnOf(id, aggregate.type)
    }
    const fits = (wanted: readonly number[] | undefined): Expr =>
      wanted === undefined
        ? { kind: 'not', type: BOOLEAN, value: { kind: 'isNull', type: BOOLEAN, value: row } }
        : {
            kind: 'inList',
            type: BOOLEAN,
            value: columnOf(label, VARCHAR),
            values: wanted.map((variable) => text(letterOf(variable))),
          }
    const picked = (value: Expr, wanted: readonly number[] | undefined, from: 'first' | 'last', skip: number): Expr => {
      const over = matched.of(value)
      if (skip === 0) return add(aggregateOf(from === 'first' ? 'min_by' : 'max_by', [over, row], fits(wanted)))
      const ordered: AggregateExpr = {
        ...aggregateOf('array_agg', [over], fits(wanted)),
        orderBy: [{ value: row, descending: from === 'last', nullsFirst: false }],
      }
      const { resolved, args } = call('element_at', [add(ordered), constantOf(BIGINT, String(skip + 1))])
      return { kind: 'call', type: resolved.resultType, function: resolved, arguments: args }
    }
    const finish = (expr: Expr): Expr => {
      if (expr.kind === 'aggregate') {
        const wanted = this.variablesIn(expr)
        const condition = fits(wanted)
        const { filter } = expr
        const base = mapChildren(expr, (child) => matched.of(this.plain(child).value)) as AggregateExpr
        const both: Expr =
          filter === undefined
            ? condition
            : { kind: 'and', type: BOOLEAN, terms: [condition, matched.of(this.plain(filter).value)] }
        return add({ ...base, filter: both })
      }
      if (expr.kind !== 'column') return mapChildren(expr, finish)
      if (this.classifiers.has(expr.id)) {
        return named(this.labels, picked(columnOf(label, VARCHAR), this.classifiers.get(expr.id), 'last', 0))
      }
      const known = this.placeholders.get(expr.id)
      return known === undefined ? expr : picked(known.value, known.variables, known.from, known.skip)
    }
    const finished = measures.map(({ id, expr }) => ({ id, expression: finish(expr) }))
    const groupKeys = [
      ...keys,
      { id: this.numberOfMatch, input: this.numberOfMatch, type: BIGINT as SqlType },
      { id: start, input: start, type: BIGINT as SqlType },
    ]
    return {
      node: {
        kind: 'with',
        tables: [rows.table],
        body: {
          kind: 'project',
          input: { kind: 'aggregate', input: joined, keys: groupKeys, sets: undefined, aggregates, groupings: [] },
          columns: finished,
        },
      },
      fields: [
        ...keys.map(({ id, type }, i) => ({
          name: this.rows.partitionNames[i],
          relation: undefined,
          type,
          column: id,
        })),
        ...measures.map(({ id, name }, i) => ({
          name,
          relation: undefined,
          type: finished[i]!.expression.type,
          column: id,
        })),
      ],
    }
  }

  private variablesIn(expr: Expr): readonly number[] | undefined {
    let variables: readonly number[] | undefined
    visitColumns(expr, (id) => (variables ??= this.placeholders.get(id)?.variables))
    return variables
  }
}

function letterOf(variable: number): string {
  return String.fromCharCode(VARIABLE_BASE + variable)
}

/** The variable's name for its letter. */
function named(labels: Labels, letter: Expr): Expr {
  return {
    kind: 'case',
    type: VARCHAR,
    branches: [...labels.primary].map(([name, index]) => ({
      when: compare('=', letter, constantOf(VARCHAR, letterOf(index))),
      then: constantOf(VARCHAR, name),
    })),
    otherwise: undefined,
  }
}

/** Texts of rows in their order, one behind the other. */
function concatenated(value: Expr, order: Expr): AggregateExpr {
  const joined: ResolvedFunction = {
    name: 'string_agg',
    kind: 'aggregate',
    argumentTypes: [VARCHAR],
    resultType: VARCHAR,
    deterministic: true,
    calledOnNull: false,
    orderSensitive: true,
    render: ({ args, clauses }) =>
      `string_agg(${args[0]?.kind === 'value' ? args[0].sql : ''}, '' ORDER BY ${clauses?.orderBy ?? '1'})`,
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
