import type { IncomingMessage } from 'node:http'

/** Path and query of a request; its target may be in absolute form (`DELETE http://host/v1/… HTTP/1.1`). */
export interface RequestTarget {
  readonly path: string
  readonly query: URLSearchParams
}

export function requestTarget(request: IncomingMessage): RequestTarget {
  let target = request.url ?? '/'
  if (!target.startsWith('/')) {
    const scheme = target.indexOf('://')
    const slash = scheme < 0 ? -1 : target.indexOf('/', scheme + 3)
    target = slash < 0 ? '/' : target.slice(slash)
  }
  const mark = target.indexOf('?')
  return mark < 0
    ? { path: target, query: new URLSearchParams() }
    : { path: target.slice(0, mark), query: new URLSearchParams(target.slice(mark + 1)) }
}
