import type { ThreadedFrontEnd } from '../../src/coordinator/front-end-threads/threaded-front-end.ts'
import type { BoundStatement, MetadataPort, SessionContext, SqlFrontEnd } from '../../src/sql/front-end.ts'
import { StatementText } from '../../src/sql/parsed-statement.ts'

/** Parses a text and binds it. */
export async function bindText(
  frontEnd: SqlFrontEnd,
  sql: string,
  session: SessionContext,
  metadata: MetadataPort,
): Promise<BoundStatement> {
  return frontEnd.bind(frontEnd.parse(textOf(sql, session), session), session, metadata)
}

/** The text as the client sent it, with its prepared statements. */
export function textOf(sql: string, { preparedStatements }: Pick<SessionContext, 'preparedStatements'>): StatementText {
  return new StatementText(sql, preparedStatements)
}

/** Binds a text like the coordinator. */
export function bindThreaded(
  front: ThreadedFrontEnd,
  sql: string,
  session: SessionContext,
  ...rest: [metadata: MetadataPort, caller: Parameters<ThreadedFrontEnd['bind']>[3]]
): Promise<BoundStatement> {
  return front.bind(textOf(sql, session), session, ...rest)
}
