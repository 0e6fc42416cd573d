import express from 'express'
import { describe, expect, it } from 'vitest'
import { hasChromium } from '../support/chromium.ts'
import { consoleBrowserOfTests, expectAccessible } from '../support/console-browser.ts'
import { listedQuery, queryBody } from '../support/query-bodies.ts'

describe.runIf(hasChromium('nothing looks at pages that fail'))('A page that fails', { timeout: 180_000 }, () => {
  const browser = consoleBrowserOfTests()

  it('says so and offers to load it again, if the server has another version by now', async () => {
    const api = express.Router()
    api.get('/v1/query', (_request, response) => void response.json([listedQuery('q')]))
    api.get(/^\/ui\/assets\/cluster-.*\.js$/, (_request, response) => void response.status(404).json({}))
    await browser.withPage('/ui', api, async (page) => {
      await page.getByRole('link', { name: 'Cluster' }).click()
      await page.getByRole('heading', { name: 'The page failed' }).waitFor()
      await page.getByRole('button', { name: 'Reload the page' }).waitFor()
      await expectAccessible(page)
      await page.getByRole('link', { name: 'Queries' }).click()
      await page.getByRole('link', { name: 'q', exact: true }).waitFor()
    })
  })

  it('keeps the query that it shows while the server cannot read it', async () => {
    const api = express.Router()
    let isThere = true
    api.get('/v1/query/q', (_request, response) => {
      if (isThere) response.json(queryBody('q', { query: 'SELECT the_text' }))
      else response.status(503).json({ detail: 'The read models are behind' })
    })
    api.get('/v1/query/q/events', (_request, response) => void response.json([]))
    await browser.withPage('/ui/query/q', api, async (page) => {
      await page.getByText('SELECT the_text').waitFor()
      isThere = false
      await page.getByText('The read models are behind').waitFor()
      await page.getByText('SELECT the_text').waitFor()
      isThere = true
      await page.getByText('The read models are behind').waitFor({ state: 'detached' })
    })
  })

  it('keeps the workers that it shows while the server cannot be reached', async () => {
    const api = express.Router()
    let isThere = true
    api.get('/v1/node', (request, response) => {
      if (isThere) response.json([])
      else request.socket.destroy()
    })
    await browser.withPage('/ui/cluster', api, async (page) => {
      await page.getByText('No workers.').waitFor()
      isThere = false
      const workers = page.getByRole('region', { name: 'Workers' })
      await workers.getByText('The server cannot be reached').waitFor()
      await workers.getByText('No workers.').waitFor()
    })
  })

  it('names the query that the server does not show, and why', async () => {
    const api = express.Router()
    for (const path of ['/v1/query/q', '/v1/query/q/events'])
      api.get(path, (_request, response) => void response.status(404).json({ detail: 'The query q does not exist' }))
    await browser.withPage('/ui/query/q', api, async (page) => {
      await page.getByText('The query q does not exist').waitFor()
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('q')
      await expectAccessible(page)
    })
  })

  it('asks for two queries to compare, if the address has none', async () => {
    await browser.withPage('/ui/compare', express.Router(), async (page) => {
      await page.getByText('Choose two runs').waitFor()
    })
  })
})
