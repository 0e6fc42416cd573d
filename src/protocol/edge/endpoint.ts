import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpProblem } from './problem.ts'

export type Handler<A> = (request: IncomingMessage, response: ServerResponse, address: A) => Promise<void> | void

type Method = 'GET' | 'HEAD' | 'POST' | 'DELETE' | 'OPTIONS'
type Handlers<A> = Partial<Record<Method, Handler<A>>>

/** Addresses of one form on bare `node:http`, and all that can be done with them; `resource` is that of Express. */
export interface Endpoint {
  /** As the OpenAPI document writes it. */
  readonly template: string
  readonly methods: readonly string[]
  /** @returns what answers a request for a path; undefined when the path has another form */
  at(path: string): ((request: IncomingMessage, response: ServerResponse) => Promise<void>) | undefined
}

/**
 * @param addressOf what a path of this form names, undefined for any other path; may throw what is then the answer
 * @param handlers by method; without one of its own HEAD goes with GET, and any other method is 405
 * @param refusal what a 405 says
 */
export function endpoint<A>(
  template: string,
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

/** The first that knows a path answers; undefined when none does. */
export function findEndpoint(endpoints: readonly Endpoint[], path: string): ReturnType<Endpoint['at']> {
  for (const one of endpoints) {
    const answer = one.at(path)
    if (answer) return answer
  }
  return undefined
}
