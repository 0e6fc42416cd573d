import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { FeedRefusedError, followEvents, parseEventStream, type ServerSentEvent } from '../../src/cli/event-stream.ts'
import { createHttpClient } from '../../src/shared/http-client.ts'
import { createServerTrust } from '../../src/shared/server-trust.ts'

const http = createHttpClient(createServerTrust({}), { keepAlive: false })

async function* inParts(text: string, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0, index = 0; at < bytes.length; index++) {
    const size = sizes[index % sizes.length]!
    yield bytes.subarray(at, at + size)
    at += size
  }
}

async function parsed(text: string, sizes: readonly number[] = [1e6]): Promise<ServerSentEvent[]> {
  const events: ServerSentEvent[] = []
  for await (const event of parseEventStream(inParts(text, sizes))) events.push(event)
  return events
}

const TEXT =
  'retry: 1000\nid: 0-2\n\n: a comment\n\nid: 0-3\r\nevent: QueryCreated\r\ndata: {"é":\r\ndata: 1}\r\n\r\n' +
  'data:no id\n\nunknown: x\nevent\ndata: y\n\nid: 0-4\ndata: cut off'

describe('`parseEventStream`', () => {
  const expected = [
    { id: '0-2', event: 'message', data: '' },
    { id: '0-3', event: 'QueryCreated', data: '{"é":\n1}' },
    { id: '0-3', event: 'message', data: 'no id' },
    { id: '0-3', event: 'message', data: 'y' },
  ]

  it('gives complete blocks with the last id, and drops a block that was cut off', async () => {
    expect(await parsed(TEXT)).toEqual(expected)
  })

  it('gives the same events however the bytes are split', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), async (sizes) => {
        expect(await parsed(TEXT, sizes)).toEqual(expected)
      }),
    )
  })
})

describe('`followEvents`', () => {
  let server: Server | undefined
  afterEach(() => {
    server?.close()
    server?.closeAllConnections()
  })

  async function serve(answer: (request: IncomingMessage, response: ServerResponse, index: number) => void) {
    let index = 0
    server = createServer((request, response) => answer(request, response, index++)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/events`
  }

  it('reconnects after the last id, also an id without an event, however the connection ended', async () => {
    const asked: (string | undefined)[] = []
    const url = await serve((request, response, index) => {
      asked.push(request.headers['last-event-id'] as string | undefined)
      switch (index) {
        case 0:
          return void response.end('id: 0-5\n\n')
        case 1:
          // The second event is cut in the middle.
          response.write('id: 0-6\nevent: A\ndata: 6\n\nid: 0-7\nevent: B\nda', () => response.destroy())
          return
        case 2:
          return void response.writeHead(503).end('not yet')
        default:
          return void response.end('id: 0-7\nevent: B\ndata: 7\n\n')
      }
    })
    const stopping = new AbortController()
    const lost: string[] = []
    const got: string[] = []
    const request = { url, headers: {}, after: undefined, signal: stopping.signal }
    for await (const event of followEvents({ ...request, http, onLost: (error) => void lost.push(error.message) })) {
      got.push(`${event.id} ${event.event} ${event.data}`)
      if (got.length === 2) stopping.abort()
    }
    expect(got).toEqual(['0-6 A 6', '0-7 B 7'])
    expect(asked).toEqual([undefined, '0-5', '0-6', '0-6'])
    expect(lost).toHaveLength(2)
    expect(lost[1]).toBe('The server answered 503: not yet')
  })

  it('gives up when the server refuses the position', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(410, { 'content-type': 'application/problem+json' })
      response.end('{"detail":"The log ends before 0-9"}')
    })
    const following = followEvents({ url, http, headers: {}, after: '0-9', signal: new AbortController().signal })
    await expect(following.next()).rejects.toThrow(
      new FeedRefusedError('The server answered 410: The log ends before 0-9'),
    )
  })
})
