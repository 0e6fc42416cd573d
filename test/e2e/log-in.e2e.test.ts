import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPlainBrowser, type PlainBrowser, type ShownPage } from '../support/plain-browser.ts'
import { startIdentityProvider, throughProvider, type TestProvider } from '../support/identity-provider.ts'
import { freePort } from '../support/postgres.ts'
import { spawnQuipu, temporaryFolder, type QuipuProcess } from '../support/quipu-process.ts'

const folder = temporaryFolder()
let provider: TestProvider
let quipu: QuipuProcess
let base: string

beforeAll(async () => {
  const port = await freePort()
  base = `http://127.0.0.1:${port}`
  provider = await startIdentityProvider([base])
  quipu = spawnQuipu(['start', '--port', String(port), '--data-dir', `${folder.path}/data`, '--log-level', 'warn'], {
    env: {
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

interface Challenge {
  readonly initiate: string
  readonly token: string
}

async function challenge(agent = 'a program'): Promise<Challenge> {
  const answer = await fetch(`${base}/v1/statement`, {
    method: 'POST',
    body: 'select 1',
    headers: { 'user-agent': agent },
  })
  expect(answer.status).toBe(401)
  const offered = /^Bearer x_redirect_server="([^"]+)", x_token_server="([^"]+)"$/.exec(
    answer.headers.get('www-authenticate') ?? '',
  )!
  return { initiate: offered[1]!, token: offered[2]! }
}

const atProvider = (browser: PlainBrowser, page: ShownPage, login: string): Promise<ShownPage> =>
  throughProvider(browser, page, login, provider.issuer)

async function answerOf(token: string): Promise<Record<string, string>> {
  const answer = await fetch(token)
  expect(answer.status).toBe(200)
  return (await answer.json()) as Record<string, string>
}

async function logIn(login: string): Promise<string> {
  const { initiate, token } = await challenge()
  const browser = createPlainBrowser()
  const shown = await atProvider(browser, await browser.submit(await browser.open(initiate)), login)
  expect(shown).toMatchObject({ status: 200, text: expect.stringContaining('Logged in') as string })
  const { token: given } = await answerOf(token)
  return given!
}

const statement = (token: string, sql = 'select current_user') =>
  fetch(`${base}/v1/statement`, { method: 'POST', body: sql, headers: { authorization: `Bearer ${token}` } })

describe('a program', () => {
  it('gets a token once its user has confirmed and logged in, and acts as him', async () => {
    const { initiate, token } = await challenge()
    const waiting = answerOf(token)
    const browser = createPlainBrowser()
    const shown = await browser.open(initiate)
    expect(shown.text).toContain('a program')
    expect(shown.text).toContain('127.0.0.1')
    expect(await atProvider(browser, await browser.submit(shown), 'alice')).toMatchObject({
      status: 200,
      text: expect.stringContaining('Logged in') as string,
    })
    const { token: given } = await waiting
    expect(given).toMatch(/^quipu~/)
    const answer = await statement(given!)
    expect(answer.status).toBe(200)
    let page = (await answer.json()) as { nextUri?: string; data?: unknown[][] }
    const rows = [...(page.data ?? [])]
    while (page.nextUri !== undefined) {
      page = (await (
        await fetch(page.nextUri, { headers: { authorization: `Bearer ${given!}` } })
      ).json()) as typeof page
      rows.push(...(page.data ?? []))
    }
    expect(rows).toEqual([['alice']])
  })
})
