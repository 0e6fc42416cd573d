import { expect, it } from 'vitest'
import { createLogInStore } from '../../../src/security/authentication/log-in-store.ts'

it('the log-in store counts the addresses of an IPv6 network as a single source', async () => {
  const sources: string[] = []
  const store = createLogInStore(
    (text, values) => {
      if (text.startsWith('insert')) sources.push((values[3] as Buffer).toString('hex'))
      return Promise.resolve([{}])
    },
    Buffer.alloc(32, 1),
  )
  const [id, state, browser] = [Buffer.alloc(32), Buffer.alloc(32), Buffer.alloc(32)]
  for (const address of ['2001:db8::1', '2001:db8::2', '2001:db8:0:1::1', '203.0.113.7', '::ffff:203.0.113.7'])
    await store.ask({ id, state, browser, address, forMs: 1000, secrets: '{}' })
  const [one, neighbour, other, plain, mapped] = sources
  expect(neighbour).toBe(one)
  expect(mapped).toBe(plain)
  expect(new Set([one, other, plain]).size).toBe(3)
})
