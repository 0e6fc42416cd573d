import { readFileSync, writeFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { builtConsole } from '../support/built-console.ts'
import { hasChromium } from '../support/chromium.ts'
import { expectAccessible, openCheckedBrowser, type CheckedBrowser } from '../support/console-browser.ts'
import { passwordLine } from '../support/password-file.ts'
import { serverOfFile } from '../support/server-of-file.ts'

describe.runIf(hasChromium('nobody works with the console'))(
  'The console of a server with log-in',
  { timeout: 180_000 },
  () => {
    const server = serverOfFile('error', async ({ folder }) => {
      await builtConsole()
      writeFileSync(`${folder}/passwords`, passwordLine('alice', 'open sesame'), { mode: 0o644 })
      return { QUIPU_AUTHENTICATION: 'password', QUIPU_PASSWORD_FILE: `${folder}/passwords` }
    })
    let browser: CheckedBrowser
    beforeAll(async () => {
      browser = await openCheckedBrowser()
    })
    afterAll(() => browser?.close())

    /** Opens a page of the console as alice. */
    async function withPage(path: string, work: (page: Page) => Promise<void>): Promise<void> {
      await browser.withPage(`${server.url}${path}`, async (page) => {
        await page.locator('input[name=user]').fill('alice')
        await page.locator('input[name=password]').fill('open sesame')
        await page.locator('input[name=password]').press('Enter')
        await page.getByRole('navigation').waitFor()
        await work(page)
      })
    }

    it('keeps the user and asks for the password again after a wrong one, and logs out by keyboard', async () => {
      const name = '"><b>alice'
      await browser.withPage(`${server.url}/ui/cluster`, async (page) => {
        await page.locator('input[name=user]').fill(name)
        await page.locator('input[name=password]').fill('wrong')
        await page.keyboard.press('Enter')
        await page.getByText('The user or the password is wrong').waitFor()
        await page.locator('input[name=password]:focus').waitFor()
        expect(await page.locator('input[name=user]').inputValue()).toBe(name)
        await page.locator('input[name=user]').fill('alice')
        await page.keyboard.press('Tab')
        await page.keyboard.type('open sesame')
        await page.keyboard.press('Enter')
        await page.getByRole('heading', { name: 'Cluster', level: 1 }).waitFor()
        await page.getByRole('button', { name: 'Log out' }).press('Enter')
        await page.getByRole('heading', { name: 'Log in' }).waitFor()
        await page.goBack()
        await page.locator('input[name=user]:focus').waitFor()
      })
    })

    const editor = (page: Page) => page.getByRole('textbox', { name: 'SQL statement' })

    async function run(page: Page, sql: string): Promise<void> {
      await editor(page).fill(sql)
      await editor(page).press('Control+Enter')
    }

    it('runs statements, shows exact values, and completes names by the metadata of the server', async () => {
      await withPage('/ui/sql', async (page) => {
        await editor(page).fill('SELECT name FROM tpch.tin')
        await editor(page).press('Control+Space')
        await page.getByRole('option', { name: 'tiny' }).click()
        await editor(page).press('End')
        await page.keyboard.type('.nati')
        await page.getByRole('option', { name: 'nation' }).click()
        await editor(page).press('Control+Enter')
        await page.getByRole('cell', { name: 'ALGERIA' }).waitFor()
        await run(
          page,
          `SELECT 9007199254740993 AS big, DECIMAL '1.10' AS price, ARRAY[9007199254740993] AS list, '<img src=x onerror=alert(1)>' AS hostile, '' AS empty, CAST(NULL AS varchar) AS nothing`,
        )
        const row = page.getByRole('region', { name: 'Result' }).locator('tbody tr')
        await row.getByText('9007199254740993', { exact: true }).waitFor()
        expect(await row.locator('td').allTextContents()).toEqual([
          '9007199254740993',
          '1.10',
          '[9007199254740993]',
          '<img src=x onerror=alert(1)>',
          '',
          'NULL',
        ])
        const saved = page.waitForEvent('download')
        await page.getByRole('button', { name: 'CSV' }).click()
        expect(readFileSync(await (await saved).path(), 'utf8')).toBe(
          'big,price,list,hostile,empty,nothing\r\n9007199254740993,1.10,[9007199254740993],<img src=x onerror=alert(1)>,"",\r\n',
        )
        await expectAccessible(page)
      })
    })

    it('shows a thousand rows of a large result at a time, and saves all of them', async () => {
      await withPage('/ui/sql', async (page) => {
        await run(page, 'SELECT orderkey FROM tpch.tiny.orders;')
        await page.getByText('rows 1 to 1,000, and more').waitFor()
        await page.getByRole('button', { name: 'Next 1,000 rows' }).click()
        await page.getByText('rows 1,001 to 2,000, and more').waitFor()
        const saved = page.waitForEvent('download')
        await page.getByRole('button', { name: 'JSON' }).click()
        const { rows } = JSON.parse(readFileSync(await (await saved).path(), 'utf8')) as { readonly rows: unknown[] }
        expect(rows.length).toBe(15_000)
        await page.getByRole('button', { name: 'Cancel' }).click()
      })
    })

    it('answers questions to the record with the rights of the user', async () => {
      await withPage('/ui/record', async (page) => {
        await page.getByLabel('Table (catalog.schema.table)').fill('tpch.tiny.nation')
        await page.getByRole('button', { name: 'Ask' }).click()
        await page.getByRole('cell', { name: 'alice' }).first().waitFor()
        await page.getByLabel('Question').selectOption('Log-ins')
        await page.getByRole('cell', { name: 'LOGGED_IN' }).first().waitFor()
        await page.getByLabel('Question').selectOption('Events')
        await page.getByText('show').first().click()
        await expectAccessible(page)
        for (const question of ['Cost', 'Unused tables', 'Refusals', 'Acts of administrators', 'Replays']) {
          await page.getByLabel('Question').selectOption(question)
          await page.getByRole('table', { name: 'Rows' }).or(page.getByText('The record has nothing')).waitFor()
          expect(await page.getByRole('alert').count()).toBe(0)
        }
        await page.getByLabel('Question').selectOption('Cost')
        const sums = [
          'group of the user',
          'app',
          'dashboard, model, DAG',
          'source',
          'table',
          'cluster',
          'resource group',
          'day',
        ]
        for (const by of sums) {
          await page.getByLabel('By').selectOption(by)
          await page.getByRole('button', { name: 'Ask' }).click()
          await page.getByText(`FROM system.history.`).waitFor({ state: 'attached' })
          await page.getByText('The record is being read.').waitFor({ state: 'detached' })
          expect([by, await page.getByRole('alert').count()]).toEqual([by, 0])
        }
        await page.getByLabel('Question').selectOption('Audits and anchors')
        await page.getByText('No audit is recorded').waitFor()
        await page.getByRole('table', { name: 'Keys of anchors' }).getByText('itself').waitFor()
      })
    })

    it('finds the readers of a table whose name has a dot', async () => {
      await withPage('/ui/sql', async (page) => {
        await run(page, 'CREATE TABLE memory.default."sales.2026" AS SELECT 1 AS id')
        await page.getByText('CREATE TABLE: ').waitFor()
        await run(page, 'SELECT id FROM memory.default."sales.2026"')
        await page.getByRole('columnheader', { name: 'id' }).waitFor()
        await page.getByRole('link', { name: 'Record' }).click()
        await page.getByLabel('Table (catalog.schema.table)').fill('memory.default."sales.2026"')
        await page.getByRole('button', { name: 'Ask' }).click()
        await page.getByRole('cell', { name: 'alice' }).first().waitFor()
        await page.getByLabel('Table (catalog.schema.table)').fill('memory.default.sales.2026')
        await page.getByRole('button', { name: 'Ask' }).click()
        await page.getByText('a name with a dot is in double quotes').waitFor()
      })
    })

    it('cancels a statement, marks errors, shows plans, and opens earlier and saved statements', async () => {
      await withPage('/ui/sql', async (page) => {
        await run(page, 'SELECT count(*) FROM tpch.tiny.lineitem a, tpch.tiny.lineitem b WHERE a.comment < b.comment')
        await page.getByText('RUNNING').waitFor()
        await page.getByRole('button', { name: 'Cancel' }).click()
        await page.getByRole('status').getByRole('link').click()
        await page.getByText('USER_CANCELED').first().waitFor()
        await page.goBack()
        await run(page, 'SELECT 1,\n  nmae FROM tpch.tiny.nation')
        await page.getByText('COLUMN_NOT_FOUND').waitFor()
        expect(await page.locator('.cm-error-place').textContent()).toBe('nmae')
        await page.getByRole('table', { name: 'My statements' }).getByText('nmae').first().waitFor()
        await editor(page).fill('SELECT count(*) FROM tpch.tiny.orders')
        await page.getByRole('button', { name: 'Explain' }).click()
        await page.getByRole('region', { name: 'Plan of the statement' }).getByText('Aggregate').waitFor()
        await page.getByRole('tab', { name: 'Saved' }).click()
        await page.getByLabel('Save the statement as').fill('count')
        await page.getByRole('button', { name: 'Save', exact: true }).click()
        await page.getByRole('row', { name: /^count/ }).waitFor()
        await page.getByRole('tab', { name: 'My statements' }).click()
        await page.getByRole('row', { name: /nmae/ }).getByRole('button', { name: 'Open' }).click()
        await editor(page).getByText('nmae').waitFor()
        expect(await page.getByRole('row', { name: /SHOW/ }).count()).toBe(0)
        await page.getByRole('tab', { name: 'Saved' }).click()
        await page
          .getByRole('row', { name: /^count/ })
          .getByRole('button', { name: 'Open' })
          .click()
        await editor(page).getByText('orders').waitFor()
        await expectAccessible(page)
      })
    })
  },
)
