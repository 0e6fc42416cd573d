import express, { type Router } from 'express'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { hasChromium } from '../support/chromium.ts'
import { consoleBrowserOfTests, expectAccessible } from '../support/console-browser.ts'
import { answerStats } from '../support/query-bodies.ts'

describe.runIf(hasChromium('nothing looks at the page for SQL'))('The SQL page', { timeout: 180_000 }, () => {
  const browser = consoleBrowserOfTests()

  async function write(page: Page, sql: string): Promise<void> {
    await page.getByRole('textbox', { name: 'SQL statement' }).fill(sql)
  }

  it('runs and explains no empty statement', async () => {
    await browser.withPage('/ui/sql', statementApi(), async (page) => {
      await page.getByRole('button', { name: 'Run', disabled: true }).waitFor()
      await page.getByRole('button', { name: 'Explain', disabled: true }).waitFor()
      await write(page, 'SELECT 1')
      await page.getByRole('button', { name: 'Run', disabled: false }).waitFor()
    })
  })

  it('says that the statement was canceled', async () => {
    await browser.withPage('/ui/sql', statementApi(), async (page) => {
      await write(page, 'SELECT endless')
      await page.getByRole('button', { name: 'Run' }).click()
      const result = page.getByRole('region', { name: 'Result' })
      await result.getByText('RUNNING').waitFor()
      await page.getByRole('button', { name: 'Cancel' }).click()
      await result.getByText('CANCELED').waitFor()
      await expectAccessible(page)
    })
  })

  it('shows the problem of a refused statement, and no statement that is being sent', async () => {
    await browser.withPage('/ui/sql', statementApi(), async (page) => {
      await write(page, 'SELECT refused')
      await page.getByRole('button', { name: 'Run' }).click()
      await page.getByRole('alert').getByText('Too many statements').waitFor()
      expect(await page.getByText('being sent').count()).toBe(0)
    })
  })

  it('sorts decimals by their numbers', async () => {
    await browser.withPage('/ui/sql', statementApi(), async (page) => {
      await write(page, 'SELECT decimals')
      await page.getByRole('button', { name: 'Run' }).click()
      const rows = page.getByRole('table', { name: 'Rows' })
      await rows.getByRole('button', { name: 'price' }).click()
      await page.locator('th[aria-sort=descending]').waitFor()
      expect(await rows.locator('tbody td').allTextContents()).toEqual(['10.00', '9.50', '-1.00', 'NULL'])
    })
  })

  it('keeps the rows and the focus until the next rows are there, and begins with the first of them', async () => {
    let isAllowed = false
    await browser.withPage(
      '/ui/sql',
      statementApi(() => isAllowed),
      async (page) => {
        await write(page, 'SELECT many')
        await page.getByRole('button', { name: 'Run' }).click()
        await page.getByText('1 to 200 of 1,000').waitFor()
        await page.getByRole('button', { name: 'Next', exact: true }).click()
        await page.getByText('201 to 400 of 1,000').waitFor()
        const next = page.getByRole('button', { name: 'Next 1,000 rows' })
        // The rows are below the button: the first of the next ones is seen.
        expect((await next.boundingBox())!.y).toBeLessThan(
          (await page.getByRole('table', { name: 'Rows' }).boundingBox())!.y,
        )
        await next.press('Enter')
        await page.getByText('RUNNING').waitFor()
        await page.getByRole('cell', { name: '200', exact: true }).waitFor()
        await next.and(page.locator(':focus')).and(page.locator('[aria-disabled=true]')).waitFor()
        isAllowed = true
        await page.getByRole('cell', { name: '1000', exact: true }).waitFor()
        await page.getByText('1 to 200 of 300').waitFor()
      },
    )
  })

  it('goes on with a statement when the server is back after more than ten seconds', async () => {
    const api = express.Router()
    // The page asks twice a second.
    let requests = 0
    api.get('/v1/statement/decimals/1', (request, _response, next) => {
      if (requests++ < 22) request.socket.destroy()
      else next()
    })
    api.use(statementApi())
    await browser.withPage('/ui/sql', api, async (page) => {
      await write(page, 'SELECT decimals')
      await page.getByRole('button', { name: 'Run' }).click()
      await page.getByRole('cell', { name: '10.00' }).waitFor()
    })
  })

  it('marks the error of a statement that it explains at its own line and column', async () => {
    await browser.withPage('/ui/sql', statementApi(), async (page) => {
      await write(page, 'SELECT wrong')
      await page.getByRole('button', { name: 'Explain' }).click()
      await page.getByRole('alert').getByText("COLUMN_NOT_FOUND: line 1:8: Column 'wrong' cannot be resolved").waitFor()
      expect(await page.locator('.cm-error-place').textContent()).toBe('wrong')
    })
  })

  it('marks the error of a statement behind characters of two UTF-16 units', async () => {
    await browser.withPage('/ui/sql', statementApi(), async (page) => {
      await write(page, "SELECT '\u{1F600}\u{1F600}', wrong")
      await page.getByRole('button', { name: 'Run' }).click()
      await page.getByRole('alert').getByText('line 1:14').waitFor()
      expect(await page.locator('.cm-error-place').textContent()).toBe('wrong')
    })
  })

  it('marks the last character of a statement that ends too early, and shows no rows for it', async () => {
    await browser.withPage('/ui/sql', statementApi(), async (page) => {
      await write(page, 'SELECT 1\nFROM')
      await page.getByRole('button', { name: 'Run' }).click()
      await page.getByRole('alert').getByText('<EOF>').waitFor()
      expect(await page.locator('.cm-error-place').textContent()).toBe('M')
      expect(await page.getByText('There are no rows').count()).toBe(0)
    })
  })

  it('has no heads that sort by a column of buttons', async () => {
    await browser.withPage('/ui/sql', statementApi(), async (page) => {
      await page.getByRole('tab', { name: 'Saved' }).click()
      await write(page, 'SELECT 1')
      await page.getByRole('button', { name: 'Save', disabled: true }).waitFor()
      await page.getByLabel('Save the statement as').fill('one')
      await page.getByRole('button', { name: 'Save' }).click()
      const table = page.getByRole('table', { name: 'Saved queries' })
      await table.getByRole('columnheader', { name: 'Name' }).getByRole('button').waitFor()
      expect(await table.getByRole('columnheader', { name: 'Editor' }).getByRole('button').count()).toBe(0)
    })
  })
})

const running = answerStats('RUNNING', 1)
const finished = answerStats('FINISHED', 1)

/** Statements, by a word in their text. @param mayGoOn whether the rows after the first thousand are there */
function statementApi(mayGoOn: () => boolean = () => true): Router {
  const api = express.Router()
  api.use(express.text({ type: () => true }))
  const next = (path: string) => `http://localhost/v1/statement/${path}`
  const columns = [{ name: 'price', type: 'decimal(5,2)' }]
  const numbers = (from: number, count: number) => Array.from({ length: count }, (_, at) => [String(from + at)])
  api.get('/v1/query', (_request, response) => void response.json([]))
  api.post('/v1/statement', (request, response) => {
    const sql = String(request.body)
    if (sql.includes('refused')) response.status(429).json({ detail: 'Too many statements' })
    else if (sql.includes('endless')) response.json({ id: 'q', stats: running, nextUri: next('endless/1') })
    else if (sql.includes('many')) response.json({ id: 'q', stats: running, nextUri: next('many/1') })
    else if (sql.includes('decimals')) response.json({ id: 'q', stats: running, nextUri: next('decimals/1') })
    else if (sql.endsWith('FROM'))
      response.json({ id: 'q', columns, stats: answerStats('FAILED', 1), error: endedTooEarly })
    else if (sql.includes('wrong')) response.json({ id: 'q', stats: answerStats('FAILED', 1), error: errorIn(sql) })
    else response.json({ id: 'q', columns, data: [], stats: finished })
  })
  api.get('/v1/statement/endless/1', (_request, response) => {
    setTimeout(() => response.json({ id: 'q', stats: running, nextUri: next('endless/1') }), 50)
  })
  api.get('/v1/statement/decimals/1', (_request, response) => {
    response.json({ id: 'q', columns, data: [['9.50'], [null], ['10.00'], ['-1.00']], stats: finished })
  })
  api.get('/v1/statement/many/1', (_request, response) => {
    response.json({ id: 'q', columns, data: numbers(0, 1000), stats: running, nextUri: next('many/2') })
  })
  api.get('/v1/statement/many/2', (_request, response) => {
    if (mayGoOn()) response.json({ id: 'q', columns, data: numbers(1000, 300), stats: finished })
    else setTimeout(() => response.json({ id: 'q', columns, stats: running, nextUri: next('many/2') }), 50)
  })
  api.delete('/v1/statement/*path', (_request, response) => void response.status(204).end())
  return api
}

const endedTooEarly = {
  errorName: 'SYNTAX_ERROR',
  message: "line 2:5: mismatched input '<EOF>'",
  errorLocation: { lineNumber: 2, columnNumber: 5 },
}

/** The error of a statement with the word `wrong`, at its position in the whole text. */
function errorIn(sql: string) {
  const lines = sql.split('\n')
  const lineNumber = lines.findIndex((line) => line.includes('wrong')) + 1
  // In code points, as the server counts.
  const columnNumber = [...lines[lineNumber - 1]!.split('wrong')[0]!].length + 1
  return {
    errorName: 'COLUMN_NOT_FOUND',
    message: `line ${lineNumber}:${columnNumber}: Column 'wrong' cannot be resolved`,
    errorLocation: { lineNumber, columnNumber },
  }
}
