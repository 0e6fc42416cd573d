import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from './attack-case.ts'
import { parseResponses, type RawResponse } from './raw-response.ts'

export interface WireAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface WireRequest {
  readonly method?: string
  /** The target in the request line. @default path and query of the address */
  readonly target?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer | string
  /** Whether a status 5xx is allowed. */
  readonly mayFail?: boolean
}

/** A piece of bytes, sent `afterMs` after the piece before. */
export interface WirePiece {
  readonly bytes: Buffer
  readonly afterMs?: number
}

/** The words that no answer may contain. */
export interface Secrets {
  /** The words by their names in faults. */
  readonly words: Readonly<Record<string, string>>
}

/** The connection of a case to the servers. It records all sent bytes and checks all answers. */
export interface Wire {
  readonly sent: readonly Buffer[]
  /** Sends a well-formed request. @throws Fault for a missing answer, a status 5xx or a secret in the answer */
  ask(url: string, request?: WireRequest): Promise<WireAnswer>
  /** Sends raw bytes. @returns the responses. @throws Fault for invalid HTTP, a status 5xx or a secret in the bytes */
  exchange(port: number, pieces: readonly WirePiece[]): Promise<readonly RawResponse[]>
  /** Records bytes that reach the server by another way than a socket. */
  note(bytes: Buffer | string): void
}

/** A request without an answer for this long means that the server hangs, even under load. */
const HANGS_MS = 90_000
/** A server that sends nothing for this long waits for the rest of a request. */
const IDLE_MS = 250
/** Stack traces and internal paths, which no client may see. */
const INTERNAL = /\bat (?:async )?\S+ \(?(?:file:|node:|\/)|node:internal|dist\/[a-z]+\//

/** @param authorization the default authorization header, for requests without their own */
export function createWire(secrets: Secrets, agent: Agent, authorization?: string): Wire {
  const sent: Buffer[] = []

  function look(what: string, text: string): void {
    for (const [name, word] of Object.entries(secrets.words)) {
      if (text.includes(word)) throw new Fault(`${what} holds ${name}`)
    }
    const inside = INTERNAL.exec(text)
    if (inside) throw new Fault(`${what} shows the inside of the server: ${inside[0]}`)
  }

  function lookAtAnswer(what: string, { status, headers, text }: WireAnswer, mayFail: boolean): void {
    look(what, `${JSON.stringify(headers)}\n${text}`)
    if (status >= 500 && !mayFail) throw new Fault(`${what}: ${status} ${text.slice(0, 200)}`)
  }

  return {
    sent,
    note: (bytes) => void sent.push(Buffer.from(bytes)),
    async ask(url, request = {}) {
      const { hostname, port, pathname, search } = new URL(url)
      const method = request.method ?? (request.body === undefined ? 'GET' : 'POST')
      const target = request.target ?? pathname + search
      const body = request.body === undefined ? undefined : Buffer.from(request.body)
      const says = Object.keys(request.headers ?? {}).some((name) => name.toLowerCase() === 'authorization')
      const headers = {
        ...(authorization === undefined || says ? {} : { authorization }),
        ...(body === undefined ? {} : { 'content-length': String(body.length) }),
        ...Object.fromEntries(Object.entries(request.headers ?? {}).map(([name, value]) => [name, latin1(value)])),
      }
      const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      sent.push(
        Buffer.concat([
          Buffer.from(`${method} ${target} HTTP/1.1\r\n${head.join('')}\r\n`, 'latin1'),
          body ?? Buffer.alloc(0),
        ]),
      )
      const what = `${method} ${port} ${pathname.slice(0, 60)}`
      const answer = await new Promise<WireAnswer>((resolve, reject) => {
        const fail = (why: string): void => reject(new Fault(`${what}: ${why}`))
        const asked = httpRequest({ hostname, port, agent, method, path: target, headers }, (response) => {
          const parts: Buffer[] = []
          response.on('data', (part: Buffer) => parts.push(part))
          response.on('error', (error) => fail(`the answer broke off: ${error.message}`))
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text: Buffer.concat(parts).toString('utf8'),
            }),
          )
        })
        asked.setTimeout(HANGS_MS, () => asked.destroy(new Error(`no answer in ${HANGS_MS} ms`)))
        asked.on('error', (error) => fail(error.message))
        asked.end(body)
      })
      lookAtAnswer(what, answer, request.mayFail ?? false)
      return answer
    },
    async exchange(port, pieces) {
      for (const { bytes } of pieces) sent.push(bytes)
      const bytes = await speak(port, pieces)
      look(`the answer at ${port}`, bytes.toString('latin1'))
      const { responses, wrong } = parseResponses(bytes)
      if (wrong !== undefined) throw new Fault(`the answer at ${port} is no HTTP: ${wrong}`)
      const failed = responses.find(({ status }) => status >= 500 && status !== 501 && status !== 505)
      if (failed) throw new Fault(`at ${port}: ${failed.status} ${failed.body.toString('utf8', 0, 200)}`)
      return responses
    },
  }
}

/** A header value as Node expects it: its UTF-8 bytes as Latin-1 characters. */
function latin1(value: string): string {
  return Buffer.from(value, 'utf8').toString('latin1')
}

/** Sends pieces and returns all bytes until the server closes the connection or is silent. */
async function speak(port: number, pieces: readonly WirePiece[]): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1' })
  const parts: Buffer[] = []
  let heardAt = performance.now()
  let over = false
  socket.on('data', (part: Buffer) => {
    parts.push(part)
    heardAt = performance.now()
  })
  // The connection is reset when a server refuses a request in the middle.
  socket.on('error', () => {})
  socket.on('close', () => (over = true))
  for (const { bytes, afterMs = 0 } of pieces) {
    if (afterMs > 0) await sleep(afterMs)
    if (!over) socket.write(bytes)
  }
  const since = performance.now()
  while (!over && performance.now() - Math.max(since, heardAt) < IDLE_MS) await sleep(10)
  socket.destroy()
  return Buffer.concat(parts)
}
