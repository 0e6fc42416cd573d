import { writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { passwordLine } from '../support/password-file.ts'
import { createPlainBrowser } from '../support/plain-browser.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { raw } from '../support/statement-client.ts'

/** Lines of the password file, by user. */
const lines = new Map(['alice', 'bob', 'carol', 'dora'].map((user) => [user, passwordLine(user, 'open sesame')]))
const others = [{ pattern: '(.*)' }]

const server = serverOfFile('error', (own) => {
  writePasswords(own.folder)
  writeMapping(others, own.folder)
  return {
    QUIPU_AUTHENTICATION: 'password',
    QUIPU_PASSWORD_FILE: `${own.folder}/passwords`,
    QUIPU_USER_MAPPING_FILE: `${own.folder}/mapping`,
  }
})

function writePasswords(folder = server.folder): void {
  writeFileSync(`${folder}/passwords`, [...lines.values()].join(''), { mode: 0o644 })
}

function writeMapping(rules: readonly object[], folder = server.folder): void {
  writeFileSync(`${folder}/mapping`, JSON.stringify({ rules }), { mode: 0o644 })
}

/** Logs a user in by the form. @returns the status of a request of that session, at each call */
async function logIn(user: string): Promise<() => Promise<number>> {
  const browser = createPlainBrowser()
  const page = await browser.open(`${server.url}/ui`)
  expect(await browser.submit(page, { user, password: 'open sesame' })).toMatchObject({ status: 200 })
  const cookie = browser.cookies(`127.0.0.1${new URL(server.url).port}`)
  return async () => (await raw(`${server.url}/v1/query`, { headers: { cookie } })).status
}

it('the web UI logs in by a form if passwords are configured, and the log-out ends the session at the server', async () => {
  const browser = createPlainBrowser()
  const page = await browser.open(`${server.url}/ui`)
  expect(page.address).toContain('/ui/log-in')
  for (const fields of [
    { user: 'alice', password: 'wrong' },
    { user: 'nobody', password: 'open sesame' },
    { user: 'alice:open', password: 'sesame' },
  ])
    expect(await browser.submit(page, fields)).toMatchObject({
      status: 401,
      text: expect.stringContaining('The user or the password is wrong') as string,
    })
  const shown = await browser.submit(page, { user: 'alice', password: 'open sesame' })
  expect(shown).toMatchObject({ status: 200, address: `${server.url}/ui` })
  const cookie = browser.cookies(`127.0.0.1${new URL(server.url).port}`)
  const session = await raw(`${server.url}/ui/session`, { headers: { cookie } })
  expect(JSON.parse(session.text)).toEqual({ user: 'alice', method: 'password', mayLogOut: true })
  const post = (headers: Record<string, string>) => raw(`${server.url}/v1/statement`, { body: 'select 1', headers })
  expect((await post({ cookie })).status).toBe(401)
  expect((await post({ cookie, origin: server.url })).status).toBe(200)
  const script = await raw(`${server.url}/v1/query`, { headers: { 'sec-fetch-site': 'same-origin' } })
  expect([script.status, script.headers['www-authenticate']]).toEqual([401, undefined])
  const out = await raw(`${server.url}/ui/log-out`, { method: 'POST', headers: { cookie, origin: server.url } })
  expect(out.status).toBe(200)
  expect((await raw(`${server.url}/v1/query`, { headers: { cookie } })).status).toBe(401)
})

it('a web UI session ends when the password file or the user mapping no longer gives its user', async () => {
  const [alice, bob, carol, dora] = await Promise.all(['alice', 'bob', 'carol', 'dora'].map(logIn))
  lines.delete('alice')
  lines.set('bob', passwordLine('bob', 'another'))
  writePasswords()
  await waitUntil('a removed user is logged out', async () => (await alice!()) === 401)
  await waitUntil('a user with a changed password is logged out', async () => (await bob!()) === 401)
  expect([await carol!(), await dora!()]).toEqual([200, 200])
  writeMapping([{ pattern: 'dora', user: 'theodora' }, { pattern: 'carol', allow: false }, ...others])
  await waitUntil('a user with another name is logged out', async () => (await dora!()) === 401)
  await waitUntil('a name without a user is logged out', async () => (await carol!()) === 401)
})
