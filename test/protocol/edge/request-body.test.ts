import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, expect, it } from 'vitest'
import { discardBody, readBody } from '../../../src/protocol/edge/request-body.ts'
import { sendProblem, toProblem } from '../../../src/protocol/edge/problem.ts'
import { exchange } from '../../support/raw-socket.ts'

const MOST_BYTES = 1024 * 1024
let server: Server | undefined

afterEach(() => new Promise((resolve) => server?.close(resolve)))

async function serve(discards = false): Promise<string> {
  server = createServer((request, response) => {
    const read = discards
      ? discardBody(request, MOST_BYTES).then(() => Buffer.from('discarded'))
      : readBody(request, MOST_BYTES)
    read.then(
      (body) => response.writeHead(200, { 'content-length': body.length, connection: 'close' }).end(body),
      (error: unknown) => sendProblem(request, response, toProblem(error)),
    )
  })
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const HEAD = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n'

function chunked(body: Buffer, size: number): Buffer {
  const parts: Buffer[] = [Buffer.from(HEAD)]
  for (let at = 0; at < body.length; at += size) {
    const part = body.subarray(at, at + size)
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

it.each([
  ['of one byte', 900, 1],
  ['of 100 bytes', 500_000, 100],
  ['of 10 kB', MOST_BYTES, 10_000],
])('a body in chunks %s is read unchanged', async (_name, bytes, size) => {
  const body = Buffer.from(randomBytes(bytes / 2).toString('hex'))
  const { text } = await exchange(await serve(), chunked(body, size))
  expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe(body.toString())
})

// A megabyte of such chunks would be a million objects: 340 MB, and seconds without an answer to any other client.
it.each([
  ['read', false],
  ['discarded', true],
])('a body in too many small chunks is not %s to its end', async (_name, discards) => {
  const [sent, end] = [chunked(Buffer.alloc(1500, 'a'), 1), '0\r\n\r\n']
  const { statuses } = await exchange(await serve(discards), sent.subarray(0, sent.length - end.length))
  expect(statuses).toEqual([discards ? 200 : 400])
})

it.each([
  ['gzip', 415],
  ['identity, GZIP', 415],
  ['', 200],
  ['Identity', 200],
])('a request body with the encoding "%s" is answered %i', async (encoding, status) => {
  const body = gzipSync('SELECT 1')
  const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: ${encoding}\r\nContent-Length: ${body.length}\r\n`
  const { statuses, text } = await exchange(
    await serve(),
    Buffer.concat([Buffer.from(`${head}Connection: close\r\n\r\n`), body]),
  )
  expect(statuses).toEqual([status])
  if (status === 415) expect(text).toMatch(/accept-encoding: identity\r\n[^]*Content-Encoding/i)
})
