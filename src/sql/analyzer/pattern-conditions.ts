import {
  aggregateNames,
  type AggregateName,
  type ColumnKind,
  type ConditionCode,
  type MatchedRow,
} from '../../duckdb/scripts/pattern-conditions.ts'
import type { Expression, FunctionCall } from '../syntax/ast.ts'
import type { PatternRecognitionRelation } from '../syntax/ast-patterns.ts'
import { BIGINT, BOOLEAN, isInteger, VARCHAR, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { aggregateOf, columnOf, constantOf } from './build.ts'
import { errorAt, newId, type AnalysisContext, type ExpressionState } from './context.ts'
import { analyzeExpression } from './expressions.ts'
import { verifyPatternCall } from './pattern-checks.ts'
import type { Labels } from './pattern-labels.ts'
import { offsetOf, type PatternRows, type Recognition } from './pattern-rows.ts'
import { uncorrelated, type Field, type Scope } from './scope.ts'
import { asInList } from './literal-arrays.ts'
import type { AggregateExpr, ColumnId, Expr } from './tree.ts'
import { childrenOfExpr, mapChildren } from './walk.ts'
import { Signal } from '../../shared/quipu-error.ts'

/** A reference in a condition: a value of a row matched so far. */
interface Placeholder {
  readonly at: MatchedRow
  readonly value: Expr
}

/** A condition on a single row, or a condition that needs earlier matched rows. */
export type Condition =
  | { readonly of: 'row'; readonly expr: Expr }
  | { readonly of: 'match'; readonly code: ConditionCode }

/** Values of single rows that conditions combine: computed for every row, as texts. */
export interface ConditionColumn {
  readonly kind: ColumnKind
  readonly value: Expr
}

class Refused extends Signal {}

const bits = { tinyint: 8, smallint: 16, integer: 32, bigint: 64 } as const

/**
 * The conditions of DEFINE. Parts that read a single row become columns of the rows. Comparisons and arithmetic across
 * rows become code for the matcher, which knows the rows matched so far.
 */
export class PatternConditions {
  /** Shared by the conditions of one DEFINE. */
  readonly columns: ConditionColumn[]
  private readonly placeholders = new Map<ColumnId, Placeholder>()
  private readonly classifiers = new Map<ColumnId, MatchedRow>()
  private readonly matchNumber: ColumnId
  private readonly byLabel: { readonly labels: Labels; readonly own: number }
  private readonly context: AnalysisContext
  private readonly scope: Scope
  private readonly rows: PatternRows

  constructor({ context, labels, input, scope, rows }: Recognition, own: number, columns: ConditionColumn[]) {
    this.columns = columns
    this.byLabel = { labels, own }
    this.rows = rows
    this.matchNumber = newId(context)
    this.context = { ...context, patternCall: (state, node) => this.call(state, node) }
    const of = (relation: readonly string[] | undefined, variables: readonly number[] | null): Field[] =>
      input.fields.map((field) => ({
        ...field,
        relation,
        qualified: relation !== undefined,
        shows: field.shows ?? field.column,
        column: this.placeholder(this.last(variables), columnOf(field.column, field.type)),
      }))
    const fields = [
      ...of(undefined, null),
      ...[...labels.names].flatMap(([name, variables]) => of([name.toLowerCase()], variables)),
    ]
    this.scope = { fields, parent: scope, boundary: false, refused: uncorrelated }
  }

  analyze({ expression }: PatternRecognitionRelation['variableDefinitions'][number]): Condition {
    const { expr } = analyzeExpression(this.context, expression, this.scope)
    if (expr.type.kind !== 'boolean') {
      throw errorAt(
        this.context,
        expression,
        'TYPE_MISMATCH',
        `Expression defining a label must be boolean (actual type: ${typeName(expr.type)})`,
      )
    }
    const condition = expr
    const { rows, dynamic } = this.uses(condition)
    if (!dynamic && rows.every(({ from }) => from === 'current')) return { of: 'row', expr: this.plain(condition) }
    try {
      return { of: 'match', code: this.code(condition) }
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (this.context.unplanned === true) return { of: 'row', expr: constantOf(BOOLEAN, true) }
      throw this.notSupported(expression, error.message)
    }
  }

  private notSupported(node: Expression, what: string): Error {
    const message = `Conditions of a row pattern that combine values of several rows by ${what} are not supported`
    return errorAt(this.context, node, 'NOT_SUPPORTED', message)
  }

  /** The last row matched to the variables; the current row if it would be matched to one of them. */
  private last(variables: readonly number[] | null): MatchedRow {
    const current = variables === null || variables.includes(this.byLabel.own)
    return { from: current ? 'current' : 'last', variables, skip: 0, move: 0 }
  }

  private placeholder(at: MatchedRow, value: Expr): ColumnId {
    const id = newId(this.context)
    this.placeholders.set(id, { at, value })
    return id
  }

  private call(state: ExpressionState, node: FunctionCall): Expr | undefined {
    verifyPatternCall(this.context, this.byLabel.labels, node, true)
    const name = node.name.parts.at(-1)!.value.toLowerCase()
    const [argument] = node.arguments
    if (name === 'match_number') return columnOf(this.matchNumber, BIGINT)
    if (name === 'classifier') {
      const variables = argument?.kind === 'Identifier' ? this.byLabel.labels.variablesOf(argument) : null
      return this.classifier(this.last(variables))
    }
    if (argument === undefined) return undefined
    if (name === 'count' && argument.kind === 'LabelDereference') {
      const variables = this.byLabel.labels.variablesOf(argument.label)
      const id = this.placeholder(this.last(variables), constantOf(BOOLEAN, true))
      return aggregateOf('count', [columnOf(id, BOOLEAN)], undefined)
    }
    if (name !== 'first' && name !== 'last' && name !== 'prev' && name !== 'next') return undefined
    const inner = state.analyze(argument)
    const physical = name === 'prev' || name === 'next'
    const offset = offsetOf(state, node, physical ? 1 : 0)
    const classified = inner.kind === 'column' ? this.classifiers.get(inner.id) : undefined
    if (classified !== undefined) {
      if (physical) return this.classifier({ ...classified, move: name === 'prev' ? -offset : offset })
      return this.classifier(this.navigated(name, classified.variables, offset))
    }
    const { rows, dynamic } = this.uses(inner)
    if (dynamic) throw this.notSupported(node, 'navigation')
    const at = rows[0] ?? this.last(null)
    const value = this.plain(inner)
    if (!physical) return columnOf(this.placeholder(this.navigated(name, at.variables, offset), value), value.type)
    const moved = this.rows.navigation(name, value, offset)
    return columnOf(this.placeholder(at, moved), moved.type)
  }

  private navigated(from: 'first' | 'last', variables: readonly number[] | null, skip: number): MatchedRow {
    return from === 'last' && skip === 0 ? this.last(variables) : { from, variables, skip, move: 0 }
  }

  private classifier(at: MatchedRow): Expr {
    const id = newId(this.context)
    this.classifiers.set(id, at)
    return columnOf(id, VARCHAR)
  }

  /** The rows that an expression reads, and whether it is more than values of them. */
  private uses(expr: Expr): { readonly rows: readonly MatchedRow[]; readonly dynamic: boolean } {
    const rows = new Map<string, MatchedRow>()
    let dynamic = false
    const visit = (part: Expr): void => {
      if (part.kind === 'aggregate') dynamic = true
      if (part.kind === 'column') {
        if (this.classifiers.has(part.id) || part.id === this.matchNumber) dynamic = true
        const known = this.placeholders.get(part.id)
        // The current row counts as one row, regardless of the variable.
        if (known !== undefined) rows.set(known.at.from === 'current' ? '' : JSON.stringify(known.at), known.at)
      }
      childrenOfExpr(part).forEach(visit)
    }
    visit(expr)
    return { rows: [...rows.values()], dynamic }
  }

  private plain(expr: Expr): Expr {
    const known = expr.kind === 'column' ? this.placeholders.get(expr.id) : undefined
    return known?.value ?? mapChildren(expr, (child) => this.plain(child))
  }

  /** The expression with NULL for every reference, for the case that no row matches. */
  private absent(expr: Expr): Expr {
    const known = expr.kind === 'column' ? this.placeholders.get(expr.id) : undefined
    return known === undefined ? mapChildren(expr, (child) => this.absent(child)) : constantOf(known.value.type, null)
  }

  private column(value: Expr): number {
    return this.columns.push({ kind: kindOf(value.type), value }) - 1
  }

  private code(expr: Expr): ConditionCode {
    const { rows, dynamic } = this.uses(expr)
    if (!dynamic && rows.length <= 1) {
      const at = rows[0] ?? this.last(null)
      const column = this.column(this.plain(expr))
      if (at.from === 'current' || expr.kind === 'column') return { is: 'value', column, at }
      return { is: 'value', column, at, absent: this.column(this.absent(expr)) }
    }
    const all = (terms: readonly Expr[]): readonly ConditionCode[] => terms.map((term) => this.code(term))
    switch (expr.kind) {
      case 'column': {
        if (expr.id === this.matchNumber) return { is: 'match number' }
        return { is: 'classifier', at: this.classifiers.get(expr.id)! }
      }
      case 'aggregate':
        return this.aggregate(expr)
      case 'and':
      case 'or':
        return { is: expr.kind, terms: all(expr.terms) }
      case 'coalesce':
        return { is: 'coalesce', terms: all(expr.operands) }
      case 'not':
        return { is: 'not', value: this.code(expr.value) }
      case 'isNull':
        return { is: 'is null', value: this.code(expr.value) }
      case 'negate':
        return { is: 'negate', value: this.code(expr.value) }
      case 'compare':
        kindOf(expr.left.type)
        return { is: 'compare', operator: expr.operator, left: this.code(expr.left), right: this.code(expr.right) }
      case 'between': {
        const value = this.code(expr.value)
        return {
          is: 'and',
          terms: [
            { is: 'compare', operator: '>=', left: value, right: this.code(expr.min) },
            { is: 'compare', operator: '<=', left: value, right: this.code(expr.max) },
          ],
        }
      }
      case 'inList': {
        const left = this.code(expr.value)
        return { is: 'or', terms: all(expr.values).map((right) => ({ is: 'compare', operator: '=', left, right })) }
      }
      case 'inLiterals':
        return this.code(asInList(expr))
      case 'case':
        return {
          is: 'case',
          branches: expr.branches.map(({ when, then }) => ({ when: this.code(when), then: this.code(then) })),
          otherwise: expr.otherwise === undefined ? null : this.code(expr.otherwise),
        }
      case 'cast':
        return this.cast(expr.value, expr.type)
      case 'operator':
        return this.arithmetic(expr)
      case 'call': {
        const [argument] = expr.arguments
        if (expr.function.name !== 'abs' || argument === undefined) throw new Refused(expr.function.name)
        return { is: 'abs', value: this.code(argument) }
      }
      default:
        throw new Refused(expr.kind)
    }
  }

  private cast(value: Expr, type: SqlType): ConditionCode {
    const from = value.type
    const inner = this.code(value)
    if (from.kind === 'varchar' && type.kind === 'varchar' && type.length === undefined) return inner
    if (isInteger(from) && isInteger(type) && bits[from.kind as 'bigint'] <= bits[type.kind as 'bigint']) return inner
    if (type.kind === 'double' && (isInteger(from) || from.kind === 'real')) return { is: 'to double', value: inner }
    if (type.kind === 'double' && from.kind === 'decimal') return { is: 'to double', value: inner, scale: from.scale }
    if (type.kind === 'decimal' && (isInteger(from) || (from.kind === 'decimal' && from.scale <= type.scale))) {
      return { is: 'rescale', value: inner, by: type.scale - (from.kind === 'decimal' ? from.scale : 0) }
    }
    throw new Refused(`a cast from ${typeName(from)} to ${typeName(type)}`)
  }

  private arithmetic(expr: Extract<Expr, { kind: 'operator' }>): ConditionCode {
    const { name, type, left, right } = expr
    const shown = typeName(type)
    const refused = new Refused(`${name} of ${typeName(left.type)}`)
    if (name !== '+' && name !== '-' && name !== '*' && name !== '/' && name !== '%') throw refused
    const operands = { left: this.code(left), right: this.code(right) }
    if (type.kind === 'double') return { is: 'arithmetic', operator: name, ...operands, typeName: shown }
    if (isInteger(type)) {
      return { is: 'arithmetic', operator: name, ...operands, bits: bits[type.kind as 'bigint'], typeName: shown }
    }
    if (type.kind !== 'decimal' || left.type.kind !== 'decimal' || right.type.kind !== 'decimal') throw refused
    if (name === '/' || name === '%') throw refused
    const scaled = (value: ConditionCode, scale: number): ConditionCode =>
      name === '*' ? value : { is: 'rescale', value, by: type.scale - scale }
    return {
      is: 'arithmetic',
      operator: name,
      left: scaled(operands.left, left.type.scale),
      right: scaled(operands.right, right.type.scale),
      digits: 38,
      typeName: shown,
    }
  }

  private aggregate({ function: called, arguments: args, type }: AggregateExpr): ConditionCode {
    const name = aggregateNames.find((each) => each === called.name)
    if (name === undefined || !isKnown(name, type)) throw new Refused(called.name)
    const { rows, dynamic } = args.reduce(
      (found, argument) => {
        const uses = this.uses(argument)
        return { rows: [...found.rows, ...uses.rows], dynamic: found.dynamic || uses.dynamic }
      },
      { rows: [] as readonly MatchedRow[], dynamic: false },
    )
    if (dynamic) throw new Refused(called.name)
    return {
      is: 'aggregate',
      name,
      of: rows[0]?.variables ?? null,
      columns: args.map((argument) => this.column(this.plain(argument))),
      ...(type.kind === 'decimal' ? { scale: type.scale } : {}),
    }
  }
}

function isKnown(name: AggregateName, type: SqlType): boolean {
  return name !== 'sum' && name !== 'avg'
    ? true
    : type.kind === 'bigint' || type.kind === 'double' || type.kind === 'decimal'
}

function kindOf(type: SqlType): ColumnKind {
  if (isInteger(type)) return 'integer'
  switch (type.kind) {
    case 'decimal':
    case 'double':
    case 'boolean':
      return type.kind
    case 'real':
      return 'double'
    case 'unknown':
    case 'varchar':
    case 'date':
    case 'timestamp':
      return 'text'
    default:
      throw new Refused(`values of type ${typeName(type)}`)
  }
}
