import { chmodSync, closeSync, constants, openSync } from 'node:fs'
import { createServer, Socket } from 'node:net'
import type { EngineListeners } from './engine-program.ts'

/** Requests with their replies, and beats: two connections to one socket, each begins with its letter. */
const REQUESTS = 'r'
const BEATS = 'b'
const NAME = 'channel'
/** The two, and as many that have not said yet which they are: an engine may be anything. */
const MOST_CONNECTIONS = 4

/** The parent's end of the channel to an engine that it has not started itself. */
export interface EngineChannel {
  send(bytes: Buffer): void
  close(): void
}

/** Waits in the slot's folder, which only that slot's engine can enter, for its two connections. */
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
      // Whoever comes now is neither.
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
  // Made for this user alone; its folder is that of the engine's group.
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

/** The engine's end. */
export function connectToParent(folder: string, kind: 'requests' | 'beats'): Socket {
  const opened = openShort(folder)
  const socket = new Socket()
  socket.once('connect', () => opened.close())
  socket.connect(opened.path)
  socket.write(kind === 'requests' ? REQUESTS : BEATS)
  return socket
}

/** Paths of sockets are cut at 107 bytes: this one is by a descriptor of its folder. */
function openShort(folder: string): { readonly path: string; close(): void } {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  return { path: `/proc/self/fd/${fd}/${NAME}`, close: () => closeSync(fd) }
}
