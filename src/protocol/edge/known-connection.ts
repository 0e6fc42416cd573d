import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

const listeners = new WeakMap<Socket, (user: string) => void>()

/** From now on `tell` learns of the user whom a request on the connection was verified to be of, each time one is. */
export function whenKnown(socket: Socket, listener: (user: string) => void): void {
  listeners.set(socket, listener)
}

/** The sender of the request was verified. */
export function connectionIsOf({ socket }: IncomingMessage, user: string): void {
  listeners.get(socket)?.(user)
}
