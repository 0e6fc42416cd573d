import type { RequestListener } from 'node:http'
import { Client } from 'pg'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import type { ChildLife } from './child-life.ts'
import { version } from './version.ts'

/** A coordinator whose parts are wired. */
export interface WiredCoordinator {
  readonly listener: RequestListener
  /** No admission any more; open polls are answered; the epoch is handed over. */
  drain(): Promise<void>
  /** After the last answer: closes what is open. */
  stop(): Promise<void>
}

/**
 * Puts the coordinator together.
 * @throws ExitError 64 or 69 with one line when something it needs is wrong or missing
 */
export async function wireCoordinator(life: ChildLife): Promise<WiredCoordinator> {
  const startedAt = performance.now()
  const database = new Client({ connectionString: await life.database(), connectionTimeoutMillis: 5_000 })
  try {
    await database.connect()
  } catch (error) {
    throw new ExitError(exitCodes.dependency, `Cannot connect to Postgres: ${(error as Error).message}`)
  }
  database.on('error', (error) =>
    life.fail(new ExitError(exitCodes.dependency, `Lost the connection to Postgres: ${error.message}`)),
  )
  return {
    listener: (request, response) => {
      response.setHeader('Content-Type', 'application/json')
      if (request.url !== '/v1/info') return void response.writeHead(404).end('{"status":404}')
      response.end(
        JSON.stringify({
          nodeVersion: { version },
          environment: life.config.environment,
          coordinator: true,
          starting: false,
          uptime: `${((performance.now() - startedAt) / 1000).toFixed(2)}s`,
        }),
      )
    },
    drain: async () => {},
    stop: () => database.end(),
  }
}
