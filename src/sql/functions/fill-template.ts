import { bindHeavy } from './bind-heavy.ts'
import { duckdbType } from '../types/duckdb-representation.ts'
import type { SqlType } from '../types/sql-type.ts'
import type { CallClauses, LambdaArgument, RenderCall, RenderContext, Rendering } from './rendering.ts'

/** Renders a call. Arguments of scalar functions that must not be repeated are computed once. */
export function render(
  rendering: Rendering,
  call: RenderCall,
  types: readonly SqlType[],
  result: SqlType,
  scalar = false,
): string {
  const renderWith = (given: RenderCall): string => {
    const context = renderContext(given, types, result)
    return typeof rendering === 'string' ? context.fill(rendering) : rendering(context)
  }
  if (!scalar) return renderWith(call)
  const values = call.args.flatMap((argument) => (argument.kind === 'value' ? [argument.sql] : []))
  return bindHeavy(values, call.names, (bound) => {
    const left = [...bound]
    const args = call.args.map((argument) =>
      argument.kind === 'value' ? { ...argument, sql: left.shift()! } : argument,
    )
    return renderWith({ ...call, args })
  })
}

function renderContext(call: RenderCall, types: readonly SqlType[], result: SqlType): RenderContext {
  const context: RenderContext = {
    ...call,
    types,
    result,
    value: (index) => valueOf(call, index),
    lambda(index): LambdaArgument {
      const argument = call.args[index]
      if (argument?.kind !== 'lambda') throw new Error(`Argument ${index} is no lambda`)
      return argument
    },
    constant(index) {
      const argument = call.args[index]
      return argument?.kind === 'value' ? argument.constant : undefined
    },
    fill: (template) => fillTemplate(template, call, types, result),
  }
  return context
}

function valueOf(call: RenderCall, index: number): string {
  const argument = call.args[index]
  if (argument?.kind !== 'value') throw new Error(`Argument ${index} is no value`)
  return argument.sql
}

const PLACEHOLDER = /\$(?:T(\d+)|(\d+)|F(\()?|([RDON]))/g

function fillTemplate(template: string, call: RenderCall, types: readonly SqlType[], result: SqlType): string {
  const clauses = call.clauses ?? {}
  const filled = template.replaceAll(PLACEHOLDER, (_match, typeAt, at, ownFilter, mark) => {
    if (typeAt !== undefined) return duckdbType(types[Number(typeAt) - 1]!)
    if (at !== undefined) return valueOf(call, Number(at) - 1)
    if (mark === 'R') return duckdbType(result)
    if (mark === 'D') return clauses.distinct === true ? 'DISTINCT ' : ''
    if (mark === 'O') return clauses.orderBy === undefined ? '' : ` ORDER BY ${clauses.orderBy}`
    if (mark === 'N') return clauses.ignoreNulls === true ? ' IGNORE NULLS' : ''
    // The condition of the template's own ends with the parenthesis that the template closes, and `$E` ends all.
    if (ownFilter !== undefined)
      return ` FILTER (WHERE ${clauses.filter === undefined ? '' : `(${clauses.filter}) AND `}`
    return filterAndOver(clauses)
  })
  return filled.replaceAll('$E', clauses.over === undefined ? '' : ` OVER (${clauses.over})`)
}

/** The value of `body` with `name` standing for the value of `sql`, computed once. */
export function bindName(name: string, sql: string, body: string): string {
  return `list_transform([${sql}], lambda ${name}: ${body})[1]`
}

function filterAndOver(clauses: CallClauses): string {
  const filter = clauses.filter === undefined ? '' : ` FILTER (WHERE ${clauses.filter})`
  return clauses.over === undefined ? filter : `${filter} OVER (${clauses.over})`
}
