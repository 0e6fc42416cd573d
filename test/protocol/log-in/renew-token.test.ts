import { expect, it } from 'vitest'
import { endRenewable } from '../../../src/protocol/log-in/renew-token.ts'

it('`endRenewable` ends a session in this process although the database does not answer', async () => {
  const over: string[] = []
  const away = (): Promise<never> => Promise.reject(new Error('away'))
  const deps = {
    ended: () => ({
      has: () => false,
      end: async ({ id }: { readonly id: string }) => {
        over.push(id)
        await away()
      },
      stop: async () => {},
    }),
    renewals: () => ({ keep: away, take: away, put: away, release: away, drop: away }),
    clock: { now: () => 0 },
    tokens: { lifetimeMs: 1000 } as Parameters<typeof endRenewable>[0]['tokens'],
  }
  await expect(endRenewable(deps, 'session')).rejects.toThrow('away')
  expect(over).toEqual(['session'])
})
