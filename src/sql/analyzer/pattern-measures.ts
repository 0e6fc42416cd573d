import type { Expression, FunctionCall } from '../syntax/ast.ts'
import { BIGINT, BOOLEAN, VARCHAR } from '../types/sql-type.ts'
import { aggregateOf, callOf, columnOf, constantOf } from './build.ts'
import { analyzeCall } from './calls.ts'
import { errorAt, newId, type ExpressionState } from './context.ts'
import { analyzeExpression } from './expressions.ts'
import { verifyPatternCall } from './pattern-checks.ts'
import { isOneOf, lettersOf, nameOfLetter, overMatch } from './pattern-expressions.ts'
import { letterAt, type MatchColumns, type Matches } from './pattern-matches.ts'
import { arithmetic, compare, offsetOf, type BuiltRows, type Recognition } from './pattern-rows.ts'
import { uncorrelated, type Field, type Scope } from './scope.ts'
import type { AggregateExpr, ColumnId, Expr, WindowExpr } from './tree.ts'
import { mapChildren, visitColumns } from './walk.ts'

/** A reference in a measure: the column of rows that matched one of the variables (undefined: of all rows). */
interface Placeholder {
  readonly variables: readonly number[] | undefined
  readonly value: Expr
  readonly from: 'first' | 'last'
  readonly skip: number
  /** Whether the measure refers to the whole match even if rows are returned one by one. */
  readonly final: boolean
}

export interface Measure {
  readonly id: ColumnId
  readonly name: string
  readonly expr: Expr
}

export interface CalculatedMeasures {
  readonly columns: readonly { readonly id: ColumnId; readonly name: string; readonly expression: Expr }[]
  /** The calls from which the columns are computed; one of the two lists is empty. */
  readonly aggregates: readonly { readonly id: ColumnId; readonly call: AggregateExpr }[]
  readonly windows: readonly { readonly id: ColumnId; readonly call: WindowExpr }[]
}

/**
 * The measures over the rows of a match: a column name refers to the last matching row, an aggregate to all matching
 * rows.
 */
export class PatternMeasures {
  readonly #placeholders = new Map<ColumnId, Placeholder>()
  readonly #classifiers = new Set<ColumnId>()
  /** Aggregates over the whole match even if rows are returned one by one. */
  readonly #finals = new Set<Expr>()
  readonly #recognition: Recognition
  readonly #scope: Scope
  readonly columns: MatchColumns

  constructor({ context, labels, input, scope, rows }: Recognition) {
    this.columns = { numberOfMatch: newId(context), letters: newId(context), rowNumber: newId(context) }
    const patternCall = (state: ExpressionState, node: FunctionCall): Expr | undefined => this.#inMeasure(state, node)
    this.#recognition = { context: { ...context, patternCall }, labels, input, scope, rows }
    const of = (relation: readonly string[] | undefined, variables: readonly number[] | undefined): Field[] =>
      input.fields.map((field) => ({
        ...field,
        relation,
        qualified: relation !== undefined,
        shows: field.shows ?? field.column,
        column: this.#placeholder({
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
    this.#scope = { fields, parent: scope, boundary: false, refused: uncorrelated }
  }

  #placeholder(placeholder: Placeholder): ColumnId {
    const id = newId(this.#recognition.context)
    this.#placeholders.set(id, placeholder)
    return id
  }

  analyze(expression: Expression): Expr {
    const { expr, windows } = analyzeExpression(this.#recognition.context, expression, this.#scope)
    const [nested] = windows
    if (nested === undefined) return expr
    const message = 'Cannot nest window functions or row pattern measures inside pattern recognition expressions'
    throw errorAt(this.#recognition.context, nested, 'NESTED_WINDOW', message)
  }

  #inMeasure(state: ExpressionState, node: FunctionCall): Expr | undefined {
    verifyPatternCall(this.#recognition.context, this.#recognition.labels, node, false)
    const final = node.processingMode?.mode === 'FINAL'
    const special = this.#specialMeasure(state, node, final)
    if (special !== undefined || !final) return special
    const value = analyzeCall(state, { ...node, processingMode: undefined })
    this.#finals.add(value)
    return value
  }

  #specialMeasure(state: ExpressionState, node: FunctionCall, final: boolean): Expr | undefined {
    const name = node.name.parts.at(-1)!.value.toLowerCase()
    const [argument] = node.arguments
    if (name === 'match_number') return columnOf(this.columns.numberOfMatch, BIGINT)
    if (name === 'classifier') {
      const variables = argument?.kind === 'Identifier' ? this.#recognition.labels.variablesOf(argument) : undefined
      const id = this.#placeholder({ variables, value: this.#classifier(0), from: 'last', skip: 0, final: false })
      this.#classifiers.add(id)
      return columnOf(id, VARCHAR)
    }
    if (argument === undefined) return undefined
    if (name === 'count' && argument.kind === 'LabelDereference') {
      const variables = this.#recognition.labels.variablesOf(argument.label)
      const id = this.#placeholder({ variables, value: constantOf(BOOLEAN, true), from: 'last', skip: 0, final: false })
      return aggregateOf('count', [columnOf(id, BOOLEAN)], undefined)
    }
    switch (name) {
      case 'first':
      case 'last': {
        const inner = state.analyze(argument)
        const { variables, value } = this.#plain(inner)
        const skip = offsetOf(state, node, 0)
        const id = this.#placeholder({ variables, value, from: name, skip, final })
        if (inner.kind === 'column' && this.#classifiers.has(inner.id)) this.#classifiers.add(id)
        return columnOf(id, value.type)
      }
      case 'prev':
      case 'next': {
        const inner = state.analyze(argument)
        const known = inner.kind === 'column' ? this.#placeholders.get(inner.id) : undefined
        const { variables, value } = known ?? this.#plain(inner)
        const offset = offsetOf(state, node, 1)
        const moved =
          inner.kind === 'column' && this.#classifiers.has(inner.id)
            ? this.#classifier(name === 'prev' ? -offset : offset)
            : this.#readsLetters(value)
              ? this.#shifted(value, name, offset)
              : this.#recognition.rows.navigation(name, value, offset)
        const at = { from: known?.from ?? 'last', skip: known?.skip ?? 0, final: known?.final ?? final } as const
        return columnOf(this.#placeholder({ variables, value: moved, ...at }), moved.type)
      }
      default:
        return undefined
    }
  }

  /** The name of the variable matched by the row `move` rows further on. */
  #classifier(move: number): Expr {
    const at = arithmetic('+', columnOf(this.columns.rowNumber, BIGINT), constantOf(BIGINT, String(move)))
    const letter = letterAt(this.columns, at)
    const name = nameOfLetter(this.#recognition.labels, letter)
    if (move >= 0) return name
    const inside = compare('>=', at, constantOf(BIGINT, '1'))
    return { kind: 'case', type: VARCHAR, branches: [{ when: inside, then: name }], otherwise: undefined }
  }

  #readsLetters(value: Expr): boolean {
    let found = false
    visitColumns(value, (id) => (found ||= id === this.columns.letters))
    return found
  }

  /**
   * Shifts an expression over columns and variable names by some rows: columns through PREV or NEXT, variable names
   * through the row number.
   */
  #shifted(value: Expr, name: 'prev' | 'next', offset: number): Expr {
    const move = constantOf(BIGINT, String(name === 'prev' ? -offset : offset))
    const rowNumber = columnOf(this.columns.rowNumber, BIGINT)
    const change = (part: Expr): Expr => {
      if (part.kind !== 'column') return mapChildren(part, change)
      if (part.id === this.columns.rowNumber) return arithmetic('+', part, move)
      if (part.id === this.columns.letters || part.id === this.columns.numberOfMatch) return part
      return this.#recognition.rows.navigation(name, part, offset)
    }
    const inside = compare('>=', arithmetic('+', rowNumber, move), constantOf(BIGINT, '1'))
    const branches = [{ when: inside, then: change(value) }]
    return { kind: 'case', type: value.type, branches, otherwise: undefined }
  }

  /** Resolves references in an expression to plain columns. Returns the variables that they refer to. */
  #plain(expr: Expr): { readonly variables: readonly number[] | undefined; readonly value: Expr } {
    let variables: readonly number[] | undefined
    const change = (part: Expr): Expr => {
      const known = part.kind === 'column' ? this.#placeholders.get(part.id) : undefined
      if (known === undefined) return mapChildren(part, change)
      variables ??= known.variables
      return known.value
    }
    const value = change(expr)
    return { variables, value }
  }

  /**
   * The measures over the rows of the matches: as aggregates of a match, or as windows over it if each row shows them.
   */
  over(measures: readonly Measure[], rows: BuiltRows, matches: Matches, eachRow: boolean): CalculatedMeasures {
    const { context } = this.#recognition
    const { row, letter } = matches
    const aggregates: { readonly id: ColumnId; readonly call: AggregateExpr }[] = []
    const windows: { readonly id: ColumnId; readonly call: WindowExpr }[] = []
    const partition = [...rows.partition.map((expr) => matches.of(expr)), columnOf(this.columns.numberOfMatch, BIGINT)]
    const add = (aggregate: AggregateExpr, final: boolean): Expr => {
      const id = newId(context)
      if (eachRow) windows.push({ id, call: overMatch(aggregate, partition, row, final) })
      else aggregates.push({ id, call: aggregate })
      return columnOf(id, aggregate.type)
    }
    const fits = (wanted: readonly number[] | undefined): Expr => {
      if (wanted !== undefined) return isOneOf(letter, wanted.flatMap(lettersOf))
      if (eachRow) return { kind: 'not', type: BOOLEAN, value: compare('=', letter, constantOf(VARCHAR, '')) }
      return { kind: 'not', type: BOOLEAN, value: { kind: 'isNull', type: BOOLEAN, value: row } }
    }
    const picked = ({ value, variables, from, skip, final }: Placeholder): Expr => {
      const over = matches.of(value)
      if (skip === 0) {
        return add(aggregateOf(from === 'first' ? 'min_by' : 'max_by', [over, row], fits(variables)), final)
      }
      const ordered: AggregateExpr = {
        ...aggregateOf('array_agg', [over], fits(variables)),
        orderBy: [{ value: row, descending: from === 'last', nullsFirst: false }],
      }
      const { resolved, args } = callOf('element_at', [add(ordered, final), constantOf(BIGINT, String(skip + 1))])
      return { kind: 'call', type: resolved.resultType, function: resolved, arguments: args }
    }
    const aggregated = (expr: AggregateExpr): Expr => {
      const condition = fits(this.#variablesIn(expr))
      const { filter } = expr
      const base = mapChildren(expr, (child) => matches.of(this.#plain(child).value)) as AggregateExpr
      const both: Expr =
        filter === undefined
          ? condition
          : { kind: 'and', type: BOOLEAN, terms: [condition, matches.of(this.#plain(filter).value)] }
      const inOrder = !eachRow && base.function.orderSensitive && base.orderBy.length === 0
      const orderBy = inOrder ? [{ value: row, descending: false, nullsFirst: false }] : base.orderBy
      return add({ ...base, orderBy, filter: both }, this.#finals.has(expr))
    }
    const finish = (expr: Expr): Expr => {
      if (expr.kind === 'aggregate') return aggregated(expr)
      if (expr.kind !== 'column') return mapChildren(expr, finish)
      const known = this.#placeholders.get(expr.id)
      return known === undefined ? expr : picked(known)
    }
    return {
      columns: measures.map(({ id, name, expr }) => ({ id, name, expression: finish(expr) })),
      aggregates,
      windows,
    }
  }

  #variablesIn(expr: Expr): readonly number[] | undefined {
    let variables: readonly number[] | undefined
    visitColumns(expr, (id) => (variables ??= this.#placeholders.get(id)?.variables))
    return variables
  }
}
