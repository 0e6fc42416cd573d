import { duckdbType } from '../types/duckdb-representation.ts'
import type { SqlType } from '../types/sql-type.ts'
import { EMPTY, joined, sql, type Sql } from '../../duckdb/text/sql.ts'
import { Template, templateParts, type Mark } from '../../duckdb/text/template.ts'
import { bindHeavy } from './bind-heavy.ts'
import type { CallClauses, LambdaArgument, RenderCall, RenderContext, Rendering } from './rendering.ts'

/** Renders a call. Arguments of scalar functions that must not be repeated are computed once. */
export function render(
  rendering: Rendering,
  call: RenderCall,
  types: readonly SqlType[],
  result: SqlType,
  scalar = false,
): Sql {
  const renderWith = (given: RenderCall): Sql => {
    const filled: Filled = { call: given, types, result }
    return rendering instanceof Template ? fillParts(rendering.parts, filled) : rendering(renderContext(filled))
  }
  if (!scalar) return renderWith(call)
  const values = call.args.flatMap((argument) => (argument.kind === 'value' ? [argument.sql] : []))
  return bindHeavy(values, call.names, (bound) => {
    let next = 0
    const args = call.args.map((argument) =>
      argument.kind === 'value' ? { ...argument, sql: bound[next++]! } : argument,
    )
    return renderWith({ ...call, args })
  })
}

/** The values that fill a template. */
interface Filled {
  readonly call: RenderCall
  readonly types: readonly SqlType[]
  readonly result: SqlType
}

function renderContext(filled: Filled): RenderContext {
  const { call, types, result } = filled
  return {
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
    fill: (strings, ...pieces) =>
      joined(
        templateParts(strings).flatMap((parts, i) => {
          const piece = pieces[i]
          const before = fillParts(parts, filled)
          if (piece === undefined) return [before]
          return [before, piece instanceof Template ? fillParts(piece.parts, filled) : piece]
        }),
        '',
      ),
  }
}

function valueOf(call: RenderCall, index: number): Sql {
  const argument = call.args[index]
  if (argument?.kind !== 'value') throw new Error(`Argument ${index} is no value`)
  return argument.sql
}

function fillParts(parts: readonly (Sql | Mark)[], filled: Filled): Sql {
  return joined(
    parts.map((part) => ('kind' in part ? fillMark(part, filled) : part)),
    '',
  )
}

function fillMark(mark: Mark, { call, types, result }: Filled): Sql {
  const clauses = call.clauses ?? {}
  switch (mark.kind) {
    case 'argument':
      return valueOf(call, mark.index)
    case 'argumentType':
      return duckdbType(types[mark.index]!)
    case 'resultType':
      return duckdbType(result)
    case 'distinct':
      return clauses.distinct === true ? sql`DISTINCT ` : EMPTY
    case 'orderBy':
      return clauses.orderBy === undefined ? EMPTY : sql` ORDER BY ${clauses.orderBy}`
    case 'ignoreNulls':
      return clauses.ignoreNulls === true ? sql` IGNORE NULLS` : EMPTY
    // The template's own condition ends with a parenthesis that the template closes, and `$E` ends the whole clause.
    case 'ownFilter':
      return clauses.filter === undefined ? sql` FILTER (WHERE ` : sql` FILTER (WHERE (${clauses.filter}) AND `
    case 'filterAndOver':
      return filterAndOver(clauses)
    case 'over':
      return clauses.over === undefined ? EMPTY : sql` OVER (${clauses.over})`
  }
}

/** Evaluates `body` with `name` bound to `value`, which is computed once. */
export function bindName(name: Sql, value: Sql, body: Sql): Sql {
  return sql`list_transform([${value}], lambda ${name}: ${body})[1]`
}

function filterAndOver(clauses: CallClauses): Sql {
  const filter = clauses.filter === undefined ? EMPTY : sql` FILTER (WHERE ${clauses.filter})`
  return clauses.over === undefined ? filter : sql`${filter} OVER (${clauses.over})`
}
