import { readdirSync, readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import axe from 'axe-core'
import express, { type Router } from 'express'
import { chromium, type Browser, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { ClusterInfo, NodeInfo, ServerStatus } from '../../src/protocol/info/wire-schemas.ts'
import { createUiRoutes } from '../../src/ui/ui-routes.ts'
import { builtConsole } from '../support/built-console.ts'
import { CHROMIUM, hasChromium } from '../support/chromium.ts'
import { serve, type HttpApp } from '../support/http-app.ts'
import { listedQuery, queryBody } from '../support/query-bodies.ts'

let folders: Awaited<ReturnType<typeof builtConsole>>
let app: HttpApp
beforeAll(async () => {
  folders = await builtConsole()
})
afterEach(() => app?.close())

describe('The routes of the console', () => {
  it.each(['/ui', '/ui/', '/ui/groups', '/ui/cluster', '/ui/nodes', '/ui/query/20261121_214446_00000_00001'])(
    'answer with its document at %s',
    async (path) => {
      app = await serve(createUiRoutes(folders))
      const answer = await fetch(`${app.base}${path}`)
      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'")
      expect(await answer.text()).toMatch(/<script type="module" crossorigin src="\/ui\/assets\/index-[\w-]+\.js">/)
    },
  )

  it('serve each asset, compressed where the browser accepts it, and answer 404 to all other paths', async () => {
    app = await serve(createUiRoutes(folders))
    const assets = readdirSync(`${folders.console}/assets`)
    for (const file of assets.filter((name) => !name.endsWith('.gz'))) {
      const content = readFileSync(`${folders.console}/assets/${file}`)
      const plain = await fetch(`${app.base}/ui/assets/${file}`, { headers: { 'accept-encoding': 'identity' } })
      expect(plain.headers.get('x-content-type-options')).toBe('nosniff')
      expect(Buffer.from(await plain.arrayBuffer()).equals(content), file).toBe(true)
      expect(gunzipSync(readFileSync(`${folders.console}/assets/${file}.gz`)).equals(content), file).toBe(true)
      const packed = await fetch(`${app.base}/ui/assets/${file}`, { headers: { 'accept-encoding': 'gzip' } })
      expect(packed.headers.get('content-encoding')).toBe('gzip')
      // fetch has already unpacked it.
      expect(Buffer.from(await packed.arrayBuffer()).equals(content), file).toBe(true)
    }
    for (const path of ['/ui/nothing.js', '/ui/assets/..%2findex.html', '/ui/assets/constructor', '/ui/constructor'])
      expect((await fetch(`${app.base}${path}`)).status, path).toBe(404)
    expect((await fetch(`${app.base}/ui`, { method: 'POST' })).status).toBe(405)
  })

  it('serve at most 400 kB of compressed assets', () => {
    const packed = readdirSync(`${folders.console}/assets`).filter((name) => name.endsWith('.gz'))
    const bytes = packed.map((name) => readFileSync(`${folders.console}/assets/${name}`).length)
    expect(bytes.reduce((sum, length) => sum + length, 0)).toBeLessThan(400 * 1024)
  })
})

describe.runIf(hasChromium('nothing looks at the console in one'))(
  'The console in Chromium',
  { timeout: 180_000 },
  () => {
    const waiting = { timeout: 60_000, interval: 50 }
    let browser: Browser
    beforeAll(async () => {
      browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
    })
    afterAll(() => browser?.close())

    /** Opens a page of the console; fails if the browser reports an error, also one of the content security policy. */
    async function withPage(path: string, api: Router, work: (page: Page) => Promise<void>): Promise<void> {
      app = await serve(createUiRoutes(folders), api)
      const context = await browser.newContext()
      const page = await context.newPage()
      page.setDefaultTimeout(60_000)
      const errors: string[] = []
      page.on('pageerror', (error) => errors.push(error.message))
      page.on('console', (message) => {
        if (message.text().includes('Content Security Policy')) errors.push(message.text())
      })
      try {
        await page.goto(`${app.base}${path}`)
        await page.waitForSelector('h1')
        await work(page)
        expect(errors).toEqual([])
      } finally {
        await context.close()
      }
    }

    /** The violations of accessibility that axe finds, by rule, each with the first element. */
    async function violations(page: Page): Promise<readonly string[]> {
      const cdp = await page.context().newCDPSession(page)
      const run = 'axe.run().then(({ violations }) => violations.map((one) => `${one.id}: ${one.nodes[0].html}`))'
      const { result } = await cdp.send('Runtime.evaluate', {
        expression: `${axe.source};${run}`,
        awaitPromise: true,
        returnByValue: true,
      })
      return result.value
    }

    it('shows a hostile statement as text', async () => {
      const hostile = `</pre><img src=x onerror="document.title='pwned'"><script>document.title='pwned'</script>`
      const api = express.Router()
      api.get('/v1/query', (_request, response) => {
        response.json([listedQuery('q', { session: { user: hostile, startTime: 0 }, query: hostile })])
      })
      await withPage('/ui', api, async (page) => {
        await page.getByText(hostile).first().waitFor()
        expect(await page.title()).toBe('Queries · Quipu')
        expect(await page.locator('img').count()).toBe(0)
        expect(await violations(page)).toEqual([])
      })
    })

    /** A running query whose elapsed time grows with each request. @param events the number of its events */
    function runningQuery(events: number): { readonly api: Router; readonly requests: () => number } {
      const api = express.Router()
      let requests = 0
      api.get('/v1/query/q', (_request, response) => {
        requests++
        const body = queryBody('q', { query: 'SELECT the_text' })
        response.json({ ...body, queryStats: { ...body.queryStats, elapsedTime: `${requests}.00s` } })
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
      return { api, requests: () => requests }
    }

    it('keeps a selection of the statement while the figures of the query change', async () => {
      const { api, requests } = runningQuery(3)
      await withPage('/ui/query/q', api, async (page) => {
        await page.getByLabel('Statement').selectText()
        const before = requests()
        await vi.waitFor(() => expect(requests()).toBeGreaterThan(before + 1), waiting)
        await page
          .getByText(`${before + 1} s`, { exact: true })
          .or(page.getByText(`${before + 2} s`, { exact: true }))
          .waitFor()
        expect(await page.evaluate('String(getSelection())')).toBe('SELECT the_text')
      })
    })

    it('shows all events of a long query, and links to its JSON', async () => {
      const { api } = runningQuery(1_500)
      await withPage('/ui/query/q', api, async (page) => {
        await page.getByText('Now: 1500 events').waitFor()
        expect(await page.getByRole('slider').getAttribute('aria-valuemax')).toBe('1500')
        await page.getByRole('cell', { name: 'query failed' }).waitFor()
        expect(await page.getByRole('link', { name: 'JSON' }).getAttribute('href')).toBe('/v1/query/q?format=json')
      })
    })

    it('shows a query as of the event that the slider is moved to by the keyboard', async () => {
      const { api } = runningQuery(3)
      const asOf: unknown[] = []
      const noticing = express.Router()
      noticing.get('/v1/query/q', (request, _response, next) => {
        asOf.push(request.query['asOf'])
        next()
      })
      noticing.use(api)
      await withPage('/ui/query/q', noticing, async (page) => {
        await page.getByText('Now: 3 events').waitFor()
        await page.getByRole('slider').press('ArrowLeft')
        await page.getByText('As of event 2 of 3').waitFor()
        await vi.waitFor(() => expect(asOf).toContain('2'), waiting)
        expect(page.url()).toContain('?asOf=2')
        await page.getByRole('button', { name: 'Go to now' }).click()
        await page.getByText('Now: 3 events').waitFor()
        expect(await violations(page)).toEqual([])
      })
    })

    /** An API with one worker and one cluster; it keeps the changes that the console asks for. */
    function clusterApi(): { readonly api: Router; readonly changes: unknown[] } {
      const api = express.Router()
      const changes: unknown[] = []
      let state: ClusterInfo['state'] = 'ACTIVE'
      api.use(express.json({ strict: false, type: () => true }))
      api.get('/v1/status', (_request, response) => void response.json(STATUS))
      api.get('/v1/node', (_request, response) => void response.json([WORKER]))
      api.get('/v1/cluster', (_request, response) => void response.json([{ ...CLUSTER, state }]))
      api.put('/v1/node/:id/state', (request, response) => {
        changes.push([request.params.id, request.body])
        response.json({})
      })
      api.put('/v1/cluster/:name/state', (request, response) => {
        changes.push([request.params.name, request.body])
        state = (request.body as { state: ClusterInfo['state'] }).state
        response.json({})
      })
      return { api, changes }
    }

    it('drains a worker and a cluster once the user confirms it, and sends the reason', async () => {
      const { api, changes } = clusterApi()
      await withPage('/ui/cluster', api, async (page) => {
        await page.getByText('writes the event log').waitFor()
        const worker = page.getByRole('row', { name: /worker-1/ })
        await worker.getByRole('button', { name: 'Drain' }).click()
        await page.keyboard.press('Escape')
        await page.getByRole('dialog').waitFor({ state: 'hidden' })
        expect(changes).toEqual([])
        await worker.getByRole('button', { name: 'Drain' }).click()
        await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
        await vi.waitFor(() => expect(changes).toEqual([['worker-1', 'SHUTTING_DOWN']]), waiting)

        const cluster = page.getByRole('row', { name: /trino-a/ })
        await cluster.getByRole('button', { name: 'Drain' }).click()
        const dialog = page.getByRole('dialog', { name: 'Drain cluster trino-a' })
        await dialog.getByLabel('Reason').fill('upgrade')
        await dialog.getByRole('button', { name: 'Drain' }).click()
        await cluster.getByText('DRAINING').waitFor()
        expect(changes.slice(1)).toEqual([['trino-a', { state: 'DRAINING', reason: 'upgrade' }]])
        await page.getByRole('dialog').waitFor({ state: 'hidden' })
        expect(await violations(page)).toEqual([])
      })
    })

    it('sorts a table by a click on the head of a column', async () => {
      const api = express.Router()
      const elapsed = { a: '2.00s', b: '30.00ms', c: '1.50m' }
      api.get('/v1/query', (_request, response) => {
        response.json(
          Object.entries(elapsed).map(([id, elapsedTime]) => {
            const query = listedQuery(id)
            return { ...query, queryStats: { ...query.queryStats, elapsedTime } }
          }),
        )
      })
      await withPage('/ui', api, async (page) => {
        await page.getByRole('columnheader', { name: 'Elapsed' }).getByRole('button').click()
        // The first click on a column of numbers sorts from the largest on.
        await page.locator('th[aria-sort=descending]').waitFor()
        expect(await page.locator('tbody tr td:first-child').allTextContents()).toEqual(['c', 'a', 'b'])
      })
    })
  },
)

const STATUS = {
  live: true,
  ready: true,
  log: 'up',
  database: 'up',
  writer: true,
  epoch: 3,
  deadLetters: 0,
  restarts: 0,
  workers: { active: 1, suspect: 0, failed: 0 },
  openQueries: 0,
} satisfies ServerStatus

const WORKER = {
  uri: 'http://localhost:9001',
  age: '5.00m',
  recentRequests: 126.4,
  recentFailures: 0,
  recentSuccesses: 126.4,
  recentFailureRatio: 0,
  recentFailuresByType: {},
  nodeId: 'worker-1',
  nodeVersion: { version: '0.2.0' },
  state: 'active',
} satisfies NodeInfo

const CLUSTER = {
  name: 'trino-a',
  group: 'big',
  url: 'http://localhost:9002',
  state: 'ACTIVE',
  health: 'HEALTHY',
  running: 2,
  waiting: 0,
  maxRunning: 40,
  weight: 1,
  mirrors: [],
  refusedCatalogs: [],
} satisfies ClusterInfo
