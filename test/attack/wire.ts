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
  /** As it is to stand in the request line; the path of the address otherwise. */
  readonly target?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer | string
  /** Of what is served: 5xx is no fault of the server. */
  readonly mayFail?: boolean
}

/** Pieces of bytes, each sent so long after the one before. */
export interface WirePiece {
  readonly bytes: Buffer
  readonly afterMs?: number
}

/** What no answer may hold, however it was asked for. */
export interface Secrets {
  /** By what it is called in a fault. */
  readonly words: Readonly<Record<string, string>>
}

/** How a case speaks with servers: all that it sends is kept, all that comes is looked at. */
export interface Wire {
  readonly sent: readonly Buffer[]
  /** A request in good form. @throws Fault: an answer that is none, 5xx, a secret */
  ask(url: string, request?: WireRequest): Promise<WireAnswer>
  /** Bytes as they are. @returns what came back, as far as it is HTTP. @throws Fault: bytes that are no HTTP, 5xx, a secret */
  exchange(port: number, pieces: readonly WirePiece[]): Promise<readonly RawResponse[]>
  /** Kept beside what is sent: what another than a socket brings to the server. */
  note(bytes: Buffer | string): void
}

/** A machine under load answers later than this only when the server hangs. */
const HANGS_MS = 90_000
/** A server that says nothing more for so long waits for the rest of a request. */
const IDLE_MS = 250
/** Internal places that no client may learn of. */
const INTERNAL = /\bat (?:async )?\S+ \(?(?:file:|node:|\/)|node:internal|dist\/[a-z]+\//

/** @param authorization of who is known, sent with each request that says nothing of it */
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

/** Header values travel as bytes; Node takes them as Latin-1. */
function latin1(value: string): string {
  return Buffer.from(value, 'utf8').toString('latin1')
}

/** All that came until the server ended the connection or fell silent. */
async function speak(port: number, pieces: readonly WirePiece[]): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1' })
  const parts: Buffer[] = []
  let heardAt = performance.now()
  let over = false
  socket.on('data', (part: Buffer) => {
    parts.push(part)
    heardAt = performance.now()
  })
  // What a server ends in the middle of a request it refuses, resets.
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
