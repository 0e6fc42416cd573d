import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Requests of one connection that wait for their answers: a client that sends more ahead is none of ours. */
const MOST = 32

interface Ahead {
  /** Requests that are not answered yet; those of them that wait for their turn. */
  underWay: number
  waiting: number
  /** Nothing more is read of it now. */
  held: boolean
}

/**
 * What is sent ahead on a connection stays there, in the client's own memory and the kernel's, but for what was read with
 * the request before: nothing is read while one waits for its turn, or two for their answers. Of a client that has but one
 * request under way is read on, else nobody would know that it is gone.
 */
export interface RequestsAhead {
  /** @returns false where its answer would have to wait for too many before it: the connection has ended */
  arrived(socket: Socket, response: ServerResponse): boolean
  /** It has to wait for its turn. @returns to be called when that has come */
  waits(socket: Socket): () => void
}

export function createRequestsAhead(): RequestsAhead {
  const connections = new WeakMap<Socket, Ahead>()

  function of(socket: Socket): Ahead {
    const known = connections.get(socket)
    if (known) return known
    const ahead: Ahead = { underWay: 0, waiting: 0, held: false }
    connections.set(socket, ahead)
    return ahead
  }

  function hold(socket: Socket, ahead: Ahead): void {
    if (socket.destroyed) return
    if (ahead.waiting > 0 || ahead.underWay > 1) {
      ahead.held = true
      socket.pause()
    } else if (ahead.held) {
      ahead.held = false
      socket.resume()
    }
  }

  /** Node goes on reading at the end of each head: later than that, and before more is read. */
  function changed(socket: Socket, ahead: Ahead): void {
    if (ahead.held || ahead.waiting > 0 || ahead.underWay > 1) process.nextTick(hold, socket, ahead)
  }

  return {
    arrived(socket, response) {
      if (socket.destroyed) return false
      const ahead = of(socket)
      if (ahead.underWay >= MOST) {
        socket.destroy()
        return false
      }
      ahead.underWay++
      response.once('close', () => {
        ahead.underWay--
        changed(socket, ahead)
      })
      changed(socket, ahead)
      return true
    },
    waits(socket) {
      const ahead = of(socket)
      ahead.waiting++
      changed(socket, ahead)
      return () => {
        ahead.waiting--
        changed(socket, ahead)
      }
    },
  }
}
