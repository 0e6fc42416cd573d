import { unreachable } from '../../shared/unreachable.ts'
import type { Expression } from '../syntax/ast.ts'
import type { Identifier } from '../syntax/ast-node.ts'
import type { CompoundStatement, ControlStatement } from '../syntax/ast-routines.ts'
import { canCoerceUnnamed, commonSuperType } from '../types/coercion.ts'
import { BOOLEAN, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { castTo, comparison, constantOf } from './build.ts'
import { errorAt, newId, type AnalysisContext } from './context.ts'
import { nothingFound } from './expression-state.ts'
import { inScope } from './expressions.ts'
import { declaredType, verifyRoutineExpression } from './routine-checks.ts'
import { emptyScope } from './scope.ts'
import type { ColumnId, Expr, LambdaArgumentExpr } from './tree.ts'

/** A parameter or variable; expressions in the function refer to it by its argument. */
export interface Variable {
  readonly name: string
  readonly argument: LambdaArgumentExpr
}

/** The typed steps of a function; variables are identified by the ids of their arguments. */
export type RoutineStep =
  | { readonly kind: 'return'; readonly value: Expr }
  | { readonly kind: 'set'; readonly variable: LambdaArgumentExpr; readonly value: Expr }
  | { readonly kind: 'branch'; readonly arms: readonly Arm[]; readonly otherwise: readonly RoutineStep[] }
  | {
      readonly kind: 'loop'
      readonly label: ColumnId | undefined
      readonly body: readonly RoutineStep[]
      /** The condition before a round: WHILE. */
      readonly while?: Expr
      /** The condition after a round: REPEAT. */
      readonly until?: Expr
    }
  | { readonly kind: 'leave' | 'iterate'; readonly label: ColumnId }

interface Arm {
  readonly when: Expr
  readonly steps: readonly RoutineStep[]
}

interface Names {
  readonly variables: ReadonlyMap<string, LambdaArgumentExpr>
  readonly labels: ReadonlyMap<string, ColumnId>
}

export interface AnalyzedSteps {
  readonly steps: readonly RoutineStep[]
  /** All expressions that the function evaluates. */
  readonly expressions: readonly Expr[]
}

export function analyzeSteps(
  context: AnalysisContext,
  statement: ControlStatement,
  parameters: readonly Variable[],
  returnType: SqlType,
): AnalyzedSteps {
  const body = new RoutineBody(context, returnType)
  const variables = new Map(parameters.map(({ name, argument }) => [name, argument]))
  return { steps: body.stepsOf({ variables, labels: new Map() }, statement), expressions: body.expressions }
}

/** Analyzes the statements of one function into steps. */
class RoutineBody {
  readonly expressions: Expr[] = []
  readonly #context: AnalysisContext
  readonly #returnType: SqlType

  constructor(context: AnalysisContext, returnType: SqlType) {
    this.#context = context
    this.#returnType = returnType
  }

  #analyze(names: Names, node: Expression): Expr {
    verifyRoutineExpression(this.#context, node)
    const found = nothingFound()
    const byName = new Map([...names.variables].map(([name, argument]) => [name.toLowerCase(), argument]))
    const state = inScope(this.#context, emptyScope).within({ lambda: { arguments: byName, outer: undefined }, found })
    const expr = state.analyze(node)
    const wrong = found.aggregates[0] ?? found.windows[0]
    if (wrong !== undefined) {
      throw errorAt(
        this.#context,
        node,
        'GENERIC_INTERNAL_ERROR',
        `${this.#context.print(wrong as Expression)} is not a scalar function`,
      )
    }
    this.expressions.push(expr)
    return expr
  }

  #typed(names: Names, node: Expression, type: SqlType, what: string): Expr {
    const expr = this.#analyze(names, node)
    if (!canCoerceUnnamed(expr.type, type)) {
      const message = `${what} must evaluate to ${typeName(type)} (actual: ${typeName(expr.type)})`
      throw errorAt(this.#context, node, 'TYPE_MISMATCH', message)
    }
    return castTo(expr, type)
  }

  #all(names: Names, nodes: readonly ControlStatement[]): readonly RoutineStep[] {
    return nodes.flatMap((node) => this.stepsOf(names, node))
  }

  #labelled(names: Names, label: Identifier | undefined): { names: Names; label: ColumnId | undefined } {
    if (label === undefined) return { names, label }
    if (names.labels.has(label.value)) {
      const message = `Label already declared in this scope: ${label.value}`
      throw errorAt(this.#context, label, 'ALREADY_EXISTS', message)
    }
    const id = newId(this.#context)
    return { names: { ...names, labels: new Map([...names.labels, [label.value, id]]) }, label: id }
  }

  #block(names: Names, node: CompoundStatement): readonly RoutineStep[] {
    const variables = new Map(names.variables)
    const inner: Names = { ...names, variables }
    const steps: RoutineStep[] = []
    for (const declaration of node.variables) {
      const type = declaredType(this.#context, declaration, declaration.type)
      const { defaultValue } = declaration
      const value =
        defaultValue === undefined ? constantOf(type, null) : this.#typed(inner, defaultValue, type, 'Value of DEFAULT')
      for (const name of declaration.names) {
        if (variables.has(name.value)) {
          const message = `Variable already declared in this scope: ${name.value}`
          throw errorAt(this.#context, name, 'ALREADY_EXISTS', message)
        }
        const variable: LambdaArgumentExpr = { kind: 'lambdaArgument', type, id: newId(this.#context) }
        variables.set(name.value, variable)
        steps.push({ kind: 'set', variable, value })
      }
    }
    return [...steps, ...this.#all(inner, node.statements)]
  }

  stepsOf(names: Names, node: ControlStatement): readonly RoutineStep[] {
    switch (node.kind) {
      case 'ReturnStatement':
        return [{ kind: 'return', value: this.#typed(names, node.value, this.#returnType, 'Value of RETURN') }]
      case 'AssignmentStatement': {
        const name = node.target.value
        const variable = names.variables.get(name)
        if (variable === undefined) {
          throw errorAt(this.#context, node.target, 'NOT_FOUND', `Variable cannot be resolved: ${name}`)
        }
        return [
          { kind: 'set', variable, value: this.#typed(names, node.value, variable.type, `Value of SET '${name}'`) },
        ]
      }
      case 'CompoundStatement':
        return this.#block(names, node)
      case 'IfStatement': {
        const arms = node.branches.map((branch, i): Arm => {
          const what = i === 0 ? 'Condition of IF statement' : 'Condition of ELSEIF clause'
          const when = this.#typed(names, branch.condition, BOOLEAN, what)
          return { when, steps: this.#all(names, branch.statements) }
        })
        return [{ kind: 'branch', arms, otherwise: this.#all(names, node.elseClause ?? []) }]
      }
      case 'CaseStatement': {
        const { operand } = node
        const value = operand && this.#analyze(names, operand)
        const conditions = node.whenClauses.map(({ condition }): Expr => {
          if (value === undefined) return this.#typed(names, condition, BOOLEAN, 'Condition of WHEN clause')
          const wanted = this.#analyze(names, condition)
          if (commonSuperType(value.type, wanted.type) === undefined) {
            const message = `WHEN clause value must evaluate to CASE value type ${typeName(value.type)} (actual: ${typeName(wanted.type)})`
            throw errorAt(this.#context, condition, 'TYPE_MISMATCH', message)
          }
          return comparison('=', value, wanted)
        })
        const arms = node.whenClauses.map((clause, i): Arm => ({
          when: conditions[i]!,
          steps: this.#all(names, clause.statements),
        }))
        return [{ kind: 'branch', arms, otherwise: this.#all(names, node.elseClause ?? []) }]
      }
      case 'WhileStatement': {
        const inner = this.#labelled(names, node.label)
        const condition = this.#typed(inner.names, node.condition, BOOLEAN, 'Condition of WHILE statement')
        return [{ kind: 'loop', label: inner.label, while: condition, body: this.#all(inner.names, node.statements) }]
      }
      case 'RepeatStatement': {
        const inner = this.#labelled(names, node.label)
        const condition = this.#typed(inner.names, node.condition, BOOLEAN, 'Condition of REPEAT statement')
        return [{ kind: 'loop', label: inner.label, until: condition, body: this.#all(inner.names, node.statements) }]
      }
      case 'LoopStatement': {
        const inner = this.#labelled(names, node.label)
        return [{ kind: 'loop', label: inner.label, body: this.#all(inner.names, node.statements) }]
      }
      case 'LeaveStatement':
      case 'IterateStatement': {
        const label = names.labels.get(node.label.value)
        if (label === undefined) {
          throw errorAt(this.#context, node.label, 'NOT_FOUND', `Label not defined: ${node.label.value}`)
        }
        return [{ kind: node.kind === 'LeaveStatement' ? 'leave' : 'iterate', label }]
      }
      default:
        return unreachable(node)
    }
  }
}
