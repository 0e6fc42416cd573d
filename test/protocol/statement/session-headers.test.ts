import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { QuerySession } from '../../../src/coordinator/query/stream/events.ts'
import { sessionFromHeaders } from '../../../src/protocol/statement/session-headers.ts'
import { openAccess } from '../../support/access.ts'

/** Reads the session from these headers, which Node decodes as Latin-1. */
function session(headers: Readonly<Record<string, string>>): QuerySession {
  const sent = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), Buffer.from(value).toString('latin1')]),
  )
  const request = { headers: sent, socket: { remoteAddress: '127.0.0.1' } } as unknown as IncomingMessage
  return sessionFromHeaders(request, 'Trino', openAccess.actsAs(request), 'UTC')
}

const basic = (user: string): string => `Basic ${Buffer.from(`${user}:`).toString('base64')}`

/** Every header whose text is stored, with the limit in bytes for the value, or for each name in it. */
const LIMITED: readonly (readonly [header: string, bytes: number, of: (name: string) => string])[] = [
  ['X-Trino-User', 256, (name) => name],
  ['X-Trino-Original-User', 256, (name) => name],
  ['Authorization', 256, basic],
  ...['Source', 'Catalog', 'Path', 'Language', 'Client-Info', 'Trace-Token', 'Time-Zone'].map(
    (suffix) => [`X-Trino-${suffix}`, 1024, (name: string) => name] as const,
  ),
  ['User-Agent', 1024, (name) => name],
  ['X-Trino-Client-Tags', 1024, (name) => `nightly, ${name}`],
  ['X-Trino-Client-Capabilities', 1024, (name) => `PATH,${name}`],
  ['X-Trino-Role', 1024, (name) => `${name}=ROLE`],
  ['X-Trino-Role', 1024, (name) => `system=${encodeURIComponent(name)}`],
  ['X-Trino-Session', 1024, (name) => `${name}=1`],
  ['X-Trino-Session', 1024, (name) => `a=1,zone=${encodeURIComponent(name)}`],
  ['X-Trino-Resource-Estimate', 1024, (name) => `CPU_TIME=${encodeURIComponent(name)}`],
  ['X-Trino-Prepared-Statement', 1024, (name) => `${encodeURIComponent(name)}=SELECT+1`],
]

describe('The session headers of a client', () => {
  it.each(LIMITED)('%s is limited to names of %d bytes', (header, bytes, of) => {
    const stored = JSON.stringify(session({ [header]: of('x'.repeat(bytes)) })).toLowerCase()
    expect(stored).toContain('x'.repeat(bytes))
    expect(() => session({ [header]: of('x'.repeat(bytes + 1)) })).toThrow(
      expect.objectContaining({ status: 400, message: expect.stringMatching(`is longer than ${bytes} bytes$`) }),
    )
  })

  it.each(LIMITED)('%s is limited in bytes, not in characters (%d)', (header, bytes, of) => {
    const fitting = '本'.repeat(Math.floor(bytes / 3))
    expect(JSON.stringify(session({ [header]: of(fitting) }))).toContain(fitting)
    expect(() => session({ [header]: of(`${fitting}本`) })).toThrow(expect.objectContaining({ status: 400 }))
  })

  it('may name a schema of at most 1,024 bytes', () => {
    expect(session({ 'X-Trino-Catalog': 'c', 'X-Trino-Schema': 's'.repeat(1024) }).schema).toHaveLength(1024)
    expect(() => session({ 'X-Trino-Catalog': 'c', 'X-Trino-Schema': 's'.repeat(1025) })).toThrow('1024 bytes')
  })

  it('may have at most 1,000 entries each, not counting empty entries', () => {
    const tags = (entries: number, between: string) =>
      session({ 'X-Trino-Client-Tags': Array.from({ length: entries }, (_, index) => ` t${index} `).join(between) })
    for (const between of [',', ',,, ,']) {
      expect(tags(1000, between).clientTags).toEqual(Array.from({ length: 1000 }, (_, index) => `t${index}`))
      expect(() => tags(1001, between)).toThrow(
        expect.objectContaining({ status: 400, message: 'A header has more than 1000 entries' }),
      )
    }
    expect(session({ 'X-Trino-Client-Tags': ',, ,' }).clientTags).toEqual([])
  })

  it('may carry long prepared statements', () => {
    const sql = `SELECT '${'x'.repeat(20_000)}'`
    expect(session({ 'X-Trino-Prepared-Statement': `p=${encodeURIComponent(sql)}` }).preparedStatements).toEqual({
      p: sql,
    })
  })

  it('give a session in which every text is within the limits', () => {
    const many = Object.fromEntries(
      LIMITED.map(([header, bytes, of]) => [header, of('本'.repeat(Math.floor(bytes / 3)))]),
    )
    const texts = (value: unknown): string[] =>
      typeof value === 'string'
        ? [value]
        : typeof value === 'object' && value !== null
          ? Object.entries(value).flatMap(([key, one]) => [key, ...texts(one)])
          : []
    for (const text of texts(session({ ...many, 'X-Trino-Schema': 's' })))
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1024)
  })
})
