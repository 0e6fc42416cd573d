import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

const told = new WeakMap<Socket, (user: string) => void>()

/** From now on `tell` learns of the user whom a request on the connection was verified to be of, each time one is. */
export function whenKnown(socket: Socket, tell: (user: string) => void): void {
  told.set(socket, tell)
}

/** The sender of the request was verified. */
export function connectionIsOf({ socket }: IncomingMessage, user: string): void {
  told.get(socket)?.(user)
}
