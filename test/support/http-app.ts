import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type Router } from 'express'

export interface HttpApp {
  readonly base: string
  close(): Promise<void>
}

/** Serves routers on a free port. */
export async function serve(...routers: Router[]): Promise<HttpApp> {
  const app = express()
  app.disable('x-powered-by')
  for (const router of routers) app.use(router)
  return serveListener(app)
}

/** Serves requests on a free port. */
export async function serveListener(listener: RequestListener): Promise<HttpApp> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
