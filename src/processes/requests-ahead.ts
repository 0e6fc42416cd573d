import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The maximum number of unanswered requests of one connection. Clients of Quipu do not send more ahead. */
const MOST = 32

interface Ahead {
  /** `underWay`: requests without an answer yet. `waiting`: those of them that wait for their turn. */
  running: number
  waiting: number
  /** Whether reading from the connection is paused. */
  held: boolean
}

/**
 * Limits reading from a connection. Requests sent ahead stay in the client's and the kernel's memory, except what was
 * read together with an earlier request: nothing is read while one request waits for its turn, or two for their
 * answers. With only one request in progress, reading continues, to notice when the client is gone.
 */
export interface RequestsAhead {
  /** @returns false if too many answers must be sent before this one: the connection has been closed */
  arrived(socket: Socket, response: ServerResponse): boolean
  /** Marks a request as waiting for its turn. @returns a function to call when its turn has come */
  waits(socket: Socket): () => void
}

export function createRequestsAhead(): RequestsAhead {
  const connections = new WeakMap<Socket, Ahead>()

  function of(socket: Socket): Ahead {
    const known = connections.get(socket)
    if (known) return known
    const ahead: Ahead = { running: 0, waiting: 0, held: false }
    connections.set(socket, ahead)
    return ahead
  }

  function hold(socket: Socket, ahead: Ahead): void {
    if (socket.destroyed) return
    if (ahead.waiting > 0 || ahead.running > 1) {
      ahead.held = true
      socket.pause()
    } else if (ahead.held) {
      ahead.held = false
      socket.resume()
    }
  }

  /**
   * Pauses or resumes after the current tick: Node resumes reading at the end of each head. This runs after that, and
   * before more is read.
   */
  function changed(socket: Socket, ahead: Ahead): void {
    if (ahead.held || ahead.waiting > 0 || ahead.running > 1) process.nextTick(hold, socket, ahead)
  }

  return {
    arrived(socket, response) {
      if (socket.destroyed) return false
      const ahead = of(socket)
      if (ahead.running >= MOST) {
        socket.destroy()
        return false
      }
      ahead.running++
      response.once('close', () => {
        ahead.running--
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
