import { createHttpRelay, type HttpRelayOptions } from '../../src/coordinator/clusters/relay/http-relay.ts'
import type { RelayTarget, RemoteUri } from '../../src/coordinator/clusters/relay/relay-port.ts'
import type { QueryExecution } from '../../src/coordinator/query/registry/query-handle.ts'
import type { StatementService } from '../../src/coordinator/query/results/statement-service.ts'
import { foldQuery } from '../../src/coordinator/query/stream/evolve.ts'
import type { KnownQuery } from '../../src/coordinator/query/stream/state.ts'
import { createStatementUris } from '../../src/protocol/statement/next-uri.ts'
import { createQueryIds, type QueryId } from '../../src/shared/ids.ts'
import { event } from './query-events.ts'
import type { HttpApp } from './http-app.ts'
import { serveStatements } from './statement-server.ts'

/** A query as the test relay remembers it: only what the events of a query would have. */
interface RelayedQuery {
  readonly query: KnownQuery
  readonly uri: RemoteUri
  /** From the answer that the client got last. */
  partialCancelUri?: RemoteUri
}

/** The queries, as the event log has them. They outlive a relay. */
export type RelayedQueries = Map<QueryId, RelayedQuery>

/**
 * A server that relays every statement to one cluster. It has the port, the statement resource, and nothing between.
 */
export interface TestRelay extends HttpApp {
  readonly cancel: (id: string) => Promise<void>
  readonly port: ReturnType<typeof createHttpRelay>
}

const newId = createQueryIds(1, Date.now)

export async function startTestRelay(
  cluster: RelayTarget,
  queries: RelayedQueries = new Map(),
  options: HttpRelayOptions = {},
): Promise<TestRelay> {
  const port = createHttpRelay(options)
  const uris = createStatementUris('the secret of the test relays')
  const ending = new AbortController()

  const service: StatementService = {
    async submit({ created, session, text }) {
      const { catalog, schema, properties } = session
      const headers = {
        ...(catalog === undefined ? {} : { 'x-trino-catalog': catalog }),
        ...(schema === undefined ? {} : { 'x-trino-schema': schema }),
        'x-trino-session': Object.entries(properties)
          .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
          .join(','),
      }
      const { uri } = await port.post(cluster, { sql: text.sql, user: session.user, headers }, ending.signal)
      const id = newId()
      const state = foldQuery(id, [event('QueryCreated', 0, created)])
      if (state.kind === 'NONE') throw new Error('a query is created')
      queries.set(id, { query: state, uri })
      const aggregate = { state, intended: state }
      return { aggregate, liveStats: new Map(), queuedReason: undefined } as unknown as QueryExecution
    },
    async poll(queryId, _token, _waitMs, relayed) {
      const known = queries.get(queryId)
      if (!known) return { kind: 'unknown' }
      const answer = await port.fetch(cluster, relayed?.uri ?? known.uri, ending.signal)
      const { nextUri, partialCancelUri, columns } = answer.head
      if (partialCancelUri) known.partialCancelUri = partialCancelUri
      const rowsSent = (relayed?.rowsSent ?? false) || answer.data !== undefined
      return {
        kind: 'relayed',
        query: known.query,
        next: nextUri && { attempt: 0, cluster: cluster.name, uri: nextUri, rowsSent },
        cancelableStage: partialCancelUri && 1,
        columns,
        headers: answer.headers,
        data: answer.data,
        tail: answer.tail,
      }
    },
    async cancel(queryId) {
      await port.cancel(cluster, queries.get(queryId)!.uri)
      return 'done'
    },
    async cancelStage(queryId) {
      await port.cancel(cluster, queries.get(queryId)!.partialCancelUri!)
      return 'done'
    },
    ownerOf: () => undefined,
    heartbeat: async (queryId, relayed) =>
      (await port.keepAlive(cluster, relayed?.uri ?? queries.get(queryId)!.uri)) === 'alive',
  }
  const server = await serveStatements({ service, uris })
  return {
    base: server.base,
    port,
    cancel: async (id) => void (await service.cancel(id as QueryId, { failure: undefined } as never, 0)),
    async close() {
      ending.abort(new Error('the relay stops'))
      await server.close()
      port.close()
    },
  }
}
