import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { fetchKeys } from '../../src/security/authentication/jwks.ts'
import { createHttpClient } from '../../src/shared/http-client.ts'
import { createServerTrust } from '../../src/shared/server-trust.ts'

const http = createHttpClient(createServerTrust({}), {})
let stop = (): void => {}
afterEach(() => stop())

async function server(listener: RequestListener): Promise<number> {
  const opened = createServer(listener).listen(0, '127.0.0.1')
  stop = () => void opened.close()
  await once(opened, 'listening')
  return (opened.address() as AddressInfo).port
}

it('`fetchKeys` sends the password of the address, and follows no redirect', async () => {
  const port = await server(({ headers, url }, response) => {
    if (url === '/away') response.writeHead(302, { location: '/keys' })
    response.end(JSON.stringify([url, headers.authorization]))
  })
  const basic = `Basic ${Buffer.from('us er:p@ss').toString('base64')}`
  expect(JSON.parse(await fetchKeys(http, `http://us%20er:p%40ss@127.0.0.1:${port}/keys?x=1`))).toEqual([
    '/keys?x=1',
    basic,
  ])
  expect(JSON.parse(await fetchKeys(http, `http://127.0.0.1:${port}`))).toEqual(['/', null])
  await expect(fetchKeys(http, `http://127.0.0.1:${port}/away`)).rejects.toThrow('The server of the keys answered 302')
})

it('`fetchKeys` gives up an answer that is too long or breaks off', async () => {
  let sent = 0
  const port = await server(({ url }, response) => {
    if (url === '/short')
      return void response.writeHead(200, { 'content-length': 9 }).end('half', () => response.destroy())
    const timer = setInterval(() => (response.write(Buffer.alloc(64 * 1024)), (sent += 64 * 1024)), 1)
    response.on('close', () => clearInterval(timer))
  })
  await expect(fetchKeys(http, `http://127.0.0.1:${port}/endless`)).rejects.toThrow()
  expect(sent).toBeGreaterThan(1024 * 1024)
  await expect(fetchKeys(http, `http://127.0.0.1:${port}/short`)).rejects.toThrow()
})
