import { createSqlFrontEnd, type FrontEndOptions } from '../sql/create-front-end.ts'
import type { BindInput, BoundStatement, FrontEndTimes, SqlFrontEnd } from '../sql/front-end.ts'
import type { ParsedStatement } from '../sql/parsed-statement.ts'
import { asStatementError } from '../sql/planning-limits.ts'
import { mapQueries, type PlannedStatement } from './planned-statement.ts'
import { renderBoundQuery } from './render-bound-query.ts'

/** Makes texts for the engine of a client's statement. Both calls work within one limit of CPU time. */
export interface StatementPlanner extends Pick<SqlFrontEnd, 'parse'> {
  /** Binds a statement (see `SqlFrontEnd`), plans its queries and renders them. */
  plan(parsed: ParsedStatement, input: Omit<BindInput, 'budget'>): Promise<PlannedStatement>
}

export function createStatementPlanner(options: FrontEndOptions = {}): StatementPlanner {
  const frontEnd = createSqlFrontEnd(options)
  return {
    parse: (text, session) => frontEnd.parse(text, session),
    async plan(parsed, { session, metadata, onTimes }) {
      const budget = frontEnd.budgetOf(parsed, session)
      let times: FrontEndTimes | undefined
      const bound = await frontEnd.bind(parsed, {
        session,
        metadata,
        budget,
        onTimes: (boundIn) => onTimes?.((times = boundIn)),
      })
      const start = performance.now()
      const planned = renderedWithin(budget, bound)
      if (times && isOfQuery(bound)) onTimes?.({ ...times, renderMs: performance.now() - start })
      return planned
    },
  }
}

function renderedWithin(budget: BindInput['budget'], bound: BoundStatement): PlannedStatement {
  try {
    return budget.run(() => mapQueries(bound, renderBoundQuery))
  } catch (error) {
    throw asStatementError(error)
  }
}

/** Whether the statement is a query, or explains one. */
function isOfQuery(bound: BoundStatement): boolean {
  return bound.kind === 'explain' ? isOfQuery(bound.statement) : bound.kind === 'query'
}
