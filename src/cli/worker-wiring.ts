import type { RequestListener } from 'node:http'
import type { ChildLife } from './child-life.ts'
import { version } from './version.ts'

/** A worker whose parts are wired. */
export interface WiredWorker {
  readonly listener: RequestListener
  /** No new tasks; what coordinators wait for is answered. */
  drain(): Promise<void>
  /** After the last answer: ends engines, closes what is open. */
  stop(): Promise<void>
}

/**
 * Puts a worker together.
 * @param url the address under which coordinators reach it
 */
export async function wireWorker(life: ChildLife, url: string): Promise<WiredWorker> {
  return {
    listener: (request, response) => {
      response.setHeader('Content-Type', 'application/json')
      if (request.url !== '/v1/info') return void response.writeHead(404).end('{"status":404}')
      response.end(
        JSON.stringify({
          nodeVersion: { version },
          environment: life.config.environment,
          coordinator: false,
          starting: false,
          uri: url,
        }),
      )
    },
    drain: async () => {},
    stop: async () => {},
  }
}
