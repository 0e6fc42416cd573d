import { execFileSync } from 'node:child_process'
import { pbkdf2Sync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createPlainBrowser } from '../support/plain-browser.ts'
import { spawnQuipu, temporaryFolder, type QuipuProcess } from '../support/quipu-process.ts'
import { raw } from '../support/statement-client.ts'

const folder = temporaryFolder()
let quipu: QuipuProcess
let base: string

beforeAll(async () => {
  const salt = Buffer.from('00112233445566778899aabbccddeeff', 'hex')
  const hash = pbkdf2Sync('open sesame', salt, 20_000, 32, 'sha256')
  writeFileSync(`${folder.path}/passwords`, `alice:20000:${salt.toString('hex')}:${hash.toString('hex')}\n`)
  execFileSync('chmod', ['644', `${folder.path}/passwords`])
  quipu = spawnQuipu(['start', '--port', '0', '--data-dir', `${folder.path}/data`, '--log-level', 'error'], {
    env: { QUIPU_AUTHENTICATION: 'password', QUIPU_PASSWORD_FILE: `${folder.path}/passwords` },
  })
  base = await quipu.url
}, 240_000)
afterAll(async () => {
  quipu.signal('SIGTERM')
  await quipu.exit
  await folder.remove()
}, 240_000)

it('the page logs in by a form where passwords are configured, and out at the server', async () => {
  const browser = createPlainBrowser()
  const page = await browser.open(`${base}/ui`)
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
  expect(shown).toMatchObject({ status: 200, address: `${base}/ui` })
  const cookie = browser.cookies(`127.0.0.1${new URL(base).port}`)
  const who = await raw(`${base}/ui/session`, { headers: { cookie } })
  expect(JSON.parse(who.text)).toEqual({ user: 'alice', method: 'password', mayLogOut: true })
  expect((await raw(`${base}/v1/statement`, { body: 'select 1', headers: { cookie, origin: base } })).status).toBe(401)
  const script = await raw(`${base}/v1/query`, { headers: { 'sec-fetch-site': 'same-origin' } })
  expect([script.status, script.headers['www-authenticate']]).toEqual([401, undefined])
  const out = await raw(`${base}/ui/log-out`, { method: 'POST', headers: { cookie, origin: base } })
  expect(out.status).toBe(200)
  expect((await raw(`${base}/v1/query`, { headers: { cookie } })).status).toBe(401)
})
