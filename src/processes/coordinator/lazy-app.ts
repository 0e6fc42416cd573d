import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CoordinatorAppParts } from './coordinator-app.ts'

/** Every resource but statements, whose libraries are loaded when statements are served already. */
export interface LazyApp {
  /** Answers; waits for what must be loaded. */
  readonly handle: (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void
  /** Loads, so that the first request does not wait. */
  load(): void
  close(): Promise<void>
}

export function createLazyApp(parts: CoordinatorAppParts): LazyApp {
  const make = async () => (await import('./coordinator-app.ts')).createCoordinatorApp(parts)
  let made: ReturnType<typeof make> | undefined
  const load = () => (made ??= make())
  return {
    handle: (request, response, next) => void load().then(({ app }) => app(request, response, next), next),
    load: () => void load().catch(parts.base.onError),
    close: async () => (await made)?.feed.close(),
  }
}
