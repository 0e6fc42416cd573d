import type { RecordedStatement } from '../replay/recorded-statement.ts'
import type { AskInSql } from '../replay/listed-in-history.ts'
import { readDigest, readSnapshots, REPLAY_SOURCE, type Get } from '../replay/replay-source.ts'
import type { ReplayServer } from '../replay/replay-server.ts'
import { withCatalogs, type CatalogMap } from '../replay/replayed-text.ts'
import { headersOf } from '../replay/session-of.ts'
import type { ReplayError } from '../replay/verdict.ts'
import { endingAfter } from '../shared/deadline.ts'
import { EngineError } from '../shared/engine-error.ts'
import { askCalled, type CalledServer } from './called-server.ts'
import type { ReplayFlags } from './replay-flags.ts'
import { reasonOf, RefusedError, runStatement } from './statement-client.ts'

/** A function that sends GET requests to a server on behalf of the replay's user. */
export function getterOf(server: CalledServer, signal: AbortSignal): Get {
  return async (target) => {
    const question = { method: 'GET', signal, headers: { accept: 'application/json' } }
    const { status, headers, text } = await askCalled(server, REPLAY_SOURCE, target, question)
    if (status !== 200)
      throw new RefusedError(status, `${new URL(server.url).origin} answered ${status}: ${reasonOf(text)}`)
    const { link } = headers
    return { text, link: Array.isArray(link) ? link.join(', ') : link }
  }
}

/** A function that runs SQL on the history of a server on behalf of the replay's user. */
export function inSqlOf(server: CalledServer, signal: AbortSignal): AskInSql {
  return async function* (sql) {
    const headers = headersOf(HISTORY_SESSION, server.user, 'the history')
    for await (const { data, error } of runStatement({ server, sql, headers, signal })) {
      if (error) throw new Error(`${new URL(server.url).origin}: ${error.errorName}: ${error.message}`)
      yield* data ?? []
    }
  }
}

const HISTORY_SESSION = {
  timeZone: 'UTC',
  properties: {},
  preparedStatements: {},
  capabilities: ['PARAMETRIC_DATETIME'],
  clientTags: [],
}

/** The parts of the flags that decide how a statement runs on a server. */
type RunFlags = Pick<ReplayFlags, 'session' | 'asRecorded' | 'statementTimeoutMs'>

/** The names that differ on the other server. */
export type OtherNames = Pick<ReplayFlags, 'catalogs' | 'users'>

export const SAME_NAMES: OtherNames = { catalogs: new Map(), users: new Map() }

/** A server on which recorded statements run, each in its session, with that server's names. */
export function createReplayServer(
  server: CalledServer,
  options: RunFlags,
  { catalogs, users }: OtherNames,
  stopping: AbortSignal,
): ReplayServer {
  const get = getterOf(server, stopping)
  return {
    snapshots: (queryId) => readSnapshots(get, queryId),
    digest: (queryId) => readDigest(get, queryId),
    async *run(sql, statement, signal) {
      const { user: recorded } = statement.session
      const user = users.get(recorded) ?? (options.asRecorded ? recorded : server.user)
      const limit = endingAfter(options.statementTimeoutMs, signal)
      try {
        const session = sessionThere(statement, options, catalogs)
        const answers = runStatement({
          server,
          sql: withCatalogs(sql, catalogs),
          headers: headersOf(session, user, statement.queryId),
          prefix: 'X-Trino-',
          signal: limit.signal,
        })
        for await (const { id, text, columns, data, error } of answers)
          yield {
            queryId: id,
            text,
            columns,
            hasRows: data !== undefined && data.length > 0,
            error: error && { name: error.errorName, message: error.message },
          }
      } catch (error) {
        const failure = limit.isOver() ? tooLong(options.statementTimeoutMs) : failureOf(error)
        if (!failure || signal.aborted) throw error
        yield { queryId: '', text: '', columns: undefined, hasRows: false, error: failure }
      } finally {
        limit.clear()
      }
    },
  }
}

function tooLong(ms: number): ReplayError {
  return { name: 'EXCEEDED_TIME_LIMIT', message: `The statement did not end within ${ms / 1000} seconds` }
}

/** Statuses that concern a single statement. Others, such as 401 or 503, mean that no statement can run. */
const OF_THE_STATEMENT: ReadonlySet<number | undefined> = new Set([200, 400, 403, 413, 414, 422, 431])

/** The error of a statement on that server, or of its answer. Undefined: the server itself has a problem. */
function failureOf(error: unknown): ReplayError | undefined {
  if (error instanceof RefusedError && OF_THE_STATEMENT.has(error.status))
    return { name: 'REFUSED', message: error.message }
  // Thrown when the text cannot be parsed, so its catalogs cannot be renamed.
  if (error instanceof EngineError) return { name: error.errorName, message: error.message }
  return undefined
}

function sessionThere({ session }: RecordedStatement, options: Pick<RunFlags, 'session'>, catalogs: CatalogMap) {
  const { catalog } = session
  const mapped = catalog === undefined ? undefined : (catalogs.get(catalog.toLowerCase()) ?? catalog)
  const preparedStatements = Object.fromEntries(
    Object.entries(session.preparedStatements).map(([name, sql]) => [name, withCatalogs(sql, catalogs)]),
  )
  return {
    ...session,
    preparedStatements,
    properties: { ...session.properties, ...options.session },
    ...(mapped !== undefined && { catalog: mapped }),
  }
}
