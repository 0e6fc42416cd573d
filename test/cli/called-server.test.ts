import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callServer } from '../../src/cli/called-server.ts'
import { runStatement } from '../../src/cli/statement-client.ts'
import { createAuthority, type TestAuthority } from '../support/certificates.ts'

let authority: TestAuthority
let other: TestAuthority
let seen: (string | undefined)[] = []
let next: string | undefined
const server = { url: '', close: () => {} }

beforeAll(async () => {
  authority = await createAuthority()
  other = await createAuthority()
  const { cert, key } = await authority.issue('server')
  const https = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
    seen.push(request.headers.authorization)
    const nextUri = request.method === 'POST' ? next : undefined
    response.end(JSON.stringify({ id: 'a', stats: { state: 'FINISHED' }, ...(nextUri && { nextUri }) }))
  })
  await new Promise<void>((resolve) => https.listen(0, '127.0.0.1', resolve))
  server.url = `https://localhost:${(https.address() as AddressInfo).port}`
  server.close = () => https.close()
})
afterAll(async () => {
  server.close()
  await Promise.all([authority.remove(), other.remove()])
})

async function asked(flags: Parameters<typeof callServer>[0], env: NodeJS.ProcessEnv): Promise<void> {
  const called = callServer({ server: server.url, ca: authority.ca, user: 'ada', ...flags }, env)
  const signal = new AbortController().signal
  for await (const _ of runStatement({ server: called, sql: 'SELECT 1', headers: {}, signal }));
  called.http.close()
}

describe('The server that a command calls', () => {
  it.each<[NodeJS.ProcessEnv, string | undefined]>([
    [{}, undefined],
    [{ QUIPU_PASSWORD: 'öpen: sesame' }, `Basic ${Buffer.from('ada:öpen: sesame').toString('base64')}`],
    [{ QUIPU_ACCESS_TOKEN: 'a.b.c' }, 'Bearer a.b.c'],
    [{ QUIPU_PASSWORD: '', QUIPU_ACCESS_TOKEN: '' }, undefined],
  ])('receives the credential in each request with the variables %j', async (env, authorization) => {
    seen = []
    next = `${server.url}/next`
    await asked({}, env)
    expect(seen).toEqual([authorization, authorization])
  })

  it('must have a certificate that the given authorities signed', async () => {
    seen = []
    await expect(asked({ ca: other.ca }, { QUIPU_PASSWORD: 'a' })).rejects.toThrow('Cannot reach')
    await expect(asked({ ca: undefined }, { QUIPU_PASSWORD: 'a' })).rejects.toThrow('Cannot reach')
    expect(seen).toEqual([])
    expect(() => callServer({ ca: '/nowhere.pem' }, {})).toThrow('Cannot use the certificates of /nowhere.pem')
  })

  it('is trusted through the file in QUIPU_TLS_CA_FILE', async () => {
    seen = []
    next = undefined
    await asked({ ca: undefined }, { QUIPU_TLS_CA_FILE: authority.ca })
    expect(seen).toEqual([undefined])
  })

  it('cannot lead the client with its credential to another server', async () => {
    seen = []
    next = server.url.replace('localhost', '127.0.0.1')
    await expect(asked({}, { QUIPU_ACCESS_TOKEN: 'a' })).rejects.toThrow('refers to https://127.0.0.1')
    expect(seen).toEqual(['Bearer a'])
  })

  it('gets no credential over plain HTTP, except on loopback', () => {
    const call = (url: string, env: NodeJS.ProcessEnv = { QUIPU_PASSWORD: 'a' }) => callServer({ server: url }, env)
    expect(() => call('http://quipu.example:8080')).toThrow('use https://')
    expect(() => call('http://10.0.0.1')).toThrow('use https://')
    expect(() => call('http://127.0.0.1.example')).toThrow('use https://')
    for (const mine of ['http://127.0.0.1:1', 'http://localhost', 'http://[::1]:1'])
      expect(call(mine).credentialsFor(mine)).toHaveProperty('authorization')
    expect(call('http://quipu.example:8080', {}).credentialsFor('http://any.example')).toEqual({})
  })

  it('gets either a password or a token, and only one with valid characters', () => {
    expect(() => callServer({}, { QUIPU_PASSWORD: 'a', QUIPU_ACCESS_TOKEN: 'b' })).toThrow('not both')
    expect(() => callServer({}, { QUIPU_ACCESS_TOKEN: 'a\r\nb' })).toThrow('is not a token')
    expect(() => callServer({ user: 'a:b' }, { QUIPU_PASSWORD: 'a' })).toThrow('must not contain a colon')
  })
})
