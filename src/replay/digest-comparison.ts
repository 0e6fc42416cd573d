import type { RecordedDigest } from '../coordinator/query/stream/events.ts'
import type { RecordedStatement } from './recorded-statement.ts'
import type { Replayed } from './replayed.ts'
import type { ReplayServer } from './replay-server.ts'
import type { SentColumn } from './scratch-results.ts'
import type { Difference, ReplayError } from './verdict.ts'

/** After this many results without a comparable digest, the server has other keys, or is a Trino. */
const MOST_MISSES = 3
/**
 * After `MOST_MISSES`, digests are compared for only one in this many statements. The server may get the same key
 * later, or may lack digests for some statements only.
 */
const ASKED_AGAIN = 50

/** A run on the other server whose rows were read and dropped. */
export interface OtherRun {
  readonly queryId: string
  readonly ms: number
  readonly columns: readonly SentColumn[]
  readonly error: ReplayError | undefined
}

export type DigestOutcome =
  | { readonly kind: 'same'; readonly replayed: Replayed }
  | {
      /** The digests do not prove that the results are equal. */
      readonly kind: 'unproven'
      /** Undefined if the statement did not run. */
      readonly ran: OtherRun | undefined
      /** Undefined if the digests cannot be compared. */
      readonly difference: Difference | undefined
    }

/**
 * Compares the record's digests of results with those of another server, so that the baseline need not run again. This
 * process does not have the key. Two servers with the same key name it equally, and then equal digests mean equal
 * results.
 */
export class DigestComparison {
  readonly #recorded: (queryId: string) => Promise<RecordedDigest | undefined>
  #misses = 0
  #passed = 0

  /**
   * @param recorded the digest from the server with the record; undefined if it has none, or does not show it to the
   * replay's user
   */
  constructor(recorded: (queryId: string) => Promise<RecordedDigest | undefined>) {
    this.#recorded = recorded
  }

  /** Runs a statement only on the other server. @throws Error when the server cannot be reached */
  async replay(statement: RecordedStatement, there: ReplayServer, signal: AbortSignal): Promise<DigestOutcome> {
    const unproven = (ran?: OtherRun, difference?: Difference): DigestOutcome => ({ kind: 'unproven', ran, difference })
    if (this.#misses >= MOST_MISSES && ++this.#passed % ASKED_AGAIN !== 0) return unproven()
    const recorded = await this.#recorded(statement.queryId)
    if (!recorded) return unproven()
    const ran = await runThere(statement, there, signal)
    if (ran.error) return unproven(ran)
    const digest = await there.digest(ran.queryId)
    if (digest?.version !== recorded.version || digest.key !== recorded.key) {
      this.#misses++
      return unproven(ran)
    }
    this.#misses = 0
    const [here, other] = [shapeOf(statement.columns), shapeOf(ran.columns)]
    if (here.join('\0') !== other.join('\0')) return unproven(ran, { kind: 'columns', here, there: other })
    if (digest.sum !== recorded.sum || digest.rows !== recorded.rows)
      return unproven(ran, { kind: 'digest', here: recorded.rows, there: digest.rows })
    if (statement.ordered && (digest.chain === undefined || recorded.chain === undefined)) return unproven(ran)
    const inOrder = !statement.ordered || digest.chain === recorded.chain
    const { ms: thereMs, queryId: thereQueryId } = ran
    const verdict = inOrder ? 'SAME' : 'SAME_OTHER_ORDER'
    const { rows } = digest
    return {
      kind: 'same',
      replayed: { verdict: { verdict }, thereMs, thereQueryId, rows, examples: [], byDigest: true },
    }
  }
}

/** Runs a statement on the other server, and drops its rows. @throws Error when the server cannot be reached */
export async function runThere(
  statement: RecordedStatement,
  there: ReplayServer,
  signal: AbortSignal,
): Promise<OtherRun> {
  const startedAt = performance.now()
  let columns: readonly SentColumn[] = []
  let queryId = ''
  let error: ReplayError | undefined
  for await (const answer of there.run(statement.sql, statement, signal)) {
    columns = answer.columns ?? columns
    queryId = answer.queryId
    error = answer.error
    if (error) break
  }
  return { queryId, ms: performance.now() - startedAt, columns, error }
}

function shapeOf(columns: readonly SentColumn[]): string[] {
  return columns.map(({ name, type }) => `${name} ${type}`)
}
