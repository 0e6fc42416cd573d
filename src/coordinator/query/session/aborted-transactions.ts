import { EngineError } from '../../../shared/engine-error.ts'
import type { Statement } from '../../../sql/syntax/ast-statements.ts'
import type { QueryAggregate } from '../stream/query-aggregate.ts'
import type { QuerySession } from '../stream/events.ts'

type Owner = Pick<QuerySession, 'user' | 'originalUser' | 'transactionId'>

/** How many aborted transactions are remembered; each needs about 100 bytes. */
const REMEMBERED = 10_000

/**
 * The transactions in which a statement failed. Like Trino, this coordinator then refuses all statements but COMMIT,
 * which fails, and ROLLBACK. Transactions are not in the log: a coordinator that takes over knows of none, and no
 * connector here writes within a transaction.
 */
export class AbortedTransactions {
  /** In the order of their failures. */
  readonly #keys = new Set<string>()

  /** Remembers the transaction of a query once the query fails. A text that is no statement aborts nothing. */
  follow(query: Pick<QueryAggregate, 'state' | 'onValid'>): void {
    query.onValid(() => {
      const { state } = query
      if (state.kind !== 'FAILED' || state.failure.errorName === 'SYNTAX_ERROR') return
      const key = keyOf(state.created.session)
      if (key === undefined) return
      this.#keys.add(key)
      if (this.#keys.size > REMEMBERED) for (const oldest of this.#keys) return void this.#keys.delete(oldest)
    })
  }

  has(session: Owner): boolean {
    if (this.#keys.size === 0) return false
    const key = keyOf(session)
    return key !== undefined && this.#keys.has(key)
  }
}

/** Undefined without an open transaction. Users cannot abort each other's transactions. */
function keyOf({ user, originalUser, transactionId }: Owner): string | undefined {
  if (transactionId === undefined || transactionId === 'NONE') return undefined
  return `${transactionId} ${originalUser ?? user}`
}

/** @throws EngineError TRANSACTION_ALREADY_ABORTED unless the statement ends the transaction */
export function verifyTransactionControl(kind: Statement['kind'] | undefined): void {
  if (kind === 'Commit' || kind === 'Rollback') return
  const message = 'Current transaction is aborted, commands ignored until end of transaction block'
  throw new EngineError('TRANSACTION_ALREADY_ABORTED', message)
}

/** The error of a COMMIT. */
export function cannotCommit(): EngineError {
  return new EngineError('TRANSACTION_ALREADY_ABORTED', 'Current transaction has already been aborted')
}
