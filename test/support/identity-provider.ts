import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import type { PlainBrowser, ShownPage } from './plain-browser.ts'

/** A real identity provider (`oidc-provider`) that accepts every name with any password. */
export interface TestProvider {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** Stops answering until it is started again on the same port. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Removes the account with this name. */
  lockOut(login: string): void
  /** The users whose refresh tokens were revoked. */
  readonly revoked: readonly string[]
  /** The users whose refresh tokens were used. */
  readonly renewed: ReadonlySet<string>
}

/** @param bases the base addresses of the servers to which its clients return */
export async function startIdentityProvider(bases: readonly string[]): Promise<TestProvider> {
  let server: Server | undefined
  const listen = async (port: number, listener: Parameters<typeof createServer>[1]): Promise<Server> => {
    const opened = createServer(listener)
    opened.listen(port, '127.0.0.1')
    await once(opened, 'listening')
    return opened
  }
  let serve: ReturnType<Provider['callback']> = () => {}
  server = await listen(0, (request, response) => serve(request, response))
  const { port } = server.address() as AddressInfo
  const issuer = `http://127.0.0.1:${port}`
  const clientId = 'quipu'
  const clientSecret = 'what only the two of them know'
  const lockedOut = new Set<string>()
  const revoked: string[] = []
  const renewed = new Set<string>()
  const own = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: bases.map((base) => `${base}/oauth2/callback`),
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    pkce: { required: () => true },
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
    conformIdTokenClaims: false,
    findAccount: (_context: unknown, id: string) =>
      lockedOut.has(id)
        ? undefined
        : {
            accountId: id,
            claims: () => ({ sub: id, preferred_username: `${id} by name`, groups: ['staff', `friends of ${id}`] }),
          },
    features: { revocation: { enabled: true } },
    // A refresh token that is used twice revokes all tokens of its grant.
    rotateRefreshToken: () => true,
    cookies: { keys: ['keys of cookies'] },
    jwks: { keys: [generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })] },
  })
  own.on('refresh_token.destroyed', ({ accountId = '' }) => revoked.push(accountId))
  own.on('refresh_token.consumed', ({ accountId = '' }) => renewed.add(accountId))
  serve = own.callback()
  const listener = (...both: Parameters<typeof serve>): void => void serve(...both)

  return {
    issuer,
    clientId,
    clientSecret,
    lockOut: (login) => void lockedOut.add(login),
    revoked,
    renewed,
    async stop() {
      server?.closeAllConnections()
      server?.close()
      server = undefined
    },
    async start() {
      server ??= await listen(port, listener)
    },
  }
}

/** Walks a browser through the pages of the provider: log-in if the browser is new, and consent for the client. */
export async function throughProvider(
  browser: PlainBrowser,
  page: ShownPage,
  login: string,
  issuer: string,
): Promise<ShownPage> {
  if (!page.address.startsWith(issuer)) throw new Error(`Not at the provider, but at ${page.address}: ${page.text}`)
  let shown = page
  if (shown.text.includes('name="login"')) shown = await browser.submit(shown, { login, password: 'any' })
  if (shown.address.startsWith(issuer)) shown = await browser.submit(shown)
  return shown
}
