import { EXCLUDED, type PatternProgram } from '../functions/javascript/row-patterns.ts'
import type { Expression, FunctionCall } from '../syntax/ast.ts'
import type { PatternRecognitionRelation } from '../syntax/ast-patterns.ts'
import { array, BIGINT, BOOLEAN, INTEGER, VARCHAR, type SqlType } from '../types/sql-type.ts'
import { castTo, columnOf, constantOf } from './build.ts'
import { analyzeCall } from './calls.ts'
import { errorAt, newId, type AnalysisContext } from './context.ts'
import type { ExpressionState } from './expression-state.ts'
import { analyzeExpression } from './expressions.ts'
import { verifyPatternCall } from './pattern-checks.ts'
import { PatternConditions, type ConditionColumn } from './pattern-conditions.ts'
import { concatenated, letterOf, lettersOf, named, overMatch } from './pattern-expressions.ts'
import { codeOf, labelsOf, skipOf, verifyPattern, type Labels } from './pattern-labels.ts'
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
import type { AggregateExpr, ColumnId, Expr, RelationNode, WindowExpr } from './tree.ts'
import { mapChildren, visitColumns } from './walk.ts'

/** A name in a measure: the column of the rows that one of the variables was matched to (all rows: undefined). */
interface Placeholder {
  readonly variables: readonly number[] | undefined
  readonly value: Expr
  readonly from: 'first' | 'last'
  readonly skip: number
  /** Of the whole match, also where its rows are given one by one. */
  readonly final: boolean
}

/**
 * MATCH_RECOGNIZE: every row of a partition gets a mask of the variables whose conditions it
 * meets, a function of the engine finds the matches in the sequence of masks, and the measures are aggregates over the
 * rows of a match, or windows over them where all rows are given. Conditions that look at what was matched before are asked while matching.
 */
export function analyzeRowPattern(
  context: AnalysisContext,
  node: PatternRecognitionRelation,
  input: Relation,
  scope: Scope,
): Relation {
  verifyPattern(context, node)
  const labels = labelsOf(context, node)
  const rows = new PatternRows(context, node, input, scope)
  const columns: ConditionColumn[] = []
  const conditions = node.variableDefinitions.map((definition) => {
    const own = labels.primary.get(labels.nameOf(definition.name))!
    const of = new PatternConditions(context, labels, own, input.fields, scope, rows, columns)
    return { own, ...of.analyze(definition) }
  })
  const measures = new PatternMeasures(context, labels, input, scope, rows)
  const measured = node.measures.map(({ expression, name }) => ({
    id: newId(context),
    name: name.value,
    expr: measures.analyze(expression),
  }))
  return measures.build(
    rows.build(
      labels,
      conditions.map((condition) => (condition.of === 'row' ? condition.expr : undefined)),
      columns.map(({ value }) => value),
    ),
    {
      pattern: codeOf(labels, node.pattern),
      skip: skipOf(labels, node),
      ...(conditions.every((condition) => condition.of === 'row') && columns.length === 0
        ? {}
        : {
            conditions: Object.fromEntries(
              conditions.flatMap((each) => (each.of === 'match' ? [[String(each.own), each.code]] : [])),
            ),
            columns: columns.map(({ kind }) => kind),
            names: [...labels.primary.keys()],
          }),
    },
    measured,
    node.rowsPerMatch ?? 'ONE',
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
  private readonly classifiers = new Set<ColumnId>()
  /** Aggregates of the whole match, also where its rows are given one by one. */
  private readonly finals = new Set<Expr>()
  private readonly numberOfMatch: ColumnId
  /** Of the rows of a match: the letters of its variables, and the row's place among them from 1. */
  private readonly letters: ColumnId
  private readonly place: ColumnId
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
    this.letters = newId(context)
    this.place = newId(context)
    this.context = { ...context, patternCall: (state, node) => this.inMeasure(state, node) }
    const of = (relation: readonly string[] | undefined, variables: readonly number[] | undefined): Field[] =>
      input.fields.map((field) => ({
        ...field,
        relation,
        qualified: relation !== undefined,
        column: this.placeholder({
          variables,
          value: columnOf(field.column, field.type),
          from: 'last',
          skip: 0,
          final: false,
        }),
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
    const { expr, windows } = analyzeExpression(this.context, expression, this.measureScope)
    const [nested] = windows
    if (nested === undefined) return expr
    const message = 'Cannot nest window functions or row pattern measures inside pattern recognition expressions'
    throw errorAt(this.context, nested, 'NESTED_WINDOW', message)
  }

  private inMeasure(state: ExpressionState, node: FunctionCall): Expr | undefined {
    verifyPatternCall(this.context, this.labels, node, false)
    const final = node.processingMode?.mode === 'FINAL'
    const special = this.specialMeasure(state, node, final)
    if (special !== undefined || !final) return special
    const value = analyzeCall(state, { ...node, processingMode: undefined })
    this.finals.add(value)
    return value
  }

  private specialMeasure(state: ExpressionState, node: FunctionCall, final: boolean): Expr | undefined {
    const name = node.name.parts.at(-1)!.value.toLowerCase()
    const [argument] = node.arguments
    if (name === 'match_number') return columnOf(this.numberOfMatch, BIGINT)
    if (name === 'classifier') {
      const variables = argument?.kind === 'Identifier' ? this.labels.variablesOf(argument) : undefined
      const id = this.placeholder({ variables, value: this.classifier(0), from: 'last', skip: 0, final: false })
      this.classifiers.add(id)
      return columnOf(id, VARCHAR)
    }
    if (argument === undefined) return undefined
    if (name === 'count' && argument.kind === 'LabelDereference') {
      const variables = this.labels.variablesOf(argument.label)
      const id = this.placeholder({ variables, value: constantOf(BOOLEAN, true), from: 'last', skip: 0, final: false })
      return aggregateOf('count', [columnOf(id, BOOLEAN)], undefined)
    }
    switch (name) {
      case 'first':
      case 'last': {
        const inner = state.analyze(argument)
        const { variables, value } = this.plain(inner)
        const skip = offsetOf(state, node, 0)
        const id = this.placeholder({ variables, value, from: name, skip, final })
        if (inner.kind === 'column' && this.classifiers.has(inner.id)) this.classifiers.add(id)
        return columnOf(id, value.type)
      }
      case 'prev':
      case 'next': {
        const inner = state.analyze(argument)
        const known = inner.kind === 'column' ? this.placeholders.get(inner.id) : undefined
        const { variables, value } = known ?? this.plain(inner)
        const offset = offsetOf(state, node, 1)
        const moved =
          inner.kind === 'column' && this.classifiers.has(inner.id)
            ? this.classifier(name === 'prev' ? -offset : offset)
            : this.rows.navigation(name, value, offset)
        const at = { from: known?.from ?? 'last', skip: known?.skip ?? 0, final: known?.final ?? final } as const
        return columnOf(this.placeholder({ variables, value: moved, ...at }), moved.type)
      }
      default:
        return undefined
    }
  }

  /** The name of the variable that a row of the match was matched to, some rows further on. */
  private classifier(move: number): Expr {
    const at = arithmetic('+', columnOf(this.place, BIGINT), constantOf(BIGINT, String(move)))
    const letter: Expr = {
      kind: 'engineCall',
      type: VARCHAR,
      name: 'substr',
      arguments: [columnOf(this.letters, VARCHAR), at, constantOf(INTEGER, '1')],
    }
    const name = named(this.labels, letter)
    if (move >= 0) return name
    const inside = compare('>=', at, constantOf(BIGINT, '1'))
    return { kind: 'case', type: VARCHAR, branches: [{ when: inside, then: name }], otherwise: undefined }
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

  build(
    rows: BuiltRows,
    program: PatternProgram,
    measures: readonly Measure[],
    perMatch: NonNullable<PatternRecognitionRelation['rowsPerMatch']>,
  ): Relation {
    const { context } = this
    const all = perMatch !== 'ONE'
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
    const values = newId(context)
    const matches = newId(context)
    const match = newId(context)
    const start = newId(context)
    const variables = this.letters
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
        aggregates: [
          { id: masks, call: concatenated(sequence.of(columnOf(rows.mask, VARCHAR)), sequence.of(number)) },
          ...(rows.texts === undefined
            ? []
            : [{ id: values, call: concatenated(sequence.of(columnOf(rows.texts, VARCHAR)), sequence.of(number)) }]),
        ],
        groupings: [],
      },
      columns: [
        {
          id: matches,
          expression: {
            kind: 'engineCall',
            type: array(VARCHAR),
            name: 'u_match_rows',
            arguments: [
              columnOf(masks, VARCHAR),
              text(JSON.stringify(program)),
              rows.texts === undefined ? text('') : columnOf(values, VARCHAR),
            ],
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
    // An empty match shows the row at which it begins.
    const shown: Expr = {
      kind: 'case',
      type: BIGINT,
      branches: [{ when: compare('=', length, constantOf(BIGINT, '0')), then: constantOf(BIGINT, '1') }],
      otherwise: length,
    }
    const row = matched.of(number)
    const label = newId(context)
    const place = arithmetic('+', arithmetic('-', row, first), constantOf(BIGINT, '1'))
    const joined: RelationNode = {
      kind: 'project',
      input: {
        kind: 'join',
        type: perMatch === 'ONE' || perMatch === 'ALL_WITH_UNMATCHED' ? 'left' : 'inner',
        lateral: false,
        left: perMatch === 'ALL_WITH_UNMATCHED' ? matched.node : one,
        right: perMatch === 'ALL_WITH_UNMATCHED' ? one : matched.node,
        condition: {
          kind: 'and',
          type: BOOLEAN,
          terms: [
            ...rows.partition.map((expr) => compare('IS NOT DISTINCT FROM', sequence.of(expr), matched.of(expr))),
            compare('>=', row, first),
            compare(
              '<',
              row,
              arithmetic(
                '+',
                first,
                perMatch === 'ALL_SHOW_EMPTY' || perMatch === 'ALL_WITH_UNMATCHED' ? shown : length,
              ),
            ),
          ],
        },
      },
      columns: [
        { id: this.place, expression: place },
        {
          id: label,
          expression: {
            kind: 'engineCall',
            type: VARCHAR,
            name: 'substr',
            arguments: [columnOf(variables, VARCHAR), place, constantOf(INTEGER, '1')],
          },
        },
      ],
    }

    const aggregates: { readonly id: ColumnId; readonly call: AggregateExpr }[] = []
    const windows: { readonly id: ColumnId; readonly call: WindowExpr }[] = []
    const partition = [...rows.partition.map((expr) => matched.of(expr)), columnOf(this.numberOfMatch, BIGINT)]
    const add = (aggregate: AggregateExpr, final: boolean): Expr => {
      const id = newId(context)
      if (all) windows.push({ id, call: overMatch(aggregate, partition, row, final) })
      else aggregates.push({ id, call: aggregate })
      return columnOf(id, aggregate.type)
    }
    const letter = columnOf(label, VARCHAR)
    const oneOf = (letters: readonly string[]): Expr => ({
      kind: 'inList',
      type: BOOLEAN,
      value: letter,
      values: letters.map(text),
    })
    const fits = (wanted: readonly number[] | undefined): Expr => {
      if (wanted !== undefined) return oneOf(wanted.flatMap(lettersOf))
      if (all) return { kind: 'not', type: BOOLEAN, value: compare('=', letter, text('')) }
      return { kind: 'not', type: BOOLEAN, value: { kind: 'isNull', type: BOOLEAN, value: row } }
    }
    const picked = (
      value: Expr,
      wanted: readonly number[] | undefined,
      from: 'first' | 'last',
      skip: number,
      final: boolean,
    ): Expr => {
      const over = matched.of(value)
      if (skip === 0) return add(aggregateOf(from === 'first' ? 'min_by' : 'max_by', [over, row], fits(wanted)), final)
      const ordered: AggregateExpr = {
        ...aggregateOf('array_agg', [over], fits(wanted)),
        orderBy: [{ value: row, descending: from === 'last', nullsFirst: false }],
      }
      const { resolved, args } = call('element_at', [add(ordered, final), constantOf(BIGINT, String(skip + 1))])
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
        const inOrder = !all && base.function.orderSensitive && base.orderBy.length === 0
        const orderBy = inOrder ? [{ value: row, descending: false, nullsFirst: false }] : base.orderBy
        return add({ ...base, orderBy, filter: both }, this.finals.has(expr))
      }
      if (expr.kind !== 'column') return mapChildren(expr, finish)
      const known = this.placeholders.get(expr.id)
      return known === undefined ? expr : picked(known.value, known.variables, known.from, known.skip, known.final)
    }
    const finished = measures.map(({ id, expr }) => ({ id, expression: finish(expr) }))
    if (all) {
      const excluded = oneOf([...this.labels.primary.values()].map((variable) => letterOf(variable + EXCLUDED)))
      const { node, fields } = this.allRows(joined, windows, excluded, finished, measures, (expr) => matched.of(expr))
      return { node: { kind: 'with', tables: [rows.table], body: node }, fields }
    }
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

  /** Every row of the matches: partition and order, the measures, and the other columns of the input. */
  private allRows(
    joined: RelationNode,
    windows: readonly { readonly id: ColumnId; readonly call: WindowExpr }[],
    excluded: Expr,
    finished: readonly { readonly id: ColumnId; readonly expression: Expr }[],
    measures: readonly Measure[],
    of: (expr: Expr) => Expr,
  ): Relation {
    const measured: RelationNode = windows.length === 0 ? joined : { kind: 'window', input: joined, columns: windows }
    const isExcluded: Expr = { kind: 'coalesce', type: BOOLEAN, operands: [excluded, constantOf(BOOLEAN, false)] }
    const columns = finished.map(({ id, expression }) => ({
      id,
      expression: {
        kind: 'case',
        type: expression.type,
        branches: [
          {
            when: { kind: 'isNull', type: BOOLEAN, value: columnOf(this.numberOfMatch, BIGINT) },
            then: constantOf(expression.type, null),
          },
        ],
        otherwise: expression,
      } satisfies Expr,
    }))
    const leading = new Set(
      [...this.rows.partitionBy, ...this.rows.orderBy.map(({ value }) => value)].flatMap((expr) =>
        expr.kind === 'column' ? [expr.id] : [],
      ),
    )
    const field = ({ name, column, type }: Field): Field => {
      const moved = of(columnOf(column, type)) as Expr & { readonly id: ColumnId }
      return { name, relation: undefined, type, column: moved.id }
    }
    const byColumn = new Map(this.input.fields.map((each) => [each.column, each]))
    return {
      node: {
        kind: 'project',
        input: { kind: 'filter', input: measured, predicate: { kind: 'not', type: BOOLEAN, value: isExcluded } },
        columns,
      },
      fields: [
        ...[...leading].flatMap((column) => byColumn.get(column) ?? []).map(field),
        ...measures.map(({ id, name }, i) => ({
          name,
          relation: undefined,
          type: finished[i]!.expression.type,
          column: id,
        })),
        ...this.input.fields.filter(({ column }) => !leading.has(column)).map(field),
      ],
    }
  }

  private variablesIn(expr: Expr): readonly number[] | undefined {
    let variables: readonly number[] | undefined
    visitColumns(expr, (id) => (variables ??= this.placeholders.get(id)?.variables))
    return variables
  }
}
