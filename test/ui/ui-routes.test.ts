import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import express, { type Router } from 'express'
import { chromium, type Page } from 'playwright-core'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createUiRoutes } from '../../src/ui/ui-routes.ts'
import { CHROMIUM, hasChromium } from '../support/chromium.ts'
import { serve, type HttpApp } from '../support/http-app.ts'

const folder = new URL('../../etc/ui', import.meta.url).pathname
let app: HttpApp
afterEach(() => app?.close())

describe('The user interface', () => {
  it.each(['/ui', '/ui/', '/ui/groups', '/ui/nodes', '/ui/query/20261121_214446_00000_00001'])(
    'answers with its page at %s',
    async (path) => {
      app = await serve(createUiRoutes(folder))
      const answer = await fetch(`${app.base}${path}`)
      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'")
      expect(await answer.text()).toContain('src="/ui/app.js"')
    },
  )

  it('serves the files of its folder, and answers 404 to all other paths', async () => {
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

  it('loads nothing from other sites, and never inserts text as HTML', () => {
    for (const file of readdirSync(folder)) {
      const text = readFileSync(`${folder}/${file}`, 'utf8')
      expect(text, file).not.toMatch(
        /https?:\/\/|@import|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(/,
      )
      if (file.endsWith('.html')) expect(text, file).not.toMatch(/\son\w+=|<style|<script>|style=/)
    }
  })
})

const browser = hasChromium('nothing looks at the page in one')

it.runIf(browser)(
  'the user interface shows a hostile statement in Chromium as text',
  { timeout: 120_000 },
  async () => {
    const hostile = `</pre><img src=x onerror="document.title='pwned'"><script>document.title='pwned'</script>`
    const api = express.Router()
    api.get('/v1/query', (_request, response) => {
      const queryStats = { createTime: '2026-11-21T21:44:46.088Z', elapsedTime: '1.00ms', outputPositions: 1 }
      response.json([{ queryId: 'q', state: 'FINISHED', session: { user: hostile }, queryStats, query: hostile }])
    })
    app = await serve(createUiRoutes(folder), api)
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--virtual-time-budget=3000', '--dump-dom']
    const { stdout } = await promisify(execFile)(CHROMIUM, [...flags, `${app.base}/ui`])
    expect(stdout).toContain('<title>Queries · Quipu</title>')
    expect(stdout).toContain('&lt;script&gt;document.title=')
    expect(stdout).not.toContain('<img')
  },
)

/** Selects the text of the statement, as a user does to copy it. Runs in the page. */
const SELECT_STATEMENT = `(() => {
  const all = [...document.querySelectorAll('#main *')]
  const shown = all.find((one) => one.children.length === 0 && one.textContent.startsWith('SELECT '))
  getSelection().selectAllChildren(shown)
  return shown.textContent
})()`

describe.runIf(browser)('The page of a query in Chromium', () => {
  const path = '/ui/query/q'
  const waiting = { timeout: 60_000, interval: 50 }

  /** @param events the number of events of the query */
  function apiOf(events: number): { readonly api: Router; readonly asked: () => number } {
    const api = express.Router()
    let asked = 0
    api.get('/v1/query/q', (_request, response) => {
      asked++
      const stage = { stageId: 'q.0', stageStats: {}, tasks: [], subStages: [] }
      response.json({
        queryId: 'q',
        state: 'RUNNING',
        session: { user: 'ana' },
        queryStats: {},
        query: `SELECT ${asked}`,
        outputStage: { ...stage, state: 'RUNNING' },
      })
    })
    api.get('/v1/query/q/events', (request, response) => {
      const { after, limit } = request.query
      const from = Number(after ?? 0)
      const length = Math.max(0, Math.min(Number(limit), events - from))
      response.json(
        Array.from({ length }, (_, index) => ({
          sequence: from + index + 1,
          type: from + index + 1 === events ? 'quipu.query.failed.v4' : 'quipu.query.progressed.v1',
          time: '2026-11-21T21:44:46.088Z',
          data: {},
        })),
      )
    })
    return { api, asked: () => asked }
  }

  async function inBrowser(work: (page: Page) => Promise<void>): Promise<void> {
    const opened = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
    try {
      const page = await opened.newPage()
      page.setDefaultTimeout(60_000)
      await page.goto(`${app.base}${path}`)
      await page.waitForSelector('h1')
      await work(page)
    } finally {
      await opened.close()
    }
  }

  it(
    'keeps a selected text while the query runs, and updates after the selection ends',
    { timeout: 120_000 },
    async () => {
      const { api, asked } = apiOf(3)
      app = await serve(createUiRoutes(folder), api)
      await inBrowser(async (page) => {
        const statement = await page.evaluate<string>(SELECT_STATEMENT)
        expect(statement).toMatch(/^SELECT \d+$/)
        const before = asked()
        await vi.waitFor(() => expect(asked()).toBeGreaterThan(before + 1), waiting)
        expect(await page.evaluate('String(getSelection())')).toBe(statement)
        await page.evaluate('getSelection().removeAllRanges()')
        await vi.waitFor(async () => expect(await page.textContent('#main')).not.toContain(statement), waiting)
      })
    },
  )

  it('shows all events of a long query, and links to its JSON', { timeout: 120_000 }, async () => {
    const { api } = apiOf(1_500)
    app = await serve(createUiRoutes(folder), api)
    await inBrowser(async (page) => {
      await page.waitForSelector('#asof')
      expect(await page.getAttribute('#asof', 'max')).toBe('1500')
      expect(await page.textContent('#main')).toContain('query failed')
      expect(await page.getAttribute('a:text-is("JSON")', 'href')).toBe('/v1/query/q?format=json')
    })
  })
})
