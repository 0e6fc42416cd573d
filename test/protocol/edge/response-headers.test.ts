import type { QueryId } from '../../../src/shared/ids.ts'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createGatedServer, type GatedServer } from '../../../src/processes/gated-server.ts'
import { loadConfig } from '../../../src/config/load-config.ts'
import { responseHeaders } from '../../../src/coordinator/query/session/session-headers.ts'
import { sendProblem, toProblem } from '../../../src/protocol/edge/problem.ts'
import { sendAnswer } from '../../../src/protocol/statement/send-answer.ts'
import { answerHeaders } from '../../../src/protocol/statement/session-headers.ts'
import { EngineError } from '../../../src/shared/engine-error.ts'
import type { SessionChange } from '../../../src/sql/front-end.ts'
import { exchange, requestText } from '../../support/raw-socket.ts'

let gate: GatedServer | undefined

afterEach(async () => {
  await gate?.close()
  gate = undefined
})

async function serve(listener: RequestListener): Promise<string> {
  gate = createGatedServer(loadConfig([], {}), () => false)
  gate.open(listener)
  await new Promise<void>((resolve) => gate!.server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(gate.server.address() as AddressInfo).port}`
}

interface Received {
  readonly status: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string
}

/** The answer to a GET. Its head is parsed strictly. */
async function get(base: string): Promise<Received> {
  const { text } = await exchange(base, requestText('GET / HTTP/1.1', ['Host: localhost', 'Connection: close']))
  const end = text.indexOf('\r\n\r\n')
  const [status = '', ...lines] = text.slice(0, end).split('\r\n')
  const headers = lines.map((line) => {
    const [, name, value] = /^([\w-]+): ?([\t\x20-\x7e\x80-\xff]*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Error(`Not a header: ${JSON.stringify(line)}`)
    return [name.toLowerCase(), value] as const
  })
  return { status, headers, body: text.slice(end + 4) }
}

/** One character of each plane of Unicode. */
const PLANES = Array.from({ length: 17 }, (_, plane) => String.fromCodePoint(plane * 0x10000 + 0x65e5))
const texts: readonly string[] = [
  ...PLANES,
  PLANES.join(''),
  'plain',
  '日本',
  'é',
  'a b',
  'quo\'te"s',
  '100%',
  '%41',
  '+',
  '~!*()',
  'a,b=c;d',
  '\u{10ffff}',
  '\u0085\u00a0\u2028\ufeff',
]
const unsendable: readonly string[] = [
  'a\r\nX-Evil: 1',
  'a\nb',
  'a\rb',
  'nu\0ll',
  '\u007f',
  '\u001b[31m',
  'lone \ud800',
  '\udc00 lone',
  ' edge',
  'edge ',
  '\tedge',
]

/** A change of each kind, with this text in each of its text fields. */
const changes: Record<SessionChange['kind'], (text: string) => SessionChange> = {
  SetCatalog: (text) => ({ kind: 'SetCatalog', catalog: text }),
  SetSchema: (text) => ({ kind: 'SetSchema', schema: text }),
  SetPath: (text) => ({ kind: 'SetPath', path: text }),
  SetSession: (text) => ({ kind: 'SetSession', name: 'query_max_run_time', value: text }),
  ClearSession: () => ({ kind: 'ClearSession', name: 'query_max_run_time' }),
  SetRole: (text) => ({ kind: 'SetRole', catalog: 'system', role: text }),
  AddedPrepare: (text) => ({ kind: 'AddedPrepare', name: text, sql: text }),
  DeallocatedPrepare: (text) => ({ kind: 'DeallocatedPrepare', name: text }),
  StartTransaction: () => ({ kind: 'StartTransaction', isolation: 'READ UNCOMMITTED', readOnly: false }),
  Commit: () => ({ kind: 'Commit' }),
  Rollback: () => ({ kind: 'Rollback' }),
  SetAuthorizationUser: (text) => ({ kind: 'SetAuthorizationUser', user: text }),
  ResetAuthorizationUser: () => ({ kind: 'ResetAuthorizationUser' }),
}
/** Decodes as clients do: `application/x-www-form-urlencoded`. */
const decoded = (value: string): string => decodeURIComponent(value.replaceAll('+', ' '))
/** Reads the bytes of a value as UTF-8, as clients do that send it back. */
const utf8 = (value: string): string => Buffer.from(value, 'latin1').toString('utf8')
/** Headers whose value is the text itself. */
const RAW = ['Set-Catalog', 'Set-Schema', 'Set-Path', 'Set-Authorization-User']

describe('The response headers that change the session of a client', () => {
  it.each(Object.keys(changes) as SessionChange['kind'][])(
    'carry any text of %s unchanged, or the text is refused with NOT_SUPPORTED',
    async (kind) => {
      let reported: { readonly header: string; readonly value: string } | undefined
      const base = await serve((request, response) => {
        sendAnswer(request, response, ['{}'], answerHeaders('Trino', [reported!]))
      })
      for (const text of [...texts, ...unsendable]) {
        try {
          reported = responseHeaders('20260101_000000_00000_00001' as QueryId, [changes[kind](text)])[0]!
        } catch (error) {
          expect([unsendable.includes(text), error instanceof EngineError && error.errorName]).toEqual([
            true,
            'NOT_SUPPORTED',
          ])
          continue
        }
        const { status, headers, body } = await get(base)
        expect([text, status]).toEqual([text, 'HTTP/1.1 200 OK'])
        expect(body).toBe('2\r\n{}\r\n0\r\n\r\n')
        const name = `x-trino-${reported.header.toLowerCase()}`
        const values = headers.filter(([other]) => other === name).map(([, value]) => value)
        expect(headers.map(([other]) => other)).not.toContain('x-evil')
        const wanted = text.replaceAll(/\p{Surrogate}/gu, '\ufffd')
        if (RAW.includes(reported.header)) expect(values.map(utf8)).toEqual([wanted])
        else if (kind === 'SetSession') expect(values.map(decoded)).toEqual([`query_max_run_time=${wanted}`])
        else if (kind === 'SetRole') expect(values.map(decoded)).toEqual([`system=${wanted}`])
        else if (kind === 'AddedPrepare')
          expect(values.flatMap((value) => value.split('=').map(decoded))).toEqual([wanted, wanted])
        else if (kind === 'DeallocatedPrepare') expect(values.map(decoded)).toEqual([wanted])
        else expect(values).toHaveLength(1)
      }
    },
  )

  it('cannot inject other headers if their event was recorded before names were validated', async () => {
    let value = ''
    const base = await serve((request, response) =>
      sendAnswer(request, response, ['{}'], answerHeaders('Presto', [{ header: 'Set-Schema', value }])),
    )
    for (value of [...texts, ...unsendable]) {
      const { status, headers } = await get(base)
      expect([value, status]).toEqual([value, 'HTTP/1.1 200 OK'])
      expect(headers.filter(([name]) => name === 'x-presto-set-schema')).toHaveLength(1)
      expect(headers.map(([name]) => name)).not.toContain('x-evil')
    }
  })
})

describe('A response head that cannot be sent', () => {
  it.each([
    ['an object', (value: string) => ({ 'transfer-encoding': 'chunked', 'x-a': value })],
    ['lists of an object', (value: string) => ({ 'transfer-encoding': 'chunked', 'x-a': ['b', value] })],
    ['a flat list', (value: string) => ['transfer-encoding', 'chunked', 'x-a', value]],
  ] as const)('becomes a single well-formed 500 answer if it is given as %s', async (_name, headers) => {
    const base = await serve((request, response) => {
      try {
        response.writeHead(200, headers('日本') as never)
      } catch (error) {
        sendProblem(request, response, toProblem(error))
      }
    })
    const { status, headers: sent, body } = await get(base)
    expect(status).toBe('HTTP/1.1 500 Internal Server Error')
    expect(sent.filter(([name]) => name === 'transfer-encoding')).toEqual([])
    expect(sent.find(([name]) => name === 'content-length')?.[1]).toBe(String(body.length))
    expect(body).toBe('Error 500 Internal Server Error: Internal error')
  })

  it('closes the connection if another head was sent before', async () => {
    const base = await serve((request, response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('half', () => sendProblem(request, response, toProblem(new Error('too late'))))
    })
    // If the connection stayed open, the client would read the next answer as the rest of this answer.
    const { text } = await exchange(base, requestText('GET / HTTP/1.1', ['Host: localhost', 'Connection: keep-alive']))
    expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe('half')
  })
})
