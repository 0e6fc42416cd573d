import type { RecordedDigest } from '../coordinator/query/stream/events.ts'
import type { RecordedStatement } from './recorded-statement.ts'
import type { Replayed } from './replayed.ts'
import type { ReplayServer } from './replay-server.ts'

/** After this many results without a comparable digest, the server has other keys, or is a Trino. */
const MOST_MISSES = 3

/**
 * Compares the record's digests of results with those of another server, so that the baseline need not run again. This
 * process does not have the key. Two servers with the same key name it equally, and then equal digests mean equal
 * results.
 */
export class DigestComparison {
  readonly #recorded: (queryId: string) => Promise<RecordedDigest | undefined>
  #misses = 0

  /**
   * @param recorded the digest from the server with the record; undefined if it has none, or does not show it to the
   * replay's user
   */
  constructor(recorded: (queryId: string) => Promise<RecordedDigest | undefined>) {
    this.#recorded = recorded
  }

  /**
   * Runs a statement only on the other server. @returns undefined if that does not prove that the results are equal:
   * then both sides run
   * @throws Error when the server cannot be reached
   */
  async replay(statement: RecordedStatement, there: ReplayServer, signal: AbortSignal): Promise<Replayed | undefined> {
    if (this.#misses >= MOST_MISSES) return undefined
    const recorded = await this.#recorded(statement.queryId)
    if (!recorded) return undefined
    const startedAt = performance.now()
    let columns: readonly { readonly name: string; readonly type: string }[] = []
    let queryId = ''
    for await (const answer of there.run(statement.sql, statement, signal)) {
      if (answer.error) return undefined
      columns = answer.columns ?? columns
      ;({ queryId } = answer)
    }
    const thereMs = performance.now() - startedAt
    const digest = await there.digest(queryId)
    if (digest?.version !== recorded.version || digest.key !== recorded.key) {
      this.#misses++
      return undefined
    }
    this.#misses = 0
    if (shapeOf(columns) !== shapeOf(statement.columns)) return undefined
    if (digest.sum !== recorded.sum || digest.rows !== recorded.rows) return undefined
    if (statement.ordered && (digest.chain === undefined || recorded.chain === undefined)) return undefined
    const inOrder = !statement.ordered || digest.chain === recorded.chain
    return {
      verdict: { verdict: inOrder ? 'SAME' : 'SAME_OTHER_ORDER' },
      thereMs,
      rows: digest.rows,
      examples: [],
      byDigest: true,
    }
  }
}

function shapeOf(columns: readonly { readonly name: string; readonly type: string }[]): string {
  return JSON.stringify(columns.map(({ name, type }) => [name, type]))
}
