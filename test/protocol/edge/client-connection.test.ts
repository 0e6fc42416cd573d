import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/load-config.ts'
import { createGatedServer, type GatedServer } from '../../../src/processes/gated-server.ts'
import { baseUri } from '../../../src/protocol/edge/base-uri.ts'
import { clientConnection, isLocal } from '../../../src/protocol/edge/client-connection.ts'
import { exchange, requestText } from '../../support/raw-socket.ts'

/** Shows how the server sees a request: the base of links, the address of the client, whether others can read along. */
async function shown(gate: GatedServer, headers: readonly string[], path = '/', host = 'quipu.test'): Promise<string> {
  const url = `http://127.0.0.1:${(gate.server.address() as AddressInfo).port}`
  const { text, statuses } = await exchange(
    url,
    requestText(`GET ${path} HTTP/1.1`, [`Host: ${host}`, 'Connection: close', ...headers]),
  )
  return statuses[0] === 200 ? text.slice(text.indexOf('\r\n\r\n') + 4) : String(statuses[0])
}

async function gateFor(proxies: string): Promise<GatedServer> {
  const gate = createGatedServer(loadConfig([], { QUIPU_TRUSTED_PROXIES: proxies }), () => false)
  gate.open((request, response) => {
    const { address, confidential } = clientConnection(request)
    const shown = `${baseUri(request)} ${address} ${confidential ? 'confidential' : 'open'}`
    const text = request.url === '/local' ? String(isLocal(request)) : shown
    response.writeHead(200, { 'content-length': text.length, connection: 'close' }).end(text)
  })
  await new Promise<void>((resolve) => gate.server.listen(0, '127.0.0.1', resolve))
  return gate
}

let proxied: GatedServer
let direct: GatedServer
let beside: GatedServer
beforeAll(async () => {
  proxied = await gateFor('127.0.0.0/8, 10.0.0.0/8, fd00::/8')
  direct = await gateFor('')
  beside = await gateFor('10.0.0.0/8')
})
afterAll(() => Promise.all([proxied, direct, beside].map((gate) => gate.close())))

describe('A request through a trusted proxy', () => {
  it.each<[headers: readonly string[], shown: string]>([
    // The proxy sends no headers. The request still does not count as one of this machine.
    [[], 'http://quipu.test 127.0.0.1 open'],
    [['X-Forwarded-Proto: https'], 'https://quipu.test 127.0.0.1 confidential'],
    [['X-Forwarded-For: 203.0.113.7'], 'http://quipu.test 203.0.113.7 open'],
    [['X-Forwarded-For: 203.0.113.7', 'X-Forwarded-Proto: HTTPS'], 'https://quipu.test 203.0.113.7 confidential'],
    [
      ['X-Forwarded-For: 203.0.113.7:4711', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: Shop.Example:8443'],
      'https://shop.example:8443 203.0.113.7 confidential',
    ],
    [
      ['X-Forwarded-Proto: https', 'X-Forwarded-Port: 443', 'X-Forwarded-Host: shop.example'],
      'https://shop.example 127.0.0.1 confidential',
    ],
    [['X-Forwarded-Proto: https', 'X-Forwarded-Port: 8443'], 'https://quipu.test:8443 127.0.0.1 confidential'],
    [['X-Forwarded-Port: 443'], 'http://quipu.test:443 127.0.0.1 open'],
    [['X-Forwarded-Port: 1', 'X-Forwarded-Host: a.b:2'], 'http://a.b:2 127.0.0.1 open'],
    // The values that the client wrote stand left of the values that its proxy added.
    [['X-Forwarded-For: 198.51.100.1, 203.0.113.7'], 'http://quipu.test 203.0.113.7 open'],
    [['X-Forwarded-For: nonsense, 203.0.113.7'], 'http://quipu.test 203.0.113.7 open'],
    [['X-Forwarded-For: 198.51.100.1', 'X-Forwarded-For: 203.0.113.7'], 'http://quipu.test 203.0.113.7 open'],
    [
      ['X-Forwarded-For: 198.51.100.1, 203.0.113.7', 'X-Forwarded-Proto: https, http'],
      'http://quipu.test 203.0.113.7 open',
    ],
    [['X-Forwarded-For: 203.0.113.7', 'X-Forwarded-Proto: https, http'], 'http://quipu.test 203.0.113.7 open'],
    [
      ['X-Forwarded-For: 203.0.113.7', 'X-Forwarded-Host: evil.example, good.example'],
      'http://good.example 203.0.113.7 open',
    ],
    // Several proxies in a chain.
    [['X-Forwarded-For: 203.0.113.7, 10.1.2.3'], 'http://quipu.test 203.0.113.7 open'],
    [
      ['X-Forwarded-For: 192.0.2.1, 203.0.113.7, 10.1.2.3', 'X-Forwarded-Proto: http, https, http'],
      'https://quipu.test 203.0.113.7 confidential',
    ],
    [
      ['X-Forwarded-For: 203.0.113.7, 10.1.2.3', 'X-Forwarded-Proto: https'],
      'https://quipu.test 203.0.113.7 confidential',
    ],
    [['X-Forwarded-For: 10.0.0.1, 10.1.2.3'], 'http://quipu.test 10.0.0.1 open'],
    [['X-Forwarded-For: 2001:db8::1'], 'http://quipu.test 2001:db8::1 open'],
    [['X-Forwarded-For: [2001:db8::1]:80, fd00::2'], 'http://quipu.test 2001:db8::1 open'],
    [['X-Forwarded-For: ::ffff:203.0.113.7'], 'http://quipu.test 203.0.113.7 open'],
    [['X-Forwarded-For: 203.0.113.7, unknown'], 'http://quipu.test 127.0.0.1 open'],
    [['X-Forwarded-For: unknown, 10.1.2.3'], 'http://quipu.test 10.1.2.3 open'],
    [['X-Forwarded-For:'], 'http://quipu.test 127.0.0.1 open'],
    // RFC 7239.
    [['Forwarded: for=203.0.113.7;proto=https;host=shop.example'], 'https://shop.example 203.0.113.7 confidential'],
    [['Forwarded: FOR="[2001:db8::1]:4711" ; Proto=HTTPS;by=10.0.0.1'], 'https://quipu.test 2001:db8::1 confidential'],
    [
      ['Forwarded: for=198.51.100.1;proto=https;host=evil.example, for=203.0.113.7;proto=http'],
      'http://quipu.test 203.0.113.7 open',
    ],
    [
      ['Forwarded: for=203.0.113.7;proto=https;host=shop.example', 'Forwarded: for=10.1.2.3;proto=http;host=inner'],
      'https://shop.example 203.0.113.7 confidential',
    ],
    [['Forwarded: for=203.0.113.7,for=_hidden;proto=https'], 'https://quipu.test 127.0.0.1 confidential'],
    [['Forwarded: for="203.0.113.7:80";host="shop.example:1"'], 'http://shop.example:1 203.0.113.7 open'],
    [['Forwarded: ,, for=203.0.113.7 ,'], 'http://quipu.test 203.0.113.7 open'],
    [['Forwarded: proto=https'], 'https://quipu.test 127.0.0.1 confidential'],
    // Both families of headers, and they agree.
    [
      ['Forwarded: for=203.0.113.7;proto=https', 'X-Forwarded-For: 203.0.113.7', 'X-Forwarded-Proto: https'],
      'https://quipu.test 203.0.113.7 confidential',
    ],
  ])('has the headers %j and counts as %s', async (headers, expected) => {
    expect(await shown(proxied, headers)).toBe(expected)
  })

  it.each<[headers: readonly string[]]>([
    [['X-Forwarded-For: nonsense']],
    [['X-Forwarded-For: 203.0.113.7, <script>']],
    [['X-Forwarded-For: 1.2.3.4.5']],
    [['X-Forwarded-For: fe80::1%eth0']],
    [['X-Forwarded-For: 203.0.113.7,']],
    [['X-Forwarded-Proto: ftp']],
    [['X-Forwarded-Proto: https, javascript']],
    [['X-Forwarded-Host: a b']],
    [['X-Forwarded-Host: user@shop.example']],
    [['X-Forwarded-Host: shop.example/path']],
    [['X-Forwarded-Port: 0']],
    [['X-Forwarded-Port: 65536']],
    [['X-Forwarded-Port: 80/evil']],
    // The two lists have different lengths, so the scheme of a hop is unclear.
    [['X-Forwarded-For: 203.0.113.7, 10.1.1.1, 10.1.2.3', 'X-Forwarded-Proto: https, http']],
    [['Forwarded: for=nonsense']],
    [['Forwarded: for=203.0.113.7:80']],
    [['Forwarded: for=203.0.113.7;for=203.0.113.8']],
    [['Forwarded: for="203.0.113.7']],
    [['Forwarded: nonsense']],
    [['Forwarded: for=203.0.113.7;proto=gopher']],
    [['Forwarded: for=203.0.113.7;host="a b"']],
    // A proxy that sets one family of headers passes on the other family as the client wrote it.
    [['Forwarded: for=198.51.100.1', 'X-Forwarded-For: 203.0.113.7']],
    [['Forwarded: for=203.0.113.7;proto=https', 'X-Forwarded-For: 203.0.113.7']],
    [['Forwarded: for=203.0.113.7;host=evil.example', 'X-Forwarded-For: 203.0.113.7']],
    [['Forwarded: proto=https', 'X-Forwarded-For: 203.0.113.7', 'X-Forwarded-Proto: http']],
  ])('gets the answer 400 if its headers are %j', async (headers) => {
    expect(await shown(proxied, headers)).toBe('400')
  })

  it('is read in time linear in the length of its headers', async () => {
    const gate = await gateFor('127.0.0.1')
    const many = (part: string): string => part.repeat(Math.floor(14_000 / part.length))
    for (const header of [
      `X-Forwarded-For: ${many('203.0.113.7, ')}203.0.113.8`,
      `Forwarded: ${many('for=203.0.113.7,')}for=203.0.113.8`,
    ])
      expect(await shown(gate, [header])).toBe('http://quipu.test 203.0.113.8 open')
    for (const header of [`Forwarded: for="${many('\\a')}`, `Forwarded: ${many(' ')}x`, `Forwarded: ${many('a')}`])
      expect(await shown(gate, [header])).toBe('400')
    await gate.close()
  })
})

describe('The headers of an untrusted proxy', () => {
  const reported = ['X-Forwarded-For: 203.0.113.7', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: evil.example']
  it.each([
    ['when no proxy is configured', () => direct],
    ['when another proxy is configured', () => beside],
  ])('are ignored %s', async (_name, gate) => {
    expect(await shown(gate(), [])).toBe('http://quipu.test 127.0.0.1 confidential')
    // The headers name another client, which may be on another machine.
    expect(await shown(gate(), reported)).toBe('http://quipu.test 127.0.0.1 open')
    expect(await shown(gate(), ['Forwarded: for=nonsense;proto=nonsense'])).toBe('http://quipu.test 127.0.0.1 open')
  })
})

describe('`isLocal`', () => {
  const local = (gate: GatedServer, headers: readonly string[], host = '127.0.0.1:8080'): Promise<string> =>
    shown(gate, headers, '/local', host)

  it.each(['127.0.0.1:8080', 'localhost:8080', 'LOCALHOST', '127.1.2.3', '[::1]:8080'])(
    'is true for a request from this machine to %s',
    async (host) => {
      expect([await local(direct, [], host), await local(beside, [], host)]).toEqual(['true', 'true'])
    },
  )

  it.each(['quipu.test', 'localhost.evil.example', '203.0.113.7:8080', '[2001:db8::1]:8080', '127.0.0.1.nip.io'])(
    'is false for the host %s: a proxy on this machine kept the Host of its client',
    async (host) => {
      expect(await local(direct, [], host)).toBe('false')
    },
  )

  it.each([
    'X-Forwarded-For: 127.0.0.1',
    'X-Forwarded-Proto: https',
    'Forwarded: for=unknown',
    'Via: 1.1 proxy',
    'X-Real-IP: 203.0.113.7',
    'True-Client-IP: 203.0.113.7',
  ])('is false when a proxy adds "%s"', async (header) => {
    expect(await local(direct, [header])).toBe('false')
    expect(await shown(direct, [header])).toContain(' open')
  })

  it('is false for a request from a trusted proxy, whatever its headers are', async () => {
    for (const headers of [
      [],
      ['X-Forwarded-For: unknown'],
      ['X-Forwarded-For: 127.0.0.1'],
      ['X-Forwarded-Proto: https'],
    ])
      expect(await local(proxied, headers), headers.join()).toBe('false')
  })
})

it('the configuration refuses trusted proxies that are not addresses or ranges', () => {
  for (const wrong of ['10.0.0.0/33', 'proxy.example', '10.0.0.0/8/8', 'fe80::/129', 'fe80::1%eth0', '10.0.0.0/'])
    expect(() => loadConfig(['--trusted-proxies', wrong], {}), wrong).toThrow(
      '--trusted-proxies: must be addresses, or ranges',
    )
})
