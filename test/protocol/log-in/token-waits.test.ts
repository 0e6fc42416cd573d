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

it('whoever waits while the server drains is told at once to come again, and so is who comes then', async () => {
  vi.useFakeTimers()
  const held = [wait(), wait(), wait(second, '192.0.2.2')]
  waits.stop()
  // No time has passed.
  expect(await Promise.all([...held, wait()])).toEqual(Array.from({ length: 4 }, () => ({ kind: 'waiting' })))
  expect(waits.stopped()).toBe(true)
})

it('of those who wait for a log-in one is given the token, and the others are told so', async () => {
  const held = [wait(), wait(), wait(second)]
  ended = [{ id: first, outcome: 'the token' }]
  expect(await Promise.all(held.slice(0, 2))).toEqual([{ kind: 'ended', outcome: 'the token' }, { kind: 'taken' }])
  waits.stop()
  expect(await held[2]).toEqual({ kind: 'waiting' })
})

it('who goes is waited for no more; while the database is away nobody waits in vain', async () => {
  const leaving = new AbortController()
  const left = wait(first, '192.0.2.1', leaving.signal)
  leaving.abort()
  expect(await left).toEqual({ kind: 'waiting' })
  const held = expect(wait()).rejects.toThrow('away')
  trouble = new Error('away')
  await held
})

it('an address leaves places to others, and has enough for all who are behind it', async () => {
  const many = Array.from({ length: 1_501 }, () => wait())
  expect(await wait()).toEqual({ kind: 'full' })
  const other = wait(first, '192.0.2.2')
  waits.stop()
  expect(new Set((await Promise.all([...many, other])).map(({ kind }) => kind))).toEqual(new Set(['waiting']))
})
