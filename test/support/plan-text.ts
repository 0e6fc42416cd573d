import type { ThreadedFrontEnd } from '../../src/coordinator/front-end-threads/threaded-front-end.ts'
import type { PlannedStatement } from '../../src/planner/planned-statement.ts'
import type { StatementPlanner } from '../../src/planner/statement-planner.ts'
import type { MetadataPort, SessionContext } from '../../src/sql/front-end.ts'
import { StatementText } from '../../src/sql/parsed-statement.ts'

/** Parses a text, binds it and renders its queries. */
export async function planText(
  planner: StatementPlanner,
  sql: string,
  session: SessionContext,
  metadata: MetadataPort,
): Promise<PlannedStatement> {
  return planner.plan(planner.parse(textOf(sql, session), session), { session, metadata })
}

/** The text as the client sent it, with its prepared statements. */
export function textOf(sql: string, { preparedStatements }: Pick<SessionContext, 'preparedStatements'>): StatementText {
  return new StatementText(sql, preparedStatements)
}

/** Plans a text like the coordinator. */
export function planThreaded(
  front: ThreadedFrontEnd,
  sql: string,
  session: SessionContext,
  ...rest: [metadata: MetadataPort, caller: Parameters<ThreadedFrontEnd['plan']>[3]]
): Promise<PlannedStatement> {
  return front.plan(textOf(sql, session), session, ...rest)
}
