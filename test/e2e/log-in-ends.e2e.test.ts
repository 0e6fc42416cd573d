import { afterAll, beforeAll, expect, it } from 'vitest'
import { startIdentityProvider, throughProvider, type TestProvider } from '../support/identity-provider.ts'
import { createPlainBrowser } from '../support/plain-browser.ts'
import { freePort } from '../support/postgres.ts'
import { spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { raw } from '../support/statement-client.ts'

const folder = temporaryFolder()
let provider: TestProvider
let quipu: QuipuProcess
let base: string

beforeAll(async () => {
  const port = await freePort()
  base = `http://127.0.0.1:${port}`
  provider = await startIdentityProvider([base])
  quipu = spawnQuipu(['start', '--port', String(port), '--data-dir', `${folder.path}/data`, '--log-level', 'error'], {
    env: {
      QUIPU_SESSION_MS: '8s',
      QUIPU_AUTHENTICATION: 'oauth2',
      QUIPU_OAUTH2_ISSUER: provider.issuer,
      QUIPU_OAUTH2_CLIENT_ID: provider.clientId,
      QUIPU_OAUTH2_CLIENT_SECRET: provider.clientSecret,
    },
  })
  await quipu.url
}, 240_000)
afterAll(async () => {
  quipu.signal('SIGTERM')
  await quipu.exit
  await provider.stop()
  await folder.remove()
}, 240_000)

/** As a client does it that is answered 401, whatever it asked for. */
async function logIn(challenge: string, login: string): Promise<{ authorization: string }> {
  const [, initiate, address] = /x_redirect_server="([^"]+)", x_token_server="([^"]+)"/.exec(challenge)!
  const browser = createPlainBrowser()
  const there = await browser.submit(await browser.open(initiate!))
  await throughProvider(browser, there, login, provider.issuer)
  const { token } = JSON.parse((await raw(address!)).text) as { token: string }
  return { authorization: `Bearer ${token}` }
}

it('a token that ends during a query is asked for anew, and the query goes on', { timeout: 240_000 }, async () => {
  const refused = await raw(`${base}/v1/statement`, { body: 'select 1' })
  const headers = await logIn(String(refused.headers['www-authenticate']), 'alice')
  const begun = await raw(`${base}/v1/statement`, { body: 'select current_user', headers })
  expect(begun.status).toBe(200)
  let nextUri = begun.json.nextUri ?? ''
  let answer = await raw(nextUri, { headers })
  while (answer.status === 200 && answer.json.data === undefined) {
    nextUri = answer.json.nextUri!
    answer = await raw(nextUri, { headers })
  }
  // The same page, which it has not taken yet.
  await waitUntil('the token has ended', async () => (answer = await raw(nextUri, { headers })).status === 401)
  const again = await logIn(String(answer.headers['www-authenticate']), 'alice')
  expect((await raw(nextUri, { headers: again })).json.data).toEqual([['alice']])
  // Nor is it another's by its address alone.
  const anew = await raw(nextUri)
  const bob = await logIn(String(anew.headers['www-authenticate']), 'bob')
  expect((await raw(nextUri, { headers: bob })).status).toBe(403)
})
