import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createReadGate } from '../../../src/protocol/edge/read-gate.ts'

const limits = { running: 3, runningOfOne: 2, waiting: 4, waitingOfOne: 3, lingerMs: 20 }

interface Reader {
  readonly entered: Promise<boolean>
  /** Whether the gate has let the reader begin by now. */
  began(): Promise<boolean>
  answer(): void
  leave(): void
}

function readersOf(gate: ReturnType<typeof createReadGate>): (address: string) => Reader {
  return (address) => {
    const response = Object.assign(new EventEmitter(), { destroyed: false })
    const request = { socket: { remoteAddress: address } } as unknown as IncomingMessage
    const entered = gate.enter(request, response as unknown as ServerResponse)
    entered.catch(() => {})
    return {
      entered,
      began: () => Promise.race([entered, new Promise<false>((resolve) => setImmediate(() => resolve(false)))]),
      answer: () => void response.emit('prefinish'),
      leave: () => {
        response.destroyed = true
        response.emit('close')
      },
    }
  }
}

describe('The gate before reads of history', () => {
  it('limits the readers at once, in all and for each address, and admits the next in order of arrival', async () => {
    const reader = readersOf(createReadGate(limits))
    const [a1, a2, a3, b1, b2] = [reader('a'), reader('a'), reader('a'), reader('b'), reader('b')]
    const began = () => Promise.all([a1, a2, a3, b1, b2].map((one) => one.began()))
    expect(await began()).toEqual([true, true, false, true, false])
    a1.answer()
    expect(await began()).toEqual([true, true, true, true, false])
    // A response that closes after its answer does not free a second place.
    a1.leave()
    expect(await began()).toEqual([true, true, true, true, false])
    b1.answer()
    expect(await began()).toEqual([true, true, true, true, true])
  })

  it('counts the addresses of an IPv6 network as a single address', async () => {
    const reader = readersOf(createReadGate(limits))
    const readers = ['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8:0:1::1'].map(reader)
    expect(await Promise.all(readers.map((one) => one.began()))).toEqual([true, true, false, true])
  })

  it('answers 429 when too many readers wait, in all or from the same address', async () => {
    const reader = readersOf(createReadGate(limits))
    const running = [reader('a'), reader('a'), reader('b')]
    const waiting = [reader('a'), reader('a'), reader('a')]
    await expect(reader('a').entered).rejects.toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
    waiting.push(reader('b'))
    await expect(reader('c').entered).rejects.toMatchObject({ status: 429 })
    for (const one of [...running, ...waiting]) one.answer()
    for (const one of waiting) {
      expect(await one.entered).toBe(true)
      one.answer()
    }
    expect(await reader('c').entered).toBe(true)
  })

  it('keeps the place of a reader that disconnected until its answer is made or the linger time is over', async () => {
    const reader = readersOf(createReadGate({ ...limits, running: 1, lingerMs: 3_600_000 }))
    const [first, second] = [reader('a'), reader('b')]
    first.leave()
    expect(await second.began()).toBe(false)
    first.answer()
    expect(await second.entered).toBe(true)
    const hasty = readersOf(createReadGate({ ...limits, running: 1, lingerMs: 1 }))
    const [gone, next] = [hasty('a'), hasty('b')]
    gone.leave()
    expect(await next.entered).toBe(true)
  })

  it('skips waiting readers that disconnected', async () => {
    const reader = readersOf(createReadGate(limits))
    const running = [reader('a'), reader('a'), reader('b')]
    const gone = reader('c')
    const next = reader('d')
    gone.leave()
    expect(await gone.entered).toBe(false)
    running[0]!.answer()
    expect(await next.entered).toBe(true)
  })

  it('never exceeds the limit of readers at once while readers arrive and leave', async () => {
    const reader = readersOf(
      createReadGate({ running: 3, runningOfOne: 2, waiting: 1000, waitingOfOne: 1000, lingerMs: 60_000 }),
    )
    let running = 0
    let most = 0
    await Promise.all(
      Array.from({ length: 300 }, async (_, index) => {
        const one = reader(String(index % 5))
        if (index % 7 === 0) setImmediate(one.leave)
        if (!(await one.entered)) return
        most = Math.max(most, ++running)
        await new Promise((resolve) => setImmediate(resolve))
        running--
        one.answer()
      }),
    )
    expect([running, most]).toEqual([0, 3])
  })
})
