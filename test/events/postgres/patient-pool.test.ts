import { EventEmitter } from 'node:events'
import type pg from 'pg'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { PatientPool } from '../../../src/events/postgres/patient-pool.ts'

const WAIT_MS = 2_000

/** A connection to a database that accepts connections at once. */
class Connected extends EventEmitter {
  readonly _queryable = true
  connect(done: () => void): void {
    done()
  }
  end(done: () => void): void {
    done()
  }
}

let pool: pg.Pool

beforeEach(() => {
  vi.useFakeTimers()
  const Client = Connected as unknown as new () => pg.ClientBase
  pool = new PatientPool({ max: 1, connectionTimeoutMillis: WAIT_MS, idleTimeoutMillis: 0, Client } as pg.PoolConfig)
})
afterEach(() => void vi.useRealTimers())

it('A pool lets a caller wait as long as the database answers the callers before it', async () => {
  const first = await pool.connect()
  const before = [pool.connect(), pool.connect(), pool.connect()]
  const last = pool.connect()
  const failed = vi.fn()
  last.catch(failed)
  let held = first
  for (const next of before) {
    await vi.advanceTimersByTimeAsync(WAIT_MS * 0.75)
    held.release()
    held = await next
  }
  await vi.advanceTimersByTimeAsync(WAIT_MS * 0.75)
  held.release()
  expect(await last).toBe(held)
  expect(failed).not.toHaveBeenCalled()
})

it('A pool rejects a caller when the database does not answer the callers before it in time', async () => {
  await pool.connect()
  const next = pool.connect()
  const rejected = expect(next).rejects.toThrow('timeout exceeded')
  await vi.advanceTimersByTimeAsync(WAIT_MS)
  await rejected
})

it('A pool does not count an answer that never came', async () => {
  const first = await pool.connect()
  const second = pool.connect()
  const third = pool.connect()
  const rejected = expect(third).rejects.toThrow('timeout exceeded')
  await vi.advanceTimersByTimeAsync(WAIT_MS / 2)
  first.release(new Error('Query read timeout'))
  await second
  await vi.advanceTimersByTimeAsync(WAIT_MS / 2)
  await rejected
})
