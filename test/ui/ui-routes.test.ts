import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import express from 'express'
import { afterEach, describe, expect, it } from 'vitest'
import { createUiRoutes } from '../../src/ui/ui-routes.ts'
import { serve, type HttpApp } from '../support/http-app.ts'

const folder = new URL('../../etc/ui', import.meta.url).pathname
let app: HttpApp
afterEach(() => app?.close())

describe('the page', () => {
  it.each(['/ui', '/ui/', '/ui/groups', '/ui/nodes', '/ui/query/20261121_214446_00000_00001'])(
    'is at %s',
    async (path) => {
      app = await serve(createUiRoutes(folder))
      const answer = await fetch(`${app.base}${path}`)
      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'")
      expect(await answer.text()).toContain('src="/ui/app.js"')
    },
  )

  it('has files with their types, and no others', async () => {
    app = await serve(createUiRoutes(folder))
    for (const file of readdirSync(folder)) {
      const answer = await fetch(`${app.base}/ui/${file}`)
      expect(answer.status, file).toBe(200)
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
      expect(await answer.text()).toBe(readFileSync(`${folder}/${file}`, 'utf8'))
    }
    for (const path of ['/ui/nothing.js', '/ui/..%2fcatalog%2ftpch.json', '/ui/constructor'])
      expect((await fetch(`${app.base}${path}`)).status, path).toBe(404)
    expect((await fetch(`${app.base}/ui`, { method: 'POST' })).status).toBe(405)
  })

  it('needs nothing from elsewhere, and takes no text for HTML', () => {
    for (const file of readdirSync(folder)) {
      const text = readFileSync(`${folder}/${file}`, 'utf8')
      expect(text, file).not.toMatch(
        /https?:\/\/|@import|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(/,
      )
      if (file.endsWith('.html')) expect(text, file).not.toMatch(/\son\w+=|<style|<script>|style=/)
    }
  })
})

const chromium = await promisify(execFile)('chromium', ['--version']).then(
  () => true,
  () => false,
)
const browser = chromium && process.env['CI'] !== 'true'
if (!browser)
  process.stderr.write('The page was NOT looked at in a browser: that is done where chromium is installed, but in CI\n')

it.runIf(browser)('draws a hostile statement in chromium as text', { timeout: 120_000 }, async () => {
  const hostile = `</pre><img src=x onerror="document.title='pwned'"><script>document.title='pwned'</script>`
  const api = express.Router()
  api.get('/v1/query', (_request, response) => {
    const queryStats = { createTime: '2026-11-21T21:44:46.088Z', elapsedTime: '1.00ms', outputPositions: 1 }
    response.json([{ queryId: 'q', state: 'FINISHED', session: { user: hostile }, queryStats, query: hostile }])
  })
  app = await serve(createUiRoutes(folder), api)
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--virtual-time-budget=3000', '--dump-dom']
  const { stdout } = await promisify(execFile)('chromium', [...flags, `${app.base}/ui`])
  expect(stdout).toContain('<title>Queries · Quipu</title>')
  expect(stdout).toContain('&lt;script&gt;document.title=')
  expect(stdout).not.toContain('<img')
})
