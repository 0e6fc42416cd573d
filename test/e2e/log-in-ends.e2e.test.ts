import { expect, it } from 'vitest'
import { challengeOf, providerServer } from '../support/provider-server.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { raw, type RawAnswer } from '../support/statement-client.ts'

const bed = providerServer({ QUIPU_SESSION_MS: '8s', QUIPU_OAUTH2_SCOPES: 'openid,offline_access' })
const { server, logIn, answerOf } = bed

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const statusOf = async (token: string): Promise<number> =>
  (await raw(`${server.url}/v1/query`, { headers: bearer(token) })).status

/** The token address in a 401 of a session that can be renewed without a browser. */
function renewalOf({ status, headers }: RawAnswer): string {
  expect(status).toBe(401)
  const [, address] = /^Bearer x_token_server="([^"]+)"$/.exec(String(headers['www-authenticate']))!
  return address!
}

async function revoke(token: string): Promise<void> {
  const body = new URLSearchParams({ token }).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const { status, text } = await raw(`${server.url}/oauth2/revoke`, { body, headers })
  expect([status, text]).toEqual([200, ''])
}

it(
  'a token that expires during a query is renewed without a browser, and the query continues',
  { timeout: 240_000 },
  async () => {
    const alice = await logIn('alice')
    const headers = bearer(alice)
    const begun = await raw(`${server.url}/v1/statement`, { body: 'select current_user', headers })
    expect(begun.status).toBe(200)
    let nextUri = begun.json.nextUri ?? ''
    let answer = await raw(nextUri, { headers })
    while (answer.status === 200 && answer.json.data === undefined) {
      nextUri = answer.json.nextUri!
      answer = await raw(nextUri, { headers })
    }
    // The same page, which the program has not read yet.
    await waitUntil('the token has ended', async () => (answer = await raw(nextUri, { headers })).status === 401)
    // A program has several requests under way.
    const addresses = await Promise.all(
      Array.from({ length: 6 }, async () => renewalOf(await raw(nextUri, { headers }))),
    )
    const given = await Promise.all(addresses.map(answerOf))
    const tokens = given.map(({ token }) => token!)
    expect(tokens).toEqual(tokens.map(() => expect.stringMatching(/^quipu~or~/) as string))
    expect((await raw(nextUri, { headers: bearer(tokens[5]!) })).json.data).toEqual([['alice']])
    expect(await answerOf(addresses[0]!)).toEqual({ error: 'This token was already given' })
    // An expired token that was altered is not accepted for renewal.
    const forged = await raw(nextUri, { headers: bearer(`${alice.slice(0, -4)}AAAA`) })
    expect(challengeOf(forged.headers['www-authenticate']).initiate).toContain('/initiate/')
    // The address of the page alone gives another user no access.
    const bob = await logIn('bob', challengeOf((await raw(nextUri)).headers['www-authenticate']))
    expect((await raw(nextUri, { headers: bearer(bob) })).status).toBe(403)
  },
)

it(
  'a session ends when the provider locks its user out, and when its program logs out',
  { timeout: 240_000 },
  async () => {
    const [carol, dora] = [await logIn('carol'), await logIn('dora')]
    await revoke('no token at all')
    await revoke(dora)
    const gone = await raw(`${server.url}/v1/query`, { headers: bearer(dora) })
    expect(challengeOf(gone.headers['www-authenticate']).initiate).toContain('/initiate/')
    await waitUntil('the provider has revoked the session', () => bed.provider.revoked.includes('dora'))
    bed.provider.lockOut('carol')
    await waitUntil('the token has ended', async () => (await statusOf(carol)) === 401)
    const refused = await raw(`${server.url}/v1/query`, { headers: bearer(carol) })
    expect(await answerOf(renewalOf(refused))).toEqual({ error: 'This session has ended: log in again' })
    const anew = await raw(`${server.url}/v1/query`, { headers: bearer(carol) })
    expect(challengeOf(anew.headers['www-authenticate']).initiate).toContain('/initiate/')
  },
)

it(
  'a session that expires while the provider is away is renewed when the provider is back',
  { timeout: 240_000 },
  async () => {
    const erin = await logIn('erin')
    await waitUntil('the token has ended', async () => (await statusOf(erin)) === 401)
    const address = renewalOf(await raw(`${server.url}/v1/query`, { headers: bearer(erin) }))
    await bed.provider.stop()
    const away = await raw(address).finally(() => bed.provider.start())
    expect([away.status, away.headers['retry-after']]).toEqual([503, '5'])
    expect(await answerOf(address)).toHaveProperty('token')
  },
)
