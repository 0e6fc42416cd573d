import { expect, it } from 'vitest'
import { engineReplySchema } from '../../../src/execution/engine/messages.ts'

const done = {
  type: 'done',
  id: 1,
  rows: 2,
  overflow: false,
  startedAt: 3,
  wallNanos: 4,
  cpuNanos: 5,
  cpuExact: true,
  residentBytes: 6,
  profileBytes: 0,
}

it.each([
  { type: 'ready' },
  { type: 'configured' },
  { type: 'failed', message: 'no' },
  { type: 'started', id: 1 },
  { type: 'again', id: 1 },
  done,
  { type: 'error', id: 1, message: 'no', broken: true },
  { type: 'memory', tags: { BASE_TABLE: 1 } },
])('engineReplySchema accepts the reply $type of an engine', (reply) => {
  expect(engineReplySchema.parse(reply)).toEqual(reply)
})

it.each([
  null,
  'ready',
  { type: 'stop' },
  { type: 'done', id: 1 },
  { ...done, rows: '2' },
  { ...done, rows: null },
  { type: 'error', id: '1', message: 'no' },
  { type: 'error', id: 1, message: { toString: 1 } },
  { type: 'memory', tags: { a: 'much' } },
])('engineReplySchema refuses %j', (reply) => {
  expect(engineReplySchema.safeParse(reply).success).toBe(false)
})
