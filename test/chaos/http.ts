import { request as httpRequest, type Agent, type IncomingHttpHeaders } from 'node:http'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Asked {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly agent: Agent
  readonly timeoutMs?: number
  /** Destroys the connection after so many bytes of the answer's body; 0: as soon as the request is sent. */
  readonly cutAfterBytes?: number
}

/** The connection did not bring a whole answer: nothing is known of what the server did. */
export class NoAnswer extends Error {}

/**
 * One request.
 * @throws NoAnswer
 */
export function ask(url: string, asked: Asked): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname, port, pathname, search } = new URL(url)
    const { body, cutAfterBytes } = asked
    const fail = (why: string): void => reject(new NoAnswer(why))
    const cut = (): void => {
      fail('cut')
      request.destroy()
    }
    const request = httpRequest({
      hostname,
      port,
      agent: asked.agent,
      method: asked.method ?? 'GET',
      path: pathname + search,
      headers: {
        ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
        ...asked.headers,
      },
    })
    request.setTimeout(asked.timeoutMs ?? 15_000, () => request.destroy(new Error('no answer in time')))
    request.on('error', (error) => fail(error.message))
    request.on('response', (response) => {
      const parts: Buffer[] = []
      let bytes = 0
      response.on('data', (part: Buffer) => {
        parts.push(part)
        bytes += part.length
        if (cutAfterBytes !== undefined && bytes >= cutAfterBytes) cut()
      })
      response.on('aborted', () => fail('cut short'))
      response.on('error', (error) => fail(error.message))
      response.on('end', () => {
        if (!response.complete) return fail('cut short')
        const text = Buffer.concat(parts).toString('utf8')
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
      })
    })
    request.end(body, () => {
      if (cutAfterBytes === 0) setTimeout(cut, 1)
    })
  })
}
