import express from 'express'
import { describe, expect, it } from 'vitest'
import { hasChromium } from '../support/chromium.ts'
import { consoleBrowserOfTests, expectAccessible } from '../support/console-browser.ts'
import { listedQuery, queryBody } from '../support/query-bodies.ts'

/** An id as the server makes it. */
const ID = '20261121_214446_00000_abcde'

describe.runIf(hasChromium('nothing looks at dialogs'))('A dialog of the console', { timeout: 180_000 }, () => {
  const browser = consoleBrowserOfTests()

  it('passes axe, holds the focus, and gives it back when Escape closes it', async () => {
    const api = express.Router()
    api.get(`/v1/query/${ID}`, (_request, response) => void response.json(queryBody(ID)))
    api.get(`/v1/query/${ID}/events`, (_request, response) => void response.json([]))
    await browser.withPage(`/ui/query/${ID}`, api, async (page) => {
      await page.getByRole('button', { name: 'Kill' }).focus()
      await page.keyboard.press('Enter')
      const dialog = page.getByRole('dialog', { name: `Kill query ${ID}` })
      await dialog.getByLabel('Reason').and(page.locator(':focus')).waitFor()
      await expectAccessible(page)
      // From its last element the focus goes to the browser itself, never to the page behind.
      for (let presses = 0; presses < 5; presses++) {
        await page.keyboard.press('Tab')
        await dialog.locator(':focus').or(page.locator('body:not(:has(:focus))')).waitFor()
      }
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Kill' }).and(page.locator(':focus')).waitFor()
    })
  })

  it('about many queries gives the focus back to the button that opened it', async () => {
    const api = express.Router()
    api.get('/v1/query', (_request, response) => void response.json([listedQuery(ID)]))
    api.post('/v1/act/preview', (_request, response) => {
      response.json({ act: 'kill', matched: 0, denied: 1, states: {}, users: [], queries: [], token: 't', expires: '' })
    })
    await browser.withPage('/ui', api, async (page) => {
      const opener = page.getByRole('button', { name: 'Kill all that match' })
      await opener.focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').getByText('0 queries. 1 more is left out').waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await opener.and(page.locator(':focus')).waitFor()
    })
  })

  it('about many queries has the focus on the reason, then on the button that closes it', async () => {
    const api = express.Router()
    // A long preview: its head must stay in view.
    const queries = Array.from({ length: 20 }, (_, at) => {
      return { queryId: `${ID}${at}`, state: 'RUNNING', query: 'SELECT 1', user: 'ann' }
    })
    api.get('/v1/query', (_request, response) => void response.json([listedQuery(ID)]))
    api.post('/v1/act/preview', (_request, response) => {
      response.json({ act: 'kill', matched: 20, denied: 0, states: {}, users: [], queries, token: 't', expires: '' })
    })
    const ended = { id: 'a', act: 'kill', state: 'ENDED', matched: 20, done: 20, outcomes: {}, problems: [] }
    api.post('/v1/act', (_request, response) => void response.json(ended))
    api.get('/v1/act/a', (_request, response) => void response.json(ended))
    await browser.withPage('/ui', api, async (page) => {
      await page.getByRole('button', { name: 'Kill all that match' }).click()
      const dialog = page.getByRole('dialog', { name: 'Kill queries' })
      await dialog.getByLabel('Reason').and(page.locator(':focus')).waitFor()
      expect(await dialog.evaluate((element) => element.scrollTop)).toBe(0)
      await expectAccessible(page)
      await page.keyboard.type('too expensive')
      await page.keyboard.press('Enter')
      await dialog.getByRole('button', { name: 'Close', exact: true }).and(page.locator(':focus')).waitFor()
      await page.keyboard.press('Enter')
      await dialog.waitFor({ state: 'detached' })
    })
  })

  it('shows why the server refuses an act, and does not leave the page, if no session is over', async () => {
    const api = express.Router()
    const detail = 'Only callers with the key of the cluster may forget queries'
    api.get('/ui/session', (_request, response) => void response.json({ user: null, mayLogOut: false }))
    api.get('/v1/query', (_request, response) => void response.json([listedQuery(ID)]))
    api.post('/v1/act/preview', (_request, response) => void response.status(401).json({ detail }))
    await browser.withPage('/ui', api, async (page) => {
      await page.getByLabel('Act', { exact: true }).selectOption('Forget')
      await page.getByRole('button', { name: 'Forget all that match' }).click()
      await page.getByRole('dialog').getByRole('alert').getByText(detail).waitFor()
      expect(new URL(page.url()).pathname).toBe('/ui')
    })
  })

  it('names its button after the act, so that Cancel cannot be read as a way out', async () => {
    const api = express.Router()
    let canceled = 0
    api.get(`/v1/query/${ID}`, (_request, response) => void response.json(queryBody(ID)))
    api.get(`/v1/query/${ID}/events`, (_request, response) => void response.json([]))
    api.delete(`/v1/query/${ID}`, (_request, response) => {
      canceled++
      response.status(204).end()
    })
    await browser.withPage(`/ui/query/${ID}`, api, async (page) => {
      await page.getByRole('button', { name: 'Cancel', exact: true }).click()
      const dialog = page.getByRole('dialog', { name: `Cancel query ${ID}` })
      await dialog.getByRole('button', { name: 'Close the dialog' }).click()
      await dialog.waitFor({ state: 'detached' })
      expect(canceled).toBe(0)
      await page.getByRole('button', { name: 'Cancel', exact: true }).click()
      await dialog.getByRole('button', { name: 'Cancel the query' }).click()
      await dialog.waitFor({ state: 'detached' })
      expect(canceled).toBe(1)
    })
  })
})
