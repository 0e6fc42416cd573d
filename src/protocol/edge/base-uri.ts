import type { IncomingMessage } from 'node:http'
import { clientConnection } from './client-connection.ts'

/** Scheme, host and port as the client used them. */
export function baseUri(request: IncomingMessage): string {
  const { scheme, authority } = clientConnection(request)
  return `${scheme}://${authority}`
}
