import type { IncomingMessage } from 'node:http'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'

/** Who sends a request, as far as this server looked. */
export type Caller =
  /** Authentication is not configured: whoever he says. */
  | { readonly kind: 'anybody' }
  | { readonly kind: 'principal'; readonly principal: VerifiedPrincipal }
  /** A process of the cluster, by its key. */
  | { readonly kind: 'cluster' }
  /** Nobody: what he asks for is open to all. */
  | { readonly kind: 'nobody' }

const callers = new WeakMap<IncomingMessage, Caller>()

/** To be said once, before anything else looks at the request. */
export function setCaller(request: IncomingMessage, caller: Caller): void {
  callers.set(request, caller)
}

/** Who sent the request. A request that passed no door is nobody's. */
export function callerOf(request: IncomingMessage): Caller {
  return callers.get(request) ?? NOBODY
}

export const NOBODY: Caller = { kind: 'nobody' }
export const ANYBODY: Caller = { kind: 'anybody' }
