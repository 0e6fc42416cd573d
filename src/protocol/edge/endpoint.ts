import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpProblem } from './problem.ts'
import type { RoutePath } from './routes.ts'

export type Handler<A> = (request: IncomingMessage, response: ServerResponse, address: A) => Promise<void> | void

type Method = 'GET' | 'HEAD' | 'POST' | 'DELETE' | 'OPTIONS'
type Handlers<A> = Partial<Record<Method, Handler<A>>>

/** Addresses of one form on bare `node:http`, with their methods. The counterpart for Express is `resource`. */
export interface Endpoint {
  /** The form, as the OpenAPI document writes it. */
  readonly template: RoutePath
  readonly methods: readonly string[]
  /** @returns the handler for a path; undefined when the path has another form */
  at(path: string): ((request: IncomingMessage, response: ServerResponse) => Promise<void>) | undefined
}

/**
 * Makes an endpoint.
 * @param addressOf parses a path of this form; undefined for any other path; may throw an error that becomes the answer
 * @param handlers by method; HEAD uses the handler of GET if it has none, and any other method gets 405
 * @param refusal the message of a 405
 */
export function endpoint<A>(
  template: RoutePath,
  addressOf: (path: string) => A | undefined,
  handlers: Handlers<A>,
  refusal?: string,
): Endpoint {
  const methods = Object.keys(handlers)
  const allow = methods.join(', ')
  return {
    template,
    methods,
    at(path) {
      const address = addressOf(path)
      if (address === undefined) return undefined
      return async (request, response) => {
        const handler = handlerOf(handlers, request.method ?? 'GET')
        if (!handler) throw new HttpProblem(405, refusal ?? `Allowed here: ${allow}`, { allow })
        await handler(request, response, address)
      }
    },
  }
}

function handlerOf<A>(handlers: Handlers<A>, method: string): Handler<A> | undefined {
  return handlers[method as Method] ?? (method === 'HEAD' ? handlers.GET : undefined)
}

/** Finds the first endpoint that knows a path; undefined when none does. */
export function findEndpoint(endpoints: readonly Endpoint[], path: string): ReturnType<Endpoint['at']> {
  for (const one of endpoints) {
    const answer = one.at(path)
    if (answer) return answer
  }
  return undefined
}
