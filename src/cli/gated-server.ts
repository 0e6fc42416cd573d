import { createServer, type RequestListener, type Server } from 'node:http'
import type { Config } from '../config/load-config.ts'

/** An HTTP server that accepts at once and answers when its listener is there. */
export interface GatedServer {
  readonly server: Server
  /** From now on `listener` answers, those who waited first. */
  open(listener: RequestListener): void
  /** Accepts no more, ends idle connections, resolves when the answers under way are out. */
  close(): Promise<void>
}

/** Node's default of 5 s cuts clients that think between two polls. */
const KEEP_ALIVE_MS = 120_000
const SWEEP_MS = 20

/**
 * Requests that come before the parts are wired wait, so that a restart is a pause for clients and not an error; only
 * `early` is asked at once, for what can be said already, and returns false for all else.
 */
export function createGatedServer(
  config: Config,
  early: (...args: Parameters<RequestListener>) => boolean,
): GatedServer {
  let listener: RequestListener | undefined
  const waiting: Parameters<RequestListener>[] = []
  let closing = false
  const server = createServer(
    { maxHeaderSize: config.limits.headerBytes, keepAliveTimeout: KEEP_ALIVE_MS, noDelay: true },
    (request, response) => {
      // A client that goes on polling on its connection would keep a closing server open for ever.
      if (closing) response.shouldKeepAlive = false
      if (listener) return listener(request, response)
      if (!early(request, response)) waiting.push([request, response])
    },
  )
  return {
    server,
    open: (given) => {
      listener = given
      for (const [request, response] of waiting.splice(0)) if (!response.destroyed) given(request, response)
    },
    close: () =>
      new Promise((resolve) => {
        closing = true
        // A connection that was busy when the server closed is kept alive after its answer: look again.
        const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
        server.close(() => {
          clearInterval(sweep)
          resolve()
        })
        server.closeIdleConnections()
      }),
  }
}
