import type { RecordedStatement } from './recorded-statement.ts'
import type { RecordedDigest } from '../coordinator/query/stream/events.ts'
import type { SentColumn } from './scratch-results.ts'
import type { ReplayError } from './verdict.ts'

/** One answer of a server: a part of a result, or an error. */
export interface ReplayAnswer {
  readonly queryId: string
  /** The answer's text as the server sent it. */
  readonly text: string
  readonly columns: readonly SentColumn[] | undefined
  readonly hasRows: boolean
  readonly error: ReplayError | undefined
}

/** A server on which recorded statements are run again. */
export interface ReplayServer {
  /**
   * Runs a text in the session of a statement. Leaving the loop early cancels it.
   * @throws Error when the server cannot be reached
   */
  run(sql: string, statement: RecordedStatement, signal: AbortSignal): AsyncIterable<ReplayAnswer>
  /** The snapshots that a query on this server read, by table, as far as the server reports them. */
  snapshots(queryId: string): Promise<ReadonlyMap<string, string>>
  /** The digest of a query's result; undefined if it has none or the server does not show it. */
  digest(queryId: string): Promise<RecordedDigest | undefined>
}
