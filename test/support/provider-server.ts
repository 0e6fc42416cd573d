import { afterAll, expect } from 'vitest'
import { startIdentityProvider, throughProvider, type TestProvider } from './identity-provider.ts'
import { createPlainBrowser, type PlainBrowser, type ShownPage } from './plain-browser.ts'
import { serverOfFile, type ServerOfFile } from './server-of-file.ts'
import { raw } from './statement-client.ts'

/** The two addresses that the server sends to a program that must log in. */
export interface Challenge {
  readonly initiate: string
  readonly token: string
}

export function challengeOf(header: unknown): Challenge {
  const [, initiate, token] = /^Bearer x_redirect_server="([^"]+)", x_token_server="([^"]+)"$/.exec(String(header))!
  return { initiate: initiate!, token: token! }
}

/** A server for the tests of a file, whose users log in at a separate identity provider. */
export interface ProviderServer {
  readonly server: Pick<ServerOfFile, 'url' | 'data'>
  readonly provider: TestProvider
  /** The challenge for a program that must log in. */
  challenge(agent?: string): Promise<Challenge>
  atProvider(browser: PlainBrowser, page: ShownPage, login: string): Promise<ShownPage>
  /** The answer at the address of a token. */
  answerOf(token: string): Promise<Record<string, string>>
  /** The token of a program whose user logs in with this challenge or a new challenge. */
  logIn(login: string, challenge?: Challenge): Promise<string>
}

export const LOGGED_IN = { status: 200, text: expect.stringContaining('Logged in') as string }

/** Call this once, at the top of a file. */
export function providerServer(settings: Readonly<Record<string, string>> = {}): ProviderServer {
  let provider: TestProvider
  const server = serverOfFile('warn', async ({ url }) => {
    provider = await startIdentityProvider([url])
    return {
      QUIPU_AUTHENTICATION: 'oauth2',
      QUIPU_OAUTH2_ISSUER: provider.issuer,
      QUIPU_OAUTH2_CLIENT_ID: provider.clientId,
      QUIPU_OAUTH2_CLIENT_SECRET: provider.clientSecret,
      ...settings,
    }
  })
  afterAll(() => provider.stop())

  async function challenge(agent = 'a program'): Promise<Challenge> {
    // `raw` sends the headers of a request with a body as UTF-8.
    const headers = { 'user-agent': agent }
    const answer = await fetch(`${server.url}/v1/statement`, { method: 'POST', body: 'select 1', headers })
    expect(answer.status).toBe(401)
    return challengeOf(answer.headers.get('www-authenticate'))
  }

  async function answerOf(token: string): Promise<Record<string, string>> {
    const answer = await raw(token)
    expect(answer.status).toBe(200)
    return JSON.parse(answer.text) as Record<string, string>
  }

  const atProvider: ProviderServer['atProvider'] = (browser, page, login) =>
    throughProvider(browser, page, login, provider.issuer)

  return {
    server,
    get provider() {
      return provider
    },
    challenge,
    atProvider,
    answerOf,
    async logIn(login, asked) {
      const { initiate, token } = asked ?? (await challenge())
      const browser = createPlainBrowser()
      const shown = await atProvider(browser, await browser.submit(await browser.open(initiate)), login)
      expect(shown).toMatchObject(LOGGED_IN)
      return (await answerOf(token))['token']!
    },
  }
}
