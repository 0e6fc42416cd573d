import type { IncomingMessage } from 'node:http'
import { createAcceptanceQueue } from '../../src/coordinator/dispatch/acceptance-queue.ts'
import { sealedSubmission } from '../../src/coordinator/query/secrets/query-secrets.ts'
import { sendProblem, toProblem } from '../../src/protocol/edge/problem.ts'
import { createStatementRoutes, type StatementRouteDeps } from '../../src/protocol/statement/statement-routes.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { limitOwners } from '../../src/shared/limit-owner.ts'
import { StatementText } from '../../src/sql/parsed-statement.ts'
import { checkPreparedTexts } from '../../src/sql/planning-limits.ts'
import { openAccess } from './access.ts'
import { serveListener, type HttpApp } from './http-app.ts'

/**
 * Serves the statement resource over a service of the test. Without authentication, queues or limits of memory.
 * @param onRequest called with each request before it is handled
 */
export async function serveStatements(
  deps: Pick<StatementRouteDeps, 'service' | 'uris'> & Partial<StatementRouteDeps>,
  onRequest: (request: IncomingMessage) => void = () => {},
): Promise<HttpApp> {
  const routes = createStatementRoutes({
    ownerOf: limitOwners(false),
    memory: {
      hold: (_owner: unknown, bytes: number) => ({ bytes, more: () => {}, release: () => {} }),
    } as unknown as StatementRouteDeps['memory'],
    acceptance: createAcceptanceQueue({
      atOnce: 8,
      longBytes: 65_536,
      longAtOnce: 2,
      waiting: 8,
      waitingOfUser: 8,
      waitMs: 1000,
    }),
    texts: {
      checkPrepared: async ({ preparedStatements }) => checkPreparedTexts(preparedStatements, {}),
      seal: async (sql, session, rest) =>
        sealedSubmission(new StatementText(sql, session.preparedStatements), session, rest),
    },
    clock: systemClock,
    spans: {
      post: () => ({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', sampled: true }),
      polled: () => {},
    } as unknown as StatementRouteDeps['spans'],
    ...openAccess,
    propertyRules: () => undefined,
    groupOf: () => 'global',
    defaultTimeZone: 'UTC',
    limits: { statementBytes: 1_000_000, longPollMs: 1000, deleteValidityWaitMs: 1000 },
    lastKnown: async () => undefined,
    ...deps,
  })
  return serveListener((request, response) => {
    onRequest(request)
    routes(request, response, request.url!).then(
      (handled) => handled || response.writeHead(418).end(),
      (error: unknown) => sendProblem(request, response, toProblem(error)),
    )
  })
}
