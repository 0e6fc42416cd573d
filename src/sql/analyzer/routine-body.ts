import { unreachable } from '../../shared/unreachable.ts'
import { resolveFunction } from '../functions/resolve-function.ts'
import { anonymousRow, array, BIGINT, BOOLEAN, INTEGER, VARCHAR, type SqlType } from '../types/sql-type.ts'
import { castTo, constantOf } from './build.ts'
import { newId, type AnalysisContext } from './context.ts'
import type { RoutineStep } from './routine-steps.ts'
import type { ColumnId, Expr, LambdaArgumentExpr, LambdaExpr } from './tree.ts'
import { mapChildren, someExpr } from './walk.ts'

/** A loop becomes nested folds, with at most ROUNDS ^ LEVELS iterations; loops with few iterations stay cheap. */
const ROUNDS = 40
const LEVELS = 3

/** The maximum depth of nested names for values: DuckDB binds expressions inside lambdas again and again. */
const MAX_NAMES = 3

const NORMAL = 0
const RETURNED = 1
/** A loop ended by its condition. */
const ENDED = 2

/** The values of variables; they are light and may be repeated. */
type Values = ReadonlyMap<ColumnId, Expr>

type Loop = Extract<RoutineStep, { readonly kind: 'loop' }>

/**
 * The result of a part of a function, as one row: the variables it sets, the value it returned, and how it ended
 * (NORMAL, RETURNED, or the number of a jump).
 */
interface Outcome {
  readonly variables: readonly LambdaArgumentExpr[]
  readonly type: SqlType
}

/**
 * Turns a function's body into one expression. Assignments bind values to names, branches become CASE. A loop becomes a
 * fold that carries the variables the loop sets, and does nothing once the loop has ended.
 */
export function routineBody(
  context: AnalysisContext,
  parameters: readonly LambdaArgumentExpr[],
  returnType: SqlType,
  steps: readonly RoutineStep[],
): Expr {
  const body = new RoutineBody(context, returnType)
  const values: Values = new Map(parameters.map((each) => [each.id, each]))
  return body.direct(steps, values, MAX_NAMES) ?? body.result(steps, values)
}

type SetStep = Extract<RoutineStep, { readonly kind: 'set' }>

/** Steps that are rendered together: assignments that do not depend on each other, or one other step. */
type Group =
  | { readonly kind: 'sets'; readonly sets: readonly SetStep[] }
  | Exclude<RoutineStep, { readonly kind: 'set' }>

class RoutineBody {
  private readonly context: AnalysisContext
  private readonly returnType: SqlType

  constructor(context: AnalysisContext, returnType: SqlType) {
    this.context = context
    this.returnType = returnType
  }

  /** The value that the steps return, for functions of a few steps without loops; undefined for other functions. */
  direct(steps: readonly RoutineStep[], values: Values, names: number): Expr | undefined {
    const [step, ...rest] = steps
    if (step === undefined) return undefined
    switch (step.kind) {
      case 'return':
        return valued(step.value, values)
      case 'set': {
        const value = valued(step.value, values)
        const next = (known: Expr): Values => new Map([...values, [step.variable.id, known]])
        if (value.kind === 'constant' || value.kind === 'lambdaArgument') return this.direct(rest, next(value), names)
        if (names === 0) return undefined
        const name = this.argument(value.type)
        const body = this.direct(rest, next(name), names - 1)
        return body && named(name, value, body)
      }
      case 'branch': {
        if (armsOf(step).filter((arm) => !alwaysReturns(arm)).length > 1) return undefined
        const arms = armsOf(step).map((arm) => this.direct([...arm, ...rest], values, names))
        if (arms.includes(undefined)) return undefined
        return {
          kind: 'case',
          type: this.returnType,
          branches: step.arms.map(({ when }, i) => ({ when: valued(when, values), then: arms[i]! })),
          otherwise: arms.at(-1),
        }
      }
      case 'loop':
      case 'leave':
      case 'iterate':
        return undefined
      default:
        return unreachable(step)
    }
  }

  /** The value that the steps return. */
  result(steps: readonly RoutineStep[], values: Values): Expr {
    const variables = [...new Map(assigned(steps).map((variable) => [variable.id, variable])).values()]
    const type = anonymousRow([...variables.map((variable) => variable.type), this.returnType, INTEGER])
    const outcome: Outcome = { variables, type }
    return this.over(this.outcome(steps, values, outcome), (left) => field(left, this.returnType, variables.length))
  }

  /**
   * The outcome of the steps. Each step contains the outcome of the steps before it, and not the reverse: nested names
   * make DuckDB slow.
   */
  private outcome(steps: readonly RoutineStep[], values: Values, outcome: Outcome): Expr {
    let state: Expr | undefined
    let mayHaveEnded = false
    for (const group of groupsOf(steps)) {
      if (state === undefined) state = this.taken(group, values, outcome)
      else {
        const guarded = mayHaveEnded
        state = this.over(state, (left) => {
          const next = this.taken(group, this.withOutcome(values, outcome, left), outcome)
          return guarded ? either(isCode(this.code(outcome, left), NORMAL), next, left) : next
        })
      }
      mayHaveEnded ||= group.kind !== 'sets' && escapes([group])
    }
    return state ?? this.pack(outcome, values, undefined, code(NORMAL))
  }

  private taken(group: Group, values: Values, outcome: Outcome): Expr {
    switch (group.kind) {
      case 'sets': {
        const set = group.sets.map(({ variable, value }) => [variable.id, valued(value, values)] as const)
        return this.pack(outcome, new Map([...values, ...set]), undefined, code(NORMAL))
      }
      case 'return':
        return this.pack(outcome, values, valued(group.value, values), code(RETURNED))
      case 'leave':
      case 'iterate':
        return this.pack(outcome, values, undefined, code(jump(group.kind, group.label)))
      case 'branch':
        return this.cases(group, values, outcome.type, (arm) => this.outcome(arm, values, outcome))
      case 'loop':
        return this.loop(group, values, outcome)
      default:
        return unreachable(group)
    }
  }

  private cases(
    step: Extract<RoutineStep, { readonly kind: 'branch' }>,
    values: Values,
    type: SqlType,
    arm: (steps: readonly RoutineStep[]) => Expr,
  ): Expr {
    return {
      kind: 'case',
      type,
      branches: step.arms.map(({ when, steps }) => ({ when: valued(when, values), then: arm(steps) })),
      otherwise: arm(step.otherwise),
    }
  }

  private loop(step: Loop, values: Values, outcome: Outcome): Expr {
    const round = (state: Expr): Expr => {
      const now = this.withOutcome(values, outcome, state)
      const after = this.over(this.outcome(step.body, now, outcome), (left) =>
        this.afterRound(step, values, outcome, left),
      )
      if (step.while === undefined) return after
      return either(valued(step.while, now), after, this.pack(outcome, now, undefined, code(ENDED)))
    }
    const start = this.pack(outcome, values, undefined, code(NORMAL))
    return this.over(this.rounds(LEVELS, start, outcome, round), (end) => {
      const at = this.code(outcome, end)
      const tooLong: Expr = {
        kind: 'engineCall',
        type: outcome.type,
        name: 'u_raise',
        arguments: [constantOf(VARCHAR, 'EXCEEDED_TIME_LIMIT: Loop of a function goes on for too long')],
      }
      const normal = this.pack(outcome, this.withOutcome(values, outcome, end), undefined, code(NORMAL))
      const over: Expr[] = [isCode(at, ENDED)]
      if (step.label !== undefined) over.push(isCode(at, jump('leave', step.label)))
      return {
        kind: 'case',
        type: outcome.type,
        branches: [
          { when: isCode(at, NORMAL), then: castTo(tooLong, outcome.type) },
          { when: over.length === 1 ? over[0]! : { kind: 'or', type: BOOLEAN, terms: over }, then: normal },
        ],
        otherwise: end,
      }
    })
  }

  /** ITERATE continues with the next round; the condition of REPEAT is evaluated after a round that ended normally. */
  private afterRound(step: Loop, values: Values, outcome: Outcome, left: Expr): Expr {
    const now = this.withOutcome(values, outcome, left)
    const at = this.code(outcome, left)
    const branches: { when: Expr; then: Expr }[] = []
    if (step.until !== undefined) {
      const ended = this.pack(outcome, now, undefined, code(ENDED))
      branches.push({ when: isCode(at, NORMAL), then: either(valued(step.until, now), ended, left) })
    }
    if (step.label !== undefined) {
      const again = this.pack(outcome, now, undefined, code(NORMAL))
      branches.push({ when: isCode(at, jump('iterate', step.label)), then: again })
    }
    return branches.length === 0 ? left : { kind: 'case', type: outcome.type, branches, otherwise: left }
  }

  /** Runs rounds until one does not end normally. The folds are nested so that few rounds stay cheap. */
  private rounds(level: number, state: Expr, outcome: Outcome, round: (state: Expr) => Expr): Expr {
    const goOn = (body: (state: Expr) => Expr): Expr =>
      this.over(state, (now) => either(isCode(this.code(outcome, now), NORMAL), body(now), now))
    if (level === 0) return goOn(round)
    return goOn((start) => this.fold(start, outcome, (now) => this.rounds(level - 1, now, outcome, round)))
  }

  private fold(start: Expr, { type }: Outcome, step: (state: Expr) => Expr): Expr {
    const items: Expr = {
      kind: 'engineCall',
      type: array(BIGINT),
      name: 'range',
      arguments: [constantOf(BIGINT, String(ROUNDS))],
    }
    const [state, item, end] = [this.argument(type), this.argument(BIGINT), this.argument(type)]
    const body = step(state)
    const resolved = resolveFunction('reduce', [
      { kind: 'value', type: items.type },
      { kind: 'value', type },
      { kind: 'lambda', parameterCount: 2, bodyType: () => type },
      { kind: 'lambda', parameterCount: 1, bodyType: () => type },
    ])
    const lambda = (index: number, parameters: readonly LambdaArgumentExpr[], value: Expr): LambdaExpr => ({
      kind: 'lambda',
      type: resolved.argumentTypes[index]!,
      parameters,
      body: value,
    })
    return {
      kind: 'call',
      type,
      function: resolved,
      arguments: [items, start, lambda(2, [state, item], body), lambda(3, [end], end)],
    }
  }

  private argument(type: SqlType): LambdaArgumentExpr {
    return { kind: 'lambdaArgument', type, id: newId(this.context) }
  }

  /** Applies `body` to a value that is computed once, before the body. */
  private over(value: Expr, body: (value: Expr) => Expr): Expr {
    if (value.kind === 'lambdaArgument') return body(value)
    const name = this.argument(value.type)
    return named(name, value, body(name))
  }

  private pack(outcome: Outcome, values: Values, returned: Expr | undefined, ended: Expr): Expr {
    const items = [
      ...outcome.variables.map(({ id, type }) => values.get(id) ?? constantOf(type, null)),
      returned ?? constantOf(this.returnType, null),
      ended,
    ]
    return { kind: 'row', type: outcome.type, items }
  }

  private withOutcome(values: Values, outcome: Outcome, left: Expr): Values {
    return new Map([...values, ...outcome.variables.map(({ id, type }, i) => [id, field(left, type, i)] as const)])
  }

  private code(outcome: Outcome, left: Expr): Expr {
    return field(left, INTEGER, outcome.variables.length + 1)
  }
}

function named(name: LambdaArgumentExpr, value: Expr, body: Expr): Expr {
  return { kind: 'let', type: body.type, name, value, body, strict: true }
}

/** Groups the steps up to a return or jump; steps after it are unreachable. */
function groupsOf(steps: readonly RoutineStep[]): readonly Group[] {
  const groups: Group[] = []
  let sets: SetStep[] = []
  const flush = (): void => {
    if (sets.length > 0) groups.push({ kind: 'sets', sets })
    sets = []
  }
  for (const step of steps) {
    if (step.kind !== 'set') {
      flush()
      groups.push(step)
      if (alwaysReturns([step])) break
      continue
    }
    const ids = new Set(sets.map(({ variable }) => variable.id))
    const depends = (expr: Expr): boolean => expr.kind === 'lambdaArgument' && ids.has(expr.id)
    if (ids.has(step.variable.id) || someExpr(step.value, depends)) flush()
    sets.push(step)
  }
  flush()
  return groups
}

function field(base: Expr, type: SqlType, index: number): Expr {
  return { kind: 'field', type, base, index }
}

function code(value: number): Expr {
  return constantOf(INTEGER, String(value))
}

/** The code of a jump: each label has two, for LEAVE and ITERATE. */
function jump(kind: 'leave' | 'iterate', label: ColumnId): number {
  return ENDED + 1 + 2 * label + (kind === 'leave' ? 0 : 1)
}

function isCode(value: Expr, wanted: number): Expr {
  return { kind: 'compare', type: BOOLEAN, operator: '=', left: value, right: code(wanted) }
}

function either(when: Expr, then: Expr, otherwise: Expr): Expr {
  return { kind: 'case', type: then.type, branches: [{ when, then }], otherwise }
}

/** The expression with variables replaced by their values. */
function valued(expr: Expr, values: Values): Expr {
  if (expr.kind === 'lambdaArgument') return values.get(expr.id) ?? expr
  return mapChildren(expr, (child) => valued(child, values))
}

function armsOf(step: Extract<RoutineStep, { readonly kind: 'branch' }>): readonly (readonly RoutineStep[])[] {
  return [...step.arms.map(({ steps }) => steps), step.otherwise]
}

function alwaysReturns(steps: readonly RoutineStep[]): boolean {
  return steps.some((step) => {
    if (step.kind === 'branch') return armsOf(step).every(alwaysReturns)
    return step.kind === 'return' || step.kind === 'leave' || step.kind === 'iterate'
  })
}

function assigned(steps: readonly RoutineStep[]): readonly LambdaArgumentExpr[] {
  return steps.flatMap((step) => {
    if (step.kind === 'set') return [step.variable]
    if (step.kind === 'branch') return armsOf(step).flatMap(assigned)
    return step.kind === 'loop' ? assigned(step.body) : []
  })
}

/** Whether the steps may return, or jump to a label outside of them. */
function escapes(steps: readonly RoutineStep[], inside: readonly ColumnId[] = []): boolean {
  return steps.some((step) => {
    switch (step.kind) {
      case 'return':
        return true
      case 'leave':
      case 'iterate':
        return !inside.includes(step.label)
      case 'set':
        return false
      case 'branch':
        return armsOf(step).some((arm) => escapes(arm, inside))
      case 'loop':
        return escapes(step.body, step.label === undefined ? inside : [...inside, step.label])
      default:
        return unreachable(step)
    }
  })
}
