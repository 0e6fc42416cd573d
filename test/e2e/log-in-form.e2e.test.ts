import { expect, it } from 'vitest'
import { writePasswordFile } from '../support/password-file.ts'
import { createPlainBrowser } from '../support/plain-browser.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { raw } from '../support/statement-client.ts'

const server = serverOfFile('error', ({ folder }) => {
  const passwords = `${folder}/passwords`
  writePasswordFile(passwords, ['alice'], 'open sesame', 20_000)
  return { QUIPU_AUTHENTICATION: 'password', QUIPU_PASSWORD_FILE: passwords }
})

it('the page logs in by a form where passwords are configured, and out at the server', async () => {
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
      text: expect.stringContaining('do not belong together') as string,
    })
  const shown = await browser.submit(page, { user: 'alice', password: 'open sesame' })
  expect(shown).toMatchObject({ status: 200, address: `${server.url}/ui` })
  const cookie = browser.cookies(`127.0.0.1${new URL(server.url).port}`)
  const who = await raw(`${server.url}/ui/session`, { headers: { cookie } })
  expect(JSON.parse(who.text)).toEqual({ user: 'alice', method: 'password', mayLogOut: true })
  expect(
    (await raw(`${server.url}/v1/statement`, { body: 'select 1', headers: { cookie, origin: server.url } })).status,
  ).toBe(401)
  const script = await raw(`${server.url}/v1/query`, { headers: { 'sec-fetch-site': 'same-origin' } })
  expect([script.status, script.headers['www-authenticate']]).toEqual([401, undefined])
  const out = await raw(`${server.url}/ui/log-out`, { method: 'POST', headers: { cookie, origin: server.url } })
  expect(out.status).toBe(200)
  expect((await raw(`${server.url}/v1/query`, { headers: { cookie } })).status).toBe(401)
})
