import { duckdbType } from '../types/duckdb-representation.ts'
import type { SqlType } from '../types/sql-type.ts'
import type { CallClauses, LambdaArgument, RenderCall, RenderContext, Rendering } from './rendering.ts'

/** Above this many characters an argument that a template repeats is bound to a name first: nesting would square it. */
const REPEATABLE = 160

/** Renders a call. */
export function render(rendering: Rendering, call: RenderCall, types: readonly SqlType[], result: SqlType): string {
  const context = renderContext(call, types, result)
  return typeof rendering === 'string' ? context.fill(rendering) : rendering(context)
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
  const values = new Map<number, string>()
  const bindings: { readonly name: string; readonly sql: string }[] = []
  const isAggregate = template.includes('$F')
  for (const [position, count] of usesOf(template)) {
    const sql = valueOf(call, position - 1)
    if (count > 1 && sql.length > REPEATABLE && !isAggregate) {
      const name = call.names.fresh()
      bindings.push({ name, sql })
      values.set(position, name)
    } else values.set(position, sql)
  }
  const clauses = call.clauses ?? {}
  const filled = template.replaceAll(PLACEHOLDER, (_match, typeAt, at, ownFilter, mark) => {
    if (typeAt !== undefined) return duckdbType(types[Number(typeAt) - 1]!)
    if (at !== undefined) return values.get(Number(at))!
    if (mark === 'R') return duckdbType(result)
    if (mark === 'D') return clauses.distinct === true ? 'DISTINCT ' : ''
    if (mark === 'O') return clauses.orderBy === undefined ? '' : ` ORDER BY ${clauses.orderBy}`
    if (mark === 'N') return clauses.ignoreNulls === true ? ' IGNORE NULLS' : ''
    // The condition of the template's own ends with the parenthesis that the template closes, and `$E` ends all.
    if (ownFilter !== undefined)
      return ` FILTER (WHERE ${clauses.filter === undefined ? '' : `(${clauses.filter}) AND `}`
    return filterAndOver(clauses)
  })
  const whole = filled.replaceAll('$E', clauses.over === undefined ? '' : ` OVER (${clauses.over})`)
  return bindings.reduceRight((body, { name, sql }) => bindName(name, sql, body), whole)
}

/** The value of `body` with `name` standing for the value of `sql`, computed once. */
export function bindName(name: string, sql: string, body: string): string {
  return `list_transform([${sql}], lambda ${name}: ${body})[1]`
}

function filterAndOver(clauses: CallClauses): string {
  const filter = clauses.filter === undefined ? '' : ` FILTER (WHERE ${clauses.filter})`
  return clauses.over === undefined ? filter : `${filter} OVER (${clauses.over})`
}

const uses = new Map<string, ReadonlyMap<number, number>>()

/** How often a template names each argument. */
function usesOf(template: string): ReadonlyMap<number, number> {
  let counts = uses.get(template)
  if (counts === undefined) {
    const counted = new Map<number, number>()
    for (const [, at] of template.matchAll(/\$(\d+)/g)) counted.set(Number(at), (counted.get(Number(at)) ?? 0) + 1)
    counts = counted
    uses.set(template, counts)
  }
  return counts
}
