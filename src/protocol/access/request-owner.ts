import type { IncomingMessage } from 'node:http'
import type { SlotOwner } from '../../shared/fair-queue.ts'
import { knownOwner, unknownOwner } from '../../shared/limit-owner.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'
import { callerOf } from './caller.ts'

/** Whom limits count a request to, before it is read as whom it acts: the user who logged in, or the network it comes from. */
export function requestOwner(request: IncomingMessage): SlotOwner {
  const caller = callerOf(request)
  return caller.kind === 'principal' ? knownOwner(caller.principal.user) : unknownOwner(remoteAddressOf(request))
}
