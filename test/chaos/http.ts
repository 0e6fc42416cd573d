import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Asked {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeoutMs?: number
  /** Destroys the connection after this many bytes of the answer's body; 0: as soon as the request is sent. */
  readonly cutAfterBytes?: number
}

/** The answer is missing or incomplete: it is unknown what the server did. */
export class NoAnswer extends Error {}

/** The credentials for a server with HTTPS and passwords. */
export interface Access {
  /** The certificate (PEM) of the authority that signed the server's certificate. */
  readonly ca: string
  /** The password of every user. */
  readonly password: string
  /** Whether an answer comes from the proxy itself: then the request has reached no server. */
  readonly isProxys: (answer: Answer) => boolean
}

/** The connections of one client. */
export class Connection {
  readonly #agent: Agent
  readonly #headers: Readonly<Record<string, string>>
  readonly #isProxys: Access['isProxys']

  /** @param access for a server with HTTPS and passwords */
  constructor(user: string, access?: Access) {
    const options = { keepAlive: true, maxSockets: 4 }
    this.#agent = access ? new HttpsAgent({ ...options, ca: access.ca }) : new Agent(options)
    const credential = Buffer.from(`${user}:${access?.password}`).toString('base64')
    this.#headers = { 'x-trino-user': user, ...(access ? { authorization: `Basic ${credential}` } : {}) }
    this.#isProxys = access?.isProxys ?? (() => false)
  }

  /**
   * Sends one request with the user's name.
   * @throws NoAnswer
   */
  async ask(url: string, asked: Asked = {}): Promise<Answer> {
    const answer = await send(url, { ...asked, headers: { ...this.#headers, ...asked.headers } }, this.#agent)
    if (this.#isProxys(answer)) throw new NoAnswer(`${answer.status} of the proxy`)
    return answer
  }

  close(): void {
    this.#agent.destroy()
  }
}

function send(url: string, asked: Asked, agent: Agent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { protocol, hostname, port, pathname, search } = new URL(url)
    const { body, cutAfterBytes } = asked
    const fail = (why: string): void => reject(new NoAnswer(why))
    const cut = (): void => {
      fail('cut')
      request.destroy()
    }
    const request = (protocol === 'https:' ? httpsRequest : httpRequest)({
      hostname,
      port,
      agent,
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
