import type { IncomingMessage } from 'node:http'
import type { SlotOwner } from '../../shared/fair-queue.ts'
import { knownOwner, unknownOwner } from '../../shared/limit-owner.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'
import { callerOf } from './caller.ts'

/**
 * The owner that limits count a request for, before its impersonation headers are read: the user who logged in, or the
 * network that it comes from.
 */
export function requestOwner(request: IncomingMessage): SlotOwner {
  const caller = callerOf(request)
  return caller.kind === 'principal' ? knownOwner(caller.principal.user) : unknownOwner(remoteAddressOf(request))
}
