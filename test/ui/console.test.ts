import { readdirSync, readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import express, { type Router } from 'express'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { ClusterInfo, NodeInfo, ServerStatus } from '../../src/protocol/info/schemas/server.ts'
import { createUiRoutes } from '../../src/ui/ui-routes.ts'
import { builtConsole } from '../support/built-console.ts'
import { hasChromium } from '../support/chromium.ts'
import { serve, type HttpApp } from '../support/http-app.ts'
import { consoleBrowserOfTests, expectAccessible, violations } from '../support/console-browser.ts'
import { listedQuery } from '../support/query-bodies.ts'

let folders: Awaited<ReturnType<typeof builtConsole>>
let app: HttpApp
beforeAll(async () => {
  folders = await builtConsole()
})
afterEach(() => app?.close())

describe('The routes of the console', () => {
  it.each([
    '/ui',
    '/ui/',
    '/ui/sql',
    '/ui/record',
    '/ui/groups',
    '/ui/cluster',
    '/ui/nodes',
    '/ui/query/20261121_214446_00000_00001',
  ])('answer with its document at %s', async (path) => {
    app = await serve(createUiRoutes(folders))
    const answer = await fetch(`${app.base}${path}`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'")
    expect(await answer.text()).toMatch(/<script type="module" crossorigin src="\/ui\/assets\/index-[\w-]+\.js">/)
  })

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
    const browser = consoleBrowserOfTests()

    /** An API with one worker and one cluster; it keeps the changes that the console asks for. */
    function clusterApi(nodes: readonly object[] = [WORKER]): { readonly api: Router; readonly changes: unknown[] } {
      const api = express.Router()
      const changes: unknown[] = []
      let state: ClusterInfo['state'] = 'ACTIVE'
      api.use(express.json({ strict: false, type: () => true }))
      api.get('/v1/status', (_request, response) => void response.json(STATUS))
      api.get('/v1/node', (_request, response) => void response.json(nodes))
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
      await browser.withPage('/ui/cluster', api, async (page) => {
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

    it('says that a page does not exist, with status 404', async () => {
      await browser.withPage('/ui/nopage', express.Router(), async (page) => {
        await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
        expect((await page.reload())?.status()).toBe(404)
        await expectAccessible(page)
        await page.getByRole('link', { name: 'Queries' }).click()
        await page.getByRole('heading', { name: 'Queries' }).waitFor()
      })
    })

    it('closes the list of completions when the keyboard runs a statement', async () => {
      // The server refuses the statement: the list has the keywords.
      await browser.withPage('/ui/sql', express.Router(), async (page) => {
        const editor = page.getByRole('textbox', { name: 'SQL statement' })
        await editor.pressSequentially('SEL')
        await page.getByRole('listbox', { name: 'Completions' }).getByRole('option', { name: 'SELECT' }).waitFor()
        await editor.press('Control+Enter')
        await page.getByRole('region', { name: 'Result' }).getByRole('alert').waitFor()
        expect(await page.getByRole('listbox', { name: 'Completions' }).count()).toBe(0)
        expect(await editor.textContent()).toBe('SEL')
      })
    })

    it('lets the server sort the list by a click on the head of a column, over all pages', async () => {
      const api = express.Router()
      const asked: string[] = []
      api.get('/v1/query', (request, response) => {
        asked.push([request.query['sort'], request.query['order']].join(' '))
        response.json([listedQuery('a')])
      })
      await browser.withPage('/ui', api, async (page) => {
        const head = page.getByRole('columnheader', { name: 'Elapsed' }).getByRole('button')
        await head.click()
        // The first click sorts from the largest on.
        await page.locator('th[aria-sort=descending]', { hasText: 'Elapsed' }).waitFor()
        await vi.waitFor(() => expect(asked.at(-1)).toBe('elapsed '), waiting)
        await head.click()
        await page.locator('th[aria-sort=ascending]', { hasText: 'Elapsed' }).waitFor()
        await vi.waitFor(() => expect(asked.at(-1)).toBe('elapsed asc'), waiting)
      })
    })

    it('sorts rows that are all in the page by a click on the head of a column', async () => {
      const nodes = ['a', 'b', 'c'].map((nodeId, at) => ({ ...WORKER, nodeId, age: ['2.00s', '30.00ms', '1.50m'][at] }))
      await browser.withPage('/ui/cluster', clusterApi(nodes).api, async (page) => {
        await page.getByRole('columnheader', { name: 'Age' }).getByRole('button').click()
        await page.locator('th[aria-sort=descending]').waitFor()
        const table = page.getByRole('table', { name: 'Workers' })
        expect(await table.locator('tbody tr td:first-child').allTextContents()).toEqual(['c', 'a', 'b'])
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
