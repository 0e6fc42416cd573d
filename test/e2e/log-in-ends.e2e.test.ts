import { expect, it } from 'vitest'
import { challengeOf, providerServer } from '../support/provider-server.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { raw, type RawAnswer } from '../support/statement-client.ts'

const { server, logIn } = providerServer({ QUIPU_SESSION_MS: '8s' })

/** As a client does it that is answered 401, whatever it asked for. */
async function again(refused: RawAnswer, login: string): Promise<{ authorization: string }> {
  expect(refused.status).toBe(401)
  return { authorization: `Bearer ${await logIn(login, challengeOf(refused.headers['www-authenticate']))}` }
}

it('a token that ends during a query is asked for anew, and the query goes on', { timeout: 240_000 }, async () => {
  const refused = await raw(`${server.url}/v1/statement`, { body: 'select 1' })
  const headers = await again(refused, 'alice')
  const begun = await raw(`${server.url}/v1/statement`, { body: 'select current_user', headers })
  expect(begun.status).toBe(200)
  let nextUri = begun.json.nextUri ?? ''
  let answer = await raw(nextUri, { headers })
  while (answer.status === 200 && answer.json.data === undefined) {
    nextUri = answer.json.nextUri!
    answer = await raw(nextUri, { headers })
  }
  // The same page, which it has not taken yet.
  await waitUntil('the token has ended', async () => (answer = await raw(nextUri, { headers })).status === 401)
  const anew = await again(answer, 'alice')
  expect((await raw(nextUri, { headers: anew })).json.data).toEqual([['alice']])
  // Nor is it another's by its address alone.
  const bob = await again(await raw(nextUri), 'bob')
  expect((await raw(nextUri, { headers: bob })).status).toBe(403)
})
