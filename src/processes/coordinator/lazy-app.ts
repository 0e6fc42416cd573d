import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CoordinatorAppDeps } from './coordinator-app.ts'

/** All resources except statements. Their libraries are loaded after statements are already served. */
export interface LazyApp {
  /** Answers a request. Waits until the libraries are loaded. */
  readonly handle: (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void
  /** Loads now, so that the first request does not wait. */
  load(): void
  close(): Promise<void>
}

export function createLazyApp(deps: CoordinatorAppDeps): LazyApp {
  const make = async () => (await import('./coordinator-app.ts')).createCoordinatorApp(deps)
  let made: ReturnType<typeof make> | undefined
  const load = () => (made ??= make())
  return {
    handle: (request, response, next) => void load().then(({ app }) => app(request, response, next), next),
    load: () => void load().catch(deps.base.onError),
    close: async () => (await made)?.feed.close(),
  }
}
