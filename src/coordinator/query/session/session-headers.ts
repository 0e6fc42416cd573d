import type { QueryId } from '../../../shared/ids.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import type { SessionChange } from '../../../sql/front-end.ts'
import { transactionIdOf } from './transaction-ids.ts'

/** A response header without its family's prefix: `Set-Session`. */
export interface ResponseHeader {
  readonly header: string
  readonly value: string
}

/** The client leaves its transaction. */
export const CLEAR_TRANSACTION: ResponseHeader = { header: 'Clear-Transaction-Id', value: 'true' }

/** Form encoding, as clients decode it: space is `+`. */
function encode(text: string): string {
  // Through UTF-8 first: this replaces lone surrogates, at which encodeURIComponent throws.
  return encodeURIComponent(Buffer.from(text, 'utf8').toString('utf8'))
    .replaceAll('%20', '+')
    .replace(/[!'()~]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

/**
 * Checks a name, which clients send back unencoded: refuses characters that a header cannot carry or that readers cut
 * off.
 */
function plain(name: string): string {
  if (!UNSENDABLE.test(name)) return name
  throw new EngineError('NOT_SUPPORTED', 'A name with control characters cannot be part of a session')
}

const UNSENDABLE = /[\u0000-\u001f\u007f]|\p{Surrogate}|^ | $/u

/**
 * The response headers that the client must remember; every answer of the query repeats them.
 * @throws EngineError NOT_SUPPORTED for a name that no header can carry
 */
export function responseHeaders(queryId: QueryId, changes: readonly SessionChange[]): readonly ResponseHeader[] {
  return changes.map((change): ResponseHeader => {
    switch (change.kind) {
      case 'SetCatalog':
        return { header: 'Set-Catalog', value: plain(change.catalog) }
      case 'SetSchema':
        return { header: 'Set-Schema', value: plain(change.schema) }
      case 'SetPath':
        return { header: 'Set-Path', value: plain(change.path) }
      case 'SetSession':
        return { header: 'Set-Session', value: `${change.name}=${encode(change.value)}` }
      case 'ClearSession':
        return { header: 'Clear-Session', value: change.name }
      case 'SetRole':
        return { header: 'Set-Role', value: `${change.catalog}=${encode(change.role)}` }
      case 'AddedPrepare':
        return { header: 'Added-Prepare', value: `${encode(change.name)}=${encode(change.sql)}` }
      case 'DeallocatedPrepare':
        return { header: 'Deallocated-Prepare', value: encode(change.name) }
      case 'StartTransaction':
        return { header: 'Started-Transaction-Id', value: transactionIdOf(queryId) }
      case 'Commit':
      case 'Rollback':
        return CLEAR_TRANSACTION
      case 'SetAuthorizationUser':
        return { header: 'Set-Authorization-User', value: plain(change.user) }
      case 'ResetAuthorizationUser':
        return { header: 'Reset-Authorization-User', value: 'true' }
      default:
        return unreachable(change)
    }
  })
}

/**
 * Checks the size of headers that a client is to remember: it sends them with each later statement, among other
 * headers.
 * @throws EngineError QUERY_TEXT_TOO_LARGE when such a statement would be refused
 */
export function checkHeaders(headers: readonly ResponseHeader[], maxBytes: number): void {
  const bytes = headers.reduce((sum, { header, value }) => sum + header.length + Buffer.byteLength(value), 0)
  if (bytes <= maxBytes) return
  throw new EngineError(
    'QUERY_TEXT_TOO_LARGE',
    `The session would become too large: clients would send ${bytes} bytes of headers with each statement, but ${maxBytes} bytes are allowed`,
  )
}
