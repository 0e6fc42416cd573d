import { describe, expect, it } from 'vitest'
import { createPlainBrowser, type PlainBrowser, type ShownPage } from '../support/plain-browser.ts'
import { LOGGED_IN, providerServer } from '../support/provider-server.ts'
import { raw, type StatementJson } from '../support/statement-client.ts'

const bed = providerServer()
const { server, challenge, atProvider, answerOf, logIn } = bed

/** The status of a request that a browser or a program makes. */
async function statusOf(path: string, headers: Readonly<Record<string, string>>, method = 'GET'): Promise<number> {
  return (await raw(`${server.url}${path}`, { method, headers, ...(method === 'POST' ? { body: 'select 1' } : {}) }))
    .status
}

/** The rows of `select current_user`; each request carries the token. */
async function rowsFor(token: string): Promise<unknown[]> {
  const headers = { authorization: `Bearer ${token}` }
  const rows: unknown[] = []
  let answer = await raw(`${server.url}/v1/statement`, { body: 'select current_user', headers })
  for (;;) {
    expect(answer.status).toBe(200)
    const page: StatementJson = answer.json
    rows.push(...(page.data ?? []))
    if (page.nextUri === undefined) return rows
    answer = await raw(page.nextUri, { headers })
  }
}

describe('A program', () => {
  it('gets a token after its user has confirmed and logged in, and acts as this user', async () => {
    const { initiate, token } = await challenge()
    const waiting = answerOf(token)
    const browser = createPlainBrowser()
    const shown = await browser.open(initiate)
    expect(shown.text).toContain('a program')
    expect(shown.text).toContain('127.0.0.1')
    expect(await atProvider(browser, await browser.submit(shown), 'alice')).toMatchObject(LOGGED_IN)
    const { token: given } = await waiting
    expect(await rowsFor(given!)).toEqual([['alice']])
  })

  it('gets the token only once, and the log-in is over then', async () => {
    const { initiate, token } = await challenge()
    const browser = createPlainBrowser()
    expect(initiate.split('/').at(-1)).not.toBe(token.split('/').at(-1))
    const confirm = await browser.open(initiate)
    await atProvider(browser, await browser.submit(confirm), 'alice')
    const both = await Promise.all([answerOf(token), answerOf(token)])
    expect(both.filter((one) => 'token' in one)).toHaveLength(1)
    expect(await answerOf(token)).toHaveProperty('error')
    expect((await browser.submit(confirm)).status).toBe(409)
    expect((await raw(token, { method: 'DELETE' })).status).toBe(204)
    expect((await raw(token, { method: 'DELETE' })).status).toBe(204)
  })

  it('gets the same address again after ten seconds of waiting', async () => {
    const { token } = await challenge()
    const begun = performance.now()
    expect(await answerOf(token)).toEqual({ nextUri: token })
    expect(performance.now() - begun).toBeGreaterThan(9_000)
  })

  it('has its source shown as escaped text', async () => {
    const { initiate } = await challenge(`<script>alert(1)</script>"'&\u00ad`)
    const { text, headers } = await createPlainBrowser().open(initiate)
    expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;\uFFFD')
    expect(text).not.toContain('<script')
    expect(headers['content-security-policy']).toContain("default-src 'none'")
  })

  it('is not logged in without a click of the user on a page of this server', async () => {
    const { initiate, token } = await challenge()
    const path = new URL(initiate).pathname
    expect(await statusOf(path, {}, 'POST')).toBe(403)
    expect(await statusOf(path, { origin: 'http://evil.example' }, 'POST')).toBe(403)
    expect(await statusOf(path, { origin: 'null' }, 'POST')).toBe(403)
    expect(await statusOf(`${path.slice(0, -1)}!`, {})).toBe(404)
    expect(await statusOf('/oauth2/token/initiate/AAAA', {})).toBe(404)
    // Neither address reveals the other.
    expect(await statusOf(`/oauth2/token/initiate/${token.split('/').at(-1)!}`, {})).toBe(404)
    expect(await answerOf(`${server.url}/oauth2/token/${initiate.split('/').at(-1)!}`)).toHaveProperty('error')
  })
})

describe('A browser', () => {
  it('cannot finish a log-in that another browser began, and cannot finish a log-in twice', async () => {
    const { initiate, token } = await challenge()
    const attacker = createPlainBrowser()
    await attacker.submit(await attacker.open(initiate))
    const toProvider = attacker.visited.find((address) => address.startsWith(`${bed.provider.issuer}/auth?`))!
    const victim = createPlainBrowser()
    const there = await atProvider(victim, await victim.open(toProvider), 'victim')
    expect(there).toMatchObject({ status: 400, text: expect.stringContaining('another browser') as string })
    const own = createPlainBrowser()
    const back = await atProvider(own, await own.submit(await own.open(initiate)), 'alice')
    expect(back).toMatchObject(LOGGED_IN)
    expect((await own.open(back.address)).status).toBe(400)
    expect(await answerOf(token)).toHaveProperty('token')
  })

  it('can run several log-ins in its tabs', async () => {
    const browser = createPlainBrowser()
    const [one, two] = [await challenge(), await challenge()]
    const pages = [await browser.submit(await browser.open(one.initiate)), await browser.open(two.initiate)]
    const second = await browser.submit(pages[1]!)
    expect(await atProvider(browser, pages[0]!, 'alice')).toMatchObject(LOGGED_IN)
    expect(await atProvider(browser, second, 'alice')).toMatchObject(LOGGED_IN)
    expect(await answerOf(one.token)).toHaveProperty('token')
    expect(await answerOf(two.token)).toHaveProperty('token')
  })

  it('gets no log-in with an error, a forged code or a code of another provider', async () => {
    const hostile = encodeURIComponent('<img src=x onerror=alert(1)>')
    for (const [query, shown] of [
      [`error=access_denied&error_description=${hostile}`, '&lt;img src=x onerror=alert(1)&gt;'],
      ['code=forged', 'did not accept the code'],
      ['code=forged&iss=http%3A%2F%2Fevil.example', 'is invalid'],
      ['', 'is invalid'],
    ] as const) {
      const { initiate, token } = await challenge()
      const browser = createPlainBrowser()
      await browser.submit(await browser.open(initiate))
      const asked = browser.visited.find((address) => address.startsWith(`${bed.provider.issuer}/auth?`))!
      const state = new URL(asked).searchParams.get('state')!
      const iss = query.includes('iss=') || query === '' ? '' : `&iss=${encodeURIComponent(bed.provider.issuer)}`
      const back = await browser.open(`${server.url}/oauth2/callback?state=${state}&${query}${iss}`)
      expect(back.status, query).toBe(403)
      expect(back.text).toContain(shown)
      expect(back.text).not.toContain('<img')
      expect(await answerOf(token)).toEqual({ error: expect.not.stringContaining('img') as string })
    }
  })

  it('gets 503 while the provider is away, and can try again', async () => {
    const { initiate, token } = await challenge()
    const browser = createPlainBrowser()
    const there = await browser.submit(await browser.open(initiate))
    await bed.provider.stop()
    try {
      const asked = new URL(browser.visited.find((address) => address.startsWith(`${bed.provider.issuer}/auth?`))!)
      const state = asked.searchParams.get('state')!
      const iss = encodeURIComponent(bed.provider.issuer)
      const back = await browser.open(`${server.url}/oauth2/callback?state=${state}&code=x&iss=${iss}`)
      expect(back).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
      expect(await answerOf(token)).toEqual({ error: 'The identity provider does not answer' })
    } finally {
      await bed.provider.start()
    }
    expect(there.status).toBe(200)
    expect(await logIn('alice')).toMatch(/^quipu~/)
  })
})

describe('A token', () => {
  it('is refused after any change, and as a cookie', async () => {
    const token = await logIn('alice')
    const as = (bearer: string) => statusOf('/v1/query', { authorization: `Bearer ${bearer}` })
    expect(await as(token)).toBe(200)
    const parts = token.split('~')
    const changed = (part: number, text: string): string => parts.with(part, text).join('~')
    const other = Buffer.from(JSON.stringify({ name: 'root', user: 'root', groups: [] })).toString('base64url')
    const later = (Number.parseInt(parts[2]!, 36) + 1000).toString(36)
    const forged = [
      changed(1, 'pb'),
      changed(1, 'oc'),
      changed(2, later),
      changed(4, other),
      changed(5, 'A'.repeat(43)),
    ]
    for (const one of [...forged, token.slice(0, -1), `${token}~`, 'quipu~', 'quipu~ob~0~~~'])
      expect(await as(one), one).toBe(401)
    expect(await statusOf('/v1/query', { cookie: `__Host-quipu-session=${token}` })).toBe(401)
  })
})

describe('The web UI', () => {
  async function session(to = '/ui'): Promise<{ browser: PlainBrowser; cookie: string; shown: ShownPage }> {
    const browser = createPlainBrowser()
    const page = await browser.open(`${server.url}${to}`)
    expect(page.address).toContain('/ui/log-in?to=')
    const shown = await atProvider(browser, await browser.submit(page, {}, '/ui/log-in/provider'), 'alice')
    return { browser, shown, cookie: browser.cookies(`127.0.0.1${new URL(server.url).port}`) }
  }

  it('leads to the log-in page, and back to the page that was asked for', async () => {
    const { shown, cookie } = await session('/ui/nodes?x=1')
    expect(shown).toMatchObject({ status: 200, address: `${server.url}/ui/nodes?x=1` })
    const { status, text } = await raw(`${server.url}/ui/session`, { headers: { cookie } })
    expect([status, JSON.parse(text)]).toEqual([200, { user: 'alice', method: 'oauth2', mayLogOut: true }])
  })

  it('leads to no address outside the web UI after the log-in', async () => {
    for (const to of [
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      '/ui/../../x',
      '/ui//evil',
      '/ui/%2e%2E/v1/query',
      '/ui/.%2e/x',
      '/UI/x',
      '/v1/query',
      '/uix',
    ]) {
      const { text } = await createPlainBrowser().open(`${server.url}/ui/log-in?to=${encodeURIComponent(to)}`)
      expect(text).toContain('name="to" value="/ui"')
    }
  })

  it('authenticates by a cookie that other sites cannot use, also for statements', async () => {
    const { cookie } = await session()
    const origin = server.url
    expect(await statusOf('/v1/query', { cookie })).toBe(200)
    expect(await statusOf('/v1/query', { cookie, 'sec-fetch-site': 'same-origin' })).toBe(200)
    expect(await statusOf('/v1/query', { cookie, 'sec-fetch-site': 'same-site' })).toBe(401)
    expect(await statusOf('/v1/query', { cookie, 'sec-fetch-site': 'cross-site' })).toBe(403)
    for (const headers of [{}, { 'sec-fetch-site': 'same-origin' }, { origin, 'sec-fetch-site': 'same-site' }])
      expect(await statusOf('/v1/statement', { cookie, ...headers }, 'POST')).toBe(401)
    expect(await statusOf('/v1/statement', { cookie, origin, 'sec-fetch-site': 'same-origin' }, 'POST')).toBe(200)
    expect(await statusOf('/v1/statement', { cookie, origin: 'http://evil.example' }, 'POST')).toBe(403)
    const query = '/v1/query/20260102_030405_00006_00001'
    expect(await statusOf(query, { cookie }, 'DELETE')).toBe(401)
    expect(await statusOf(query, { cookie, origin: 'http://evil.example' }, 'DELETE')).toBe(403)
    expect(await statusOf(query, { cookie, origin }, 'DELETE')).toBe(204)
    const token = cookie.match(/__Host-quipu-session=([^;]+)/)![1]!
    expect(await statusOf('/v1/query', { authorization: `Bearer ${token}` })).toBe(401)
  })

  it('logs the user out at the server', async () => {
    const { browser, cookie } = await session()
    expect(await statusOf('/ui/log-out', { cookie }, 'POST')).toBe(403)
    expect(await statusOf('/ui/log-out', { cookie, origin: 'http://evil.example' }, 'POST')).toBe(403)
    expect(await statusOf('/v1/query', { cookie })).toBe(200)
    expect(await statusOf('/ui/log-out', { cookie, origin: server.url }, 'POST')).toBe(200)
    expect(await statusOf('/v1/query', { cookie })).toBe(401)
    expect((await browser.open(`${server.url}/ui`)).address).toContain('/ui/log-in')
  })

  it('keeps its cookie from scripts, other sites and other hosts', async () => {
    const browser = createPlainBrowser()
    const page = await browser.open(`${server.url}/ui/log-in`)
    await atProvider(browser, await browser.submit(page, {}, '/ui/log-in/provider'), 'alice')
    const set = browser.set.map((one) => one.replace(/=[^;]+/, '=…'))
    expect(set).toContainEqual(
      expect.stringMatching(/^__Host-quipu-session=…; Path=\/; Secure; HttpOnly; SameSite=Strict; Max-Age=\d+$/),
    )
    expect(set).toContain('__Host-quipu-log-in=…; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=600')
  })
})
