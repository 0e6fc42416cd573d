import { readFileSync } from 'node:fs'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { nextAddress, type WriterAddress, type WriterNews } from '../../../src/coordinator/recovery/epoch-follower.ts'
import { askInfo, createWriterLiveness, type Answer } from '../../../src/coordinator/recovery/writer-liveness.ts'
import { createHttpClient } from '../../../src/shared/http-client.ts'
import { createServerTrust } from '../../../src/shared/server-trust.ts'
import { createAuthority } from '../../support/certificates.ts'

const writer: WriterAddress = { epoch: 3, writer: 'w3', address: 'http://a:1', ended: false, takeOvers: [] }

function livenessOf(given: { address?: WriterAddress | undefined; deadWriter?: string; own?: string } = {}) {
  const world = {
    now: 0,
    address: 'address' in given ? given.address : writer,
    end: 3 as number | undefined,
    answer: 'writes' as Answer | undefined,
    asked: 0,
    lagMs: 0,
    wall: 0,
    written: undefined as WriterNews | undefined,
  }
  const liveness = createWriterLiveness({
    follower: {
      get writerAddress() {
        return world.address
      },
      epochAtEnd: async () => world.end,
      get written() {
        return world.written
      },
    },
    ownAddress: given.own ?? 'http://b:1',
    deadWriter: given.deadWriter,
    silentMs: 2000,
    jitterMs: 0,
    clock: { now: () => world.wall, monotonicMs: () => world.now },
    lagMs: () => world.lagMs,
    ask: () => {
      world.asked++
      return world.answer ? Promise.resolve(world.answer) : new Promise(() => {})
    },
  })
  return { liveness, world }
}

describe('The check of the writer before a claim', () => {
  it('returns "claim" without a request when there is no writer or its end is known', async () => {
    for (const [given, end] of [
      [{ address: undefined }, 0],
      [{ deadWriter: 'w3' }, 3],
      [{ own: 'http://a:1' }, 3],
      [{ address: { ...writer, ended: true } }, 3],
    ] as const) {
      const { liveness, world } = livenessOf(given)
      world.end = end
      expect(await liveness.check()).toBe('claim')
      expect(world.asked).toBe(0)
    }
  })

  it('returns "claim" when the connection to the writer is refused', async () => {
    const { liveness, world } = livenessOf()
    world.answer = 'gone'
    expect(await liveness.check()).toBe('claim')
  })

  it('never returns "claim" while the certificate of the writer cannot be verified', async () => {
    const { liveness, world } = livenessOf()
    world.answer = 'unverified'
    for (world.now = 0; world.now <= 60_000; world.now += 500) expect(await liveness.check()).toBe('waiting')
    world.answer = 'silent'
    expect(await liveness.check()).toBe('claim')
  })

  it('returns "claim" after two seconds without an answer of the writer', async () => {
    const { liveness, world } = livenessOf()
    expect(await liveness.check()).toBe('writes')
    world.answer = 'silent'
    for (world.now = 500; world.now <= 2000; world.now += 500) expect(await liveness.check()).toBe('waiting')
    world.answer = 'writes'
    expect(await liveness.check()).toBe('writes')
    world.answer = 'silent'
    for (const until = world.now + 2000; world.now < until; world.now += 500)
      expect(await liveness.check()).toBe('waiting')
    world.now += 100
    expect(await liveness.check()).toBe('claim')
  })

  it('does not count the time in which this process stood still', async () => {
    const { liveness, world } = livenessOf()
    expect(await liveness.check()).toBe('writes')
    world.answer = 'silent'
    world.now = 60_000
    expect(await liveness.check()).toBe('waiting')
    expect(liveness.silentMs()).toBeLessThan(1000)
  })

  it('waits longer after changes of the writer in the last 15 minutes', async () => {
    const { liveness, world } = livenessOf({ address: { ...writer, takeOvers: [1000, 2000] } })
    world.wall = 60_000
    expect(await liveness.check()).toBe('writes')
    world.answer = 'silent'
    for (world.now = 500; world.now <= 8000; world.now += 500) expect(await liveness.check()).toBe('waiting')
    world.wall = 20 * 60_000
    expect(await liveness.check()).toBe('claim')
    expect(liveness.freedBy()).toBe('silence')
  })

  it('waits longer when the timers of this process run late', async () => {
    const { liveness, world } = livenessOf()
    world.lagMs = 1000
    expect(await liveness.check()).toBe('writes')
    world.answer = 'silent'
    for (world.now = 500; world.now <= 7500; world.now += 500) expect(await liveness.check()).toBe('waiting')
  })

  it('counts a record of the writer as a sign of life at the time of the record', async () => {
    const { liveness, world } = livenessOf()
    expect(await liveness.check()).toBe('writes')
    world.answer = 'silent'
    for (world.now = 500; world.now <= 6000; world.now += 500) {
      world.wall = world.now
      world.written = { epoch: 3, at: world.now }
      expect(await liveness.check()).toBe('waiting')
    }
    // The record is read now, but it was written long ago.
    world.now = 8100
    world.wall = 8100
    for (world.now = 6500; world.now <= 8000; world.now += 500) expect(await liveness.check()).toBe('waiting')
    world.written = { epoch: 3, at: 1000 }
    world.now = 8600
    expect(await liveness.check()).toBe('claim')
  })

  it('sends no second request while one is open, and returns "claim" when the writer never answers', async () => {
    const { liveness, world } = livenessOf()
    expect(await liveness.check()).toBe('writes')
    world.answer = undefined
    for (world.now = 500; world.now <= 2000; world.now += 500) expect(await liveness.check()).toBe('waiting')
    expect(world.asked).toBe(2)
    world.now = 2600
    expect(await liveness.check()).toBe('claim')
  })

  it('returns "behind" until the log is read to its end', async () => {
    const { liveness, world } = livenessOf({ deadWriter: 'w3' })
    world.end = undefined
    expect(await liveness.check()).toBe('behind')
    world.end = 3
    expect(await liveness.check()).toBe('claim')
  })

  it('starts the two seconds again for a new writer', async () => {
    const { liveness, world } = livenessOf()
    expect(await liveness.check()).toBe('writes')
    world.answer = 'silent'
    world.now = 1900
    expect(await liveness.check()).toBe('waiting')
    world.address = { ...writer, epoch: 4, writer: 'w4' }
    world.end = 4
    world.now = 2100
    expect(await liveness.check()).toBe('waiting')
    for (world.now = 2600; world.now <= 4100; world.now += 500) expect(await liveness.check()).toBe('waiting')
    world.now = 4200
    expect(await liveness.check()).toBe('claim')
  })

  it('waits two seconds for a new claimant without a known address', async () => {
    const { liveness, world } = livenessOf({ deadWriter: 'w3' })
    world.end = 4
    for (world.now = 0; world.now <= 2000; world.now += 500) expect(await liveness.check()).toBe('waiting')
    expect(await liveness.check()).toBe('claim')
  })
})

describe('`nextAddress`', () => {
  const data = { epoch: 4, writer: 'w4', partitions: 1, logId: 'l', address: 'http://b:1', version: '1' }
  const started = { stream: 'system', type: 'EpochStarted', time: '2026-01-02T03:04:05.000Z', data }

  it('returns the writer of the newest EpochStarted', () => {
    const next = { epoch: 4, writer: 'w4', address: 'http://b:1', ended: false, takeOvers: [] }
    expect(nextAddress(undefined, started)).toEqual(next)
    expect(nextAddress({ ...writer, ended: true }, started)).toEqual(next)
    expect(nextAddress({ ...writer, address: 'http://b:1' }, started)).toEqual(next)
    expect(nextAddress(writer, started)).toEqual({ ...next, takeOvers: [Date.parse(started.time)] })
    expect(nextAddress({ ...next, epoch: 5 }, started)).toEqual({ ...next, epoch: 5 })
  })

  it('marks the writer as ended after EpochEnded of its own epoch', () => {
    const ended = (epoch: number) => ({
      stream: 'system',
      type: 'EpochEnded',
      time: '2026-01-02T03:04:05.000Z',
      data: { epoch, writer: 'w', reason: 'drained' },
    })
    expect(nextAddress(writer, ended(3))).toEqual({ ...writer, ended: true })
    expect(nextAddress(writer, ended(2))).toBe(writer)
  })

  it('ignores events of other streams', () => {
    expect(nextAddress(writer, { ...started, stream: 'node/a' })).toBe(writer)
  })
})

describe('`askInfo`', () => {
  it('distinguishes an unverified certificate, a silent, a writing and an absent server', async () => {
    const [own, others] = await Promise.all([createAuthority(), createAuthority()])
    const server = createTlsServer((_asked, answer) => answer.end(JSON.stringify({ writer: true, epoch: 3 })))
    const { cert, key } = await others.issue('writer')
    const mine = await own.issue('writer')
    const http = createHttpClient(createServerTrust({ tlsCaFile: own.ca }), {})
    try {
      server.setSecureContext({ cert: readFileSync(cert), key: readFileSync(key) })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      const at = (address: string): Promise<Answer> => askInfo(http, { ...writer, address })
      expect(await at(`https://127.0.0.1:${port}`)).toBe('unverified')
      expect(await at(`http://127.0.0.1:${port}`)).toBe('silent')
      server.setSecureContext({ cert: readFileSync(mine.cert), key: readFileSync(mine.key) })
      expect(await at(`https://127.0.0.1:${port}`)).toBe('writes')
      server.close().closeAllConnections()
      expect(await at(`https://127.0.0.1:${port}`)).toBe('gone')
    } finally {
      http.close()
      await Promise.all([own.remove(), others.remove()])
    }
  })
})
