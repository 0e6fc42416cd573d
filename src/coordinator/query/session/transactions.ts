import { EngineError } from '../../../shared/engine-error.ts'
import type { QueryAggregate } from '../stream/query-aggregate.ts'
import type { QuerySession } from '../stream/events.ts'
import type { KnownQuery } from '../stream/state.ts'
import { CLEAR_TRANSACTION } from './session-headers.ts'
import { queryOfTransaction } from './transaction-ids.ts'

type Owner = Pick<QuerySession, 'user' | 'originalUser' | 'transactionId'>

/** How many aborted and how many ended transactions are remembered; each needs about 100 bytes. */
const REMEMBERED = 10_000

/**
 * The transactions in which a statement failed, and those that have ended. Like Trino, this coordinator then refuses
 * statements. Transactions are not in the log: a coordinator that takes over takes each of them for open, and no
 * connector here writes within a transaction.
 */
export class Transactions {
  /** In the order of their failures. */
  readonly #aborted = new Set<string>()
  /** The ids, in the order of their ends. */
  readonly #ended = new Set<string>()

  /**
   * Remembers that a transaction is aborted once a query in it fails, and that it has ended once COMMIT or ROLLBACK is
   * finished. A text that is no statement aborts nothing.
   */
  follow(query: Pick<QueryAggregate, 'state' | 'onValid'>): void {
    query.onValid(() => {
      const { state } = query
      if (state.kind === 'FINISHED') this.#end(state)
      if (state.kind !== 'FAILED' || state.failure.errorName === 'SYNTAX_ERROR') return
      const { session } = state.created
      const key = keyOf(session)
      if (key !== undefined && this.#isOpen(session.transactionId!)) remember(this.#aborted, key)
    })
  }

  #end({ created, finished }: Extract<KnownQuery, { kind: 'FINISHED' }>): void {
    const { transactionId } = created.session
    if (
      transactionId !== undefined &&
      finished.responseHeaders.some(({ header }) => header === CLEAR_TRANSACTION.header)
    )
      remember(this.#ended, transactionId.toLowerCase())
  }

  #isOpen(transactionId: string): boolean {
    return queryOfTransaction(transactionId) !== undefined && !this.#ended.has(transactionId.toLowerCase())
  }

  isAborted(session: Owner): boolean {
    if (this.#aborted.size === 0) return false
    const key = keyOf(session)
    return key !== undefined && this.#aborted.has(key)
  }

  /** @throws EngineError UNKNOWN_TRANSACTION when the session's transaction has ended or never was */
  verify({ transactionId }: Owner): void {
    if (transactionId === undefined || transactionId === 'NONE') return
    if (this.#isOpen(transactionId)) return
    const message = `Unknown transaction ID: ${transactionId}. Possibly expired? Commands ignored until end of transaction block`
    throw new EngineError('UNKNOWN_TRANSACTION', message)
  }
}

function remember(keys: Set<string>, key: string): void {
  keys.add(key)
  if (keys.size > REMEMBERED) for (const oldest of keys) return void keys.delete(oldest)
}

/** Undefined without an open transaction. Users cannot abort each other's transactions. */
function keyOf({ user, originalUser, transactionId }: Owner): string | undefined {
  if (transactionId === undefined || transactionId === 'NONE') return undefined
  return `${transactionId} ${originalUser ?? user}`
}

/** The error of a statement in an aborted transaction. */
export function ignored(): EngineError {
  const message = 'Current transaction is aborted, commands ignored until end of transaction block'
  return new EngineError('TRANSACTION_ALREADY_ABORTED', message)
}

/** The error of a COMMIT. */
export function cannotCommit(): EngineError {
  return new EngineError('TRANSACTION_ALREADY_ABORTED', 'Current transaction has already been aborted')
}
