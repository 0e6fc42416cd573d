import { describe, expect, it } from 'vitest'
import { announcementSchema, taskStatusSchema, taskUpdateSchema } from '../../../src/execution/api/task.ts'
import { recordedProtocol } from '../../support/recorded-protocol.ts'

const { exchanges } = recordedProtocol
const updates = exchanges.filter(({ method }) => method === 'POST').map(({ body }) => body)
const statuses = exchanges
  .filter(({ path }) => path.startsWith('/v1/task?since='))
  .flatMap(({ answer }) => answer as Record<string, unknown>[])
const announcements = exchanges.filter(({ path }) => path === '/v1/announcement').map(({ body }) => body)

const messages = [
  ['task updates', taskUpdateSchema, updates],
  ['task statuses', taskStatusSchema, statuses],
  ['announcements', announcementSchema, announcements],
] as const

describe.each(messages)('The messages of the previous version: %s', (_what, schema, recorded) => {
  it('are parsed without newer fields, and no field is lost', () => {
    expect(recorded.length).toBeGreaterThan(0)
    for (const message of recorded) expect(schema.parse(message)).toEqual(message)
  })

  it('may contain unknown fields at any depth', () => {
    for (const message of recorded) expect(schema.parse(withUnknown(message))).toEqual(message)
  })
})

/** Maps and values that are opaque to this interface: the schema keeps every key in them. */
const OPEN = new Set(['data', 'handle', 'columnBytes', 'typeSignature'])

function withUnknown(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withUnknown)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, one]) => [key, OPEN.has(key) ? one : withUnknown(one)])
  return { ...Object.fromEntries(entries), ofALaterVersion: { some: ['thing'] } }
}
