// npm run pictures:console: takes the pictures of the console in docs/pictures from a server with a few statements.
import { chromium } from 'playwright-core'
import { createClient, startServer } from './quipu-server.mjs'

const pictures = new URL('../docs/pictures/', import.meta.url).pathname
const server = await startServer()
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
try {
  const client = createClient(server.base, { source: 'dashboard' })
  const joined = 'SELECT orderstatus, count(*) FROM orders o JOIN lineitem l ON o.orderkey = l.orderkey GROUP BY 1'
  for (const sql of ['SELECT nmae FROM nation', 'SELECT name FROM nation LIMIT 3', joined])
    await client.rows(sql).catch(() => undefined)
  const listed = await (await fetch(`${server.base}/v1/query`)).json()
  const page = await browser.newPage({ viewport: { width: 1100, height: 960 }, timezoneId: 'UTC' })
  await page.goto(`${server.base}/ui`)
  await page.getByRole('link', { name: listed[0].queryId }).waitFor()
  await page.screenshot({ path: `${pictures}ui-queries.png`, clip: { x: 0, y: 0, width: 1100, height: 560 } })
  await page.goto(`${server.base}/ui/query/${listed[0].queryId}?asOf=5`)
  await page.getByText('As of event 5').waitFor()
  await page.screenshot({ path: `${pictures}ui-query.png`, clip: { x: 0, y: 0, width: 1100, height: 640 } })
  await page.goto(`${server.base}/ui/query/${listed[0].queryId}?tab=graph`)
  await page.getByText('Operators', { exact: true }).last().click()
  await page
    .getByRole('region', { name: 'Graph of operators' })
    .getByText('LookupJoin')
    .first()
    .waitFor({ timeout: 120_000 })
  await page.screenshot({ path: `${pictures}ui-graph.png` })
  await page.goto(`${server.base}/ui/sql`)
  const editor = page.getByRole('textbox', { name: 'SQL statement' })
  await editor.fill(`SELECT r.name AS region, count(*) AS nations
FROM tpch.tiny.nation n JOIN tpch.tiny.region r ON n.regionkey = r.regionkey
GROUP BY r.name ORDER BY region`)
  await editor.press('Control+Enter')
  await page.getByRole('cell', { name: 'MIDDLE EAST' }).waitFor()
  await editor.press('Escape')
  await page.getByRole('row', { name: /GROUP BY r.name/ }).waitFor()
  await page.screenshot({ path: `${pictures}ui-sql.png`, clip: { x: 0, y: 0, width: 1100, height: 720 } })
  await page.goto(`${server.base}/ui/cluster`)
  await page.getByText('writes the event log').waitFor()
  await page.getByRole('img', { name: 'CPU over the last minutes' }).waitFor()
  for (let n = 0; n < 4; n++) {
    await client.rows(joined)
    await page.waitForTimeout(5000)
  }
  await page.screenshot({ path: `${pictures}ui-cluster.png`, clip: { x: 0, y: 0, width: 1100, height: 560 } })
  client.close()
} finally {
  await browser.close()
  await server.stop()
}
