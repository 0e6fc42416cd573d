import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

const listeners = new WeakMap<Socket, (user: string) => void>()

/** Registers a listener, called with the user each time a request on the connection was authenticated. */
export function whenKnown(socket: Socket, listener: (user: string) => void): void {
  listeners.set(socket, listener)
}

/** Reports that the sender of the request was authenticated as `user`. */
export function connectionIsOf({ socket }: IncomingMessage, user: string): void {
  listeners.get(socket)?.(user)
}
