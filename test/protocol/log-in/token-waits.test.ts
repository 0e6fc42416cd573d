import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTokenWaits, type LogInOutcome, type TokenWaits } from '../../../src/protocol/log-in/token-waits.ts'

const [first, second] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
const staying = new AbortController().signal

let ended: { readonly id: Buffer; readonly outcome: string | undefined }[]
let trouble: Error | undefined
let waits: TokenWaits
beforeEach(() => {
  ended = []
  trouble = undefined
  waits = createTokenWaits(() => ({
    async take(ids) {
      if (trouble) throw trouble
      return ended.splice(0).filter(({ id }) => ids.some((one) => one.equals(id)))
    },
  }))
})
afterEach(() => vi.useRealTimers())

const wait = (id = first, address = '192.0.2.1', signal = staying): Promise<LogInOutcome> =>
  waits.wait(id, address, signal)

it('token waits answer "waiting" at once, to old and new requests, when the server drains', async () => {
  vi.useFakeTimers()
  const held = [wait(), wait(), wait(second, '192.0.2.2')]
  waits.stop()
  // No time has passed.
  expect(await Promise.all([...held, wait()])).toEqual(Array.from({ length: 4 }, () => ({ kind: 'waiting' })))
  expect(waits.stopped()).toBe(true)
})

it('token waits give the token to the first request for a log-in, and answer "taken" to the others', async () => {
  const held = [wait(), wait(), wait(second)]
  ended = [{ id: first, outcome: 'the token' }]
  expect(await Promise.all(held.slice(0, 2))).toEqual([{ kind: 'ended', outcome: 'the token' }, { kind: 'taken' }])
  waits.stop()
  expect(await held[2]).toEqual({ kind: 'waiting' })
})

it('a token wait ends when its client disconnects, and fails when the database does not answer', async () => {
  const leaving = new AbortController()
  const left = wait(first, '192.0.2.1', leaving.signal)
  leaving.abort()
  expect(await left).toEqual({ kind: 'waiting' })
  const held = expect(wait()).rejects.toThrow('away')
  trouble = new Error('away')
  await held
})

it('token waits are limited for each address, with room for 1,501 requests of one address', async () => {
  const many = Array.from({ length: 1_501 }, () => wait())
  expect(await wait()).toEqual({ kind: 'full' })
  const other = wait(first, '192.0.2.2')
  waits.stop()
  expect(new Set((await Promise.all([...many, other])).map(({ kind }) => kind))).toEqual(new Set(['waiting']))
})
