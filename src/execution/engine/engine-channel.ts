import { chmodSync, closeSync, constants, openSync } from 'node:fs'
import { createServer, Socket } from 'node:net'
import type { EngineListeners } from './engine-program.ts'

/**
 * Two connections to one socket, for requests with their replies and for beats; the first byte of each says which it
 * is.
 */
const REQUESTS = 'r'
const BEATS = 'b'
const NAME = 'channel'
/** The two connections, and as many that have not identified themselves yet: an engine may misbehave in any way. */
const MOST_CONNECTIONS = 4

/** The parent's end of the channel to an engine that another process started. */
export interface EngineChannel {
  send(bytes: Buffer): void
  close(): void
}

/** Listens in the slot's folder, which only that slot's engine can enter, for its two connections. */
export function listenForEngine(
  folder: string,
  { onReplies, onBeats }: Pick<EngineListeners, 'onReplies' | 'onBeats'>,
): EngineChannel {
  const sockets = new Map<string, Socket>()
  let waiting: Buffer[] = []
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', (bytes: Buffer) => {
      const kind = bytes.toString('latin1', 0, 1)
      if ((kind !== REQUESTS && kind !== BEATS) || sockets.has(kind)) {
        socket.destroy()
        return
      }
      sockets.set(kind, socket)
      // Any further connection is neither of the two.
      if (sockets.size === 2) server.close()
      const take = kind === REQUESTS ? onReplies : onBeats
      if (bytes.length > 1) take(bytes.subarray(1))
      socket.on('data', take)
      if (kind !== REQUESTS) return
      for (const each of waiting) socket.write(each)
      waiting = []
    })
  })
  server.maxConnections = MOST_CONNECTIONS
  server.on('error', () => undefined)
  const opened = openShort(folder)
  server.listen(opened.path)
  server.once('close', () => opened.close())
  // The socket is made for this user only; its group is that of the folder, the engine's group.
  chmodSync(opened.path, 0o660)
  return {
    send(bytes) {
      const socket = sockets.get(REQUESTS)
      if (socket) socket.write(bytes)
      else waiting.push(bytes)
    },
    close() {
      if (server.listening) server.close()
      for (const socket of sockets.values()) socket.destroy()
    },
  }
}

/** Connects the engine to its parent. */
export function connectToParent(folder: string, kind: 'requests' | 'beats'): Socket {
  const opened = openShort(folder)
  const socket = new Socket()
  socket.once('connect', () => opened.close())
  socket.connect(opened.path)
  socket.write(kind === 'requests' ? REQUESTS : BEATS)
  return socket
}

/** Paths of sockets are cut at 107 bytes: this path is short because it goes through a descriptor of its folder. */
function openShort(folder: string): { readonly path: string; close(): void } {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  return { path: `/proc/self/fd/${fd}/${NAME}`, close: () => closeSync(fd) }
}
