import express, { type Router } from 'express'
import { describe, expect, it } from 'vitest'
import { hasChromium } from '../support/chromium.ts'
import { consoleBrowserOfTests, expectAccessible } from '../support/console-browser.ts'

const HOSTILE = '<img src=x onerror="document.title=\'pwned\'">'
const at = { createdAt: '2026-01-01T00:00:00.000Z' }
const LINES = [
  { queryId: 'q_same', ...at, verdict: 'SAME', recordedMs: 10, thereMs: 20, user: 'ann' },
  {
    queryId: 'q_values',
    ...at,
    verdict: 'DIFFERENT',
    difference: { kind: 'values', columns: [1], names: [HOSTILE] },
    thereQueryId: 't_values',
    app: 'dbt',
    sql: `SELECT '${HOSTILE}'`,
    examples: [
      { side: 'here', row: ['2', HOSTILE] },
      { side: 'there', row: ['2', null] },
    ],
  },
  { queryId: 'q_failed', ...at, verdict: 'FAILED_THERE', there: { name: 'SYNTAX_ERROR', message: 'no such thing' } },
  { queryId: 'q_strange', ...at, verdict: 'DIFFERENT', difference: 7, examples: {} },
  { queryId: 'q_later', ...at, verdict: 'OF_A_LATER_VERSION' },
]

/** An API whose record has no replays. */
function emptyRecord(): Router {
  const api = express.Router()
  api.post('/v1/statement', (_request, response) => {
    response.json({ id: 'q', columns: [{ name: 'user', type: 'varchar' }], data: [], stats: { state: 'FINISHED' } })
  })
  return api
}

describe.runIf(hasChromium('nothing looks at the verdicts of a replay'))(
  'The verdicts of a replay in the console',
  { timeout: 180_000 },
  () => {
    const browser = consoleBrowserOfTests()

    it('come from the file of the command, with filters and the differences side by side', async () => {
      const many = Array.from({ length: 2500 }, (_, i) => ({
        queryId: `q_${i}`,
        ...at,
        verdict: 'SKIPPED',
        reason: 'write',
      }))
      const text = [...LINES, ...many].map((line) => JSON.stringify(line)).join('\n')
      const file = { name: 'out.jsonl', mimeType: 'application/json', buffer: Buffer.from(`${text}\n{"queryId":"cut`) }
      await browser.withPage('/ui/record?view=replays', emptyRecord(), async (page) => {
        await page.getByLabel('Verdict file').setInputFiles(file)
        await page.getByText('3 statements').waitFor()
        expect(await page.getByRole('link', { name: 'q_same' }).count()).toBe(0)
        for (const id of ['q_strange', 'q_values'])
          await page.getByRole('button', { name: `Show the differences of ${id}` }).click()
        const sides = page.getByRole('table', { name: 'Here and there' })
        await sides.getByRole('cell', { name: `2 | ${HOSTILE}` }).waitFor()
        await sides.getByRole('cell', { name: '2 | NULL' }).waitFor()
        await page.getByText('t_values').waitFor()
        expect(await page.locator('img').count()).toBe(0)
        await expectAccessible(page)
        await page.getByLabel('Verdict', { exact: true }).selectOption('')
        await page.getByText('2,505 statements, the first 1,000 are shown').waitFor()
        await page.getByLabel('Text', { exact: true }).fill('SYNTAX_error')
        await page.getByText('1 statement', { exact: true }).waitFor()
        await page.getByRole('link', { name: 'q_failed' }).waitFor()
      })
    })
  },
)
