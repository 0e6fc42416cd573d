import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** Headers of one coordinator's request to another; outside of the families, of which a request may carry only one. */
export const relayHeaders = {
  /** The cluster's key: who has it may speak for a client. */
  by: 'x-quipu-relayed-by',
  /** Address of the client. */
  client: 'x-quipu-relayed-for',
  /** On an answer: this coordinator does not write the log either. */
  notWriter: 'x-quipu-not-writer',
} as const

const clients = new WeakMap<IncomingMessage, string>()

/** Was the request passed on by another coordinator? Its client was looked at there. */
export function acceptRelay(request: IncomingMessage, bearer: string): boolean {
  const given = request.headers[relayHeaders.by]
  if (typeof given !== 'string') return false
  const [a, b] = [Buffer.from(given), Buffer.from(bearer)]
  if (a.length !== b.length || !timingSafeEqual(a, b)) return false
  const client = request.headers[relayHeaders.client]
  if (typeof client === 'string') clients.set(request, client)
  return true
}

/** Address of the client, also behind another coordinator. */
export function remoteAddressOf(request: IncomingMessage): string | undefined {
  return clients.get(request) ?? request.socket.remoteAddress
}
