import type { IncomingMessage } from 'node:http'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'

/** The sender of a request, as far as this server verified it. */
export type Caller =
  /** Authentication is not configured: the user that the headers name. */
  | { readonly kind: 'anybody' }
  | { readonly kind: 'principal'; readonly principal: VerifiedPrincipal }
  /** A process of the cluster, by its key. */
  | { readonly kind: 'cluster' }
  /** Not verified, because the path is open to everybody. */
  | { readonly kind: 'nobody' }

const callers = new WeakMap<IncomingMessage, Caller>()

/** Sets the sender of a request. Called once, before other code reads the request. */
export function setCaller(request: IncomingMessage, caller: Caller): void {
  callers.set(request, caller)
}

/** The sender of a request. A request that no listener checked has the sender `nobody`. */
export function callerOf(request: IncomingMessage): Caller {
  return callers.get(request) ?? NOBODY
}

export const NOBODY: Caller = { kind: 'nobody' }
export const ANYBODY: Caller = { kind: 'anybody' }
