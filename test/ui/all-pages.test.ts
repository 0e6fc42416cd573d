import express, { type Router } from 'express'
import type { Locator, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { AuditInfo } from '../../src/protocol/audit/audit-info.ts'
import type { TotalsInfo } from '../../src/protocol/info/schemas/query.ts'
import type { ServerStatus } from '../../src/protocol/info/schemas/server.ts'
import { logInPage } from '../../src/protocol/log-in/pages.ts'
import { sendPage } from '../../src/protocol/log-in/page.ts'
import { hasChromium } from '../support/chromium.ts'
import { consoleBrowserOfTests, expectAccessibleAs, violations } from '../support/console-browser.ts'
import { unexplainedNumbers } from '../support/console-numbers.ts'
import { FULL_TESTS } from '../support/full-tests.ts'
import { answerStats, listedQuery, queryBody, stageBody, taskBody } from '../support/query-bodies.ts'

/** A page of the console, and a text that it shows once its data are there. */
const PAGES: readonly (readonly [path: string, text: string | RegExp])[] = [
  ['/ui', 'q-one'],
  ...['overview', 'graph', 'operators', 'tasks', 'splits', 'lineage', 'runs', 'session', 'events'].map(
    (tab) => [`/ui/query/q-one?tab=${tab}`, /As of event|Now: 3 events/] as const,
  ),
  ['/ui/compare?a=q-one&b=q-two', 'Peak memory'],
  ['/ui/sql', 'My statements'],
  ['/ui/record?view=reads&table=lake.shop.sales', 'The statement of this question'],
  ['/ui/record?view=cost', 'The statement of this question'],
  ['/ui/record?view=unused', 'The statement of this question'],
  ['/ui/record?view=audits', 'Last audit'],
  ['/ui/groups', 'Waiting queries'],
  ['/ui/cluster', 'writes the event log'],
]

/** Light and dark, narrow and wide windows, with and without log-in. */
const LOOKS = [
  { user: null, colorScheme: 'light', width: 390 },
  { user: null, colorScheme: 'dark', width: 1600 },
  { user: 'ana', colorScheme: 'dark', width: 390 },
  { user: 'ana', colorScheme: 'light', width: 1600 },
  { user: null, colorScheme: 'light', width: 1600 },
  { user: null, colorScheme: 'dark', width: 390 },
  { user: 'ana', colorScheme: 'dark', width: 1600 },
  { user: 'ana', colorScheme: 'light', width: 390 },
] as const

/** The looks for the test of a page: all of them in a full test, else two. The pages together have all looks. */
function looksOf(page: number) {
  const at = (2 * page) % LOOKS.length
  return FULL_TESTS ? LOOKS : LOOKS.slice(at, at + 2)
}

describe.runIf(hasChromium('nothing looks at all pages'))('All pages of the console', { timeout: 600_000 }, () => {
  const browser = consoleBrowserOfTests()

  /** Goes to a path as a link of the console does, without loading the document again. */
  async function open(page: Page, path: string, text: string | RegExp): Promise<void> {
    await page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)})`)
    await page.getByText(text).first().waitFor({ state: 'attached' })
    if (path.includes('tab=events')) await page.getByRole('row').nth(3).waitFor()
    if (path.includes('tab=graph')) await page.locator('.react-flow__node').first().waitFor()
  }

  /** Waits until the three charts have values. A page that is seen again reads its data again. */
  async function measured(page: Page, charts: Locator): Promise<void> {
    await expect
      .poll(async () => {
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        return charts.count()
      })
      .toBe(3)
  }

  it.each([null, 'ana'])(
    'pass axe in light and dark, narrow and wide, and explain every number, with the user %s',
    async (user) => {
      await browser.withPage('/ui', consoleApi({ user }), async (page) => {
        for (const [at, [path, text]] of PAGES.entries()) {
          const looks = looksOf(at).filter((one) => one.user === user)
          for (const look of looks) {
            await open(page, path, text)
            await expectAccessibleAs(page, look)
          }
          if (looks.length > 0) expect(await unexplainedNumbers(page), path).toEqual([])
        }
        await open(page, '/ui/cluster', 'writes the event log')
        await page.evaluate("document.querySelector('dd').textContent = '7 s'")
        expect(await unexplainedNumbers(page), 'a number without explanation').toEqual(['7 s'])
      })
    },
  )

  it('draw the activity of the last minutes as charts with the newest value, and each value by pointer and keyboard', async () => {
    await browser.withPage('/ui/cluster', consoleApi({ user: null }), async (page) => {
      const cdp = await page.context().newCDPSession(page)
      await cdp.send('Emulation.setTimezoneOverride', { timezoneId: 'Asia/Kolkata' })
      await page.reload()
      const charts = page.getByRole('img', { name: /over the last minutes: / })
      await measured(page, charts)
      expect(await charts.last().getAttribute('aria-label')).toBe(
        'Open over the last minutes: 0 queries, at most 0 queries',
      )
      const pointed = page.locator('figure').last().getByRole('status')
      await charts.last().hover()
      await expect.poll(() => pointed.textContent()).toMatch(/^\d\d:\d\d:\d\d: 0 queries$/)
      await page.getByRole('heading', { level: 1 }).hover()
      await expect.poll(() => pointed.textContent()).toBe('')
      await charts.last().press('End')
      const local = await pointed.textContent()
      expect(local).toMatch(/^\d\d:\d\d:\d\d: 0 queries$/)
      await page.getByText('UTC', { exact: true }).click()
      await charts.last().press('End')
      await expect.poll(() => pointed.textContent()).not.toBe(local)
      await charts.last().press('Home')
      expect(await unexplainedNumbers(page)).toEqual([])
      await charts.last().press('Escape')
      await expect.poll(() => pointed.textContent()).toBe('')
      await cdp.detach()
    })
  })

  it('draw the activity anew in another width and in other colors', async () => {
    await browser.withPage('/ui/cluster', consoleApi({ user: null }), async (page) => {
      const charts = page.getByRole('img', { name: /over the last minutes: / })
      await measured(page, charts)
      const drawn: unknown[] = []
      for (const [width, colorScheme] of [
        [390, 'dark'],
        [1600, 'dark'],
        [1600, 'light'],
      ] as const) {
        await expectAccessibleAs(page, { width, colorScheme })
        for (const chart of await charts.all())
          await expect
            .poll(async () => {
              const [outer, inner] = [await chart.boundingBox(), await chart.locator('canvas').boundingBox()]
              return Math.abs((outer?.width ?? 0) - (inner?.width ?? 9)) <= 1 && (outer?.width ?? 0) > 200
            })
            .toBe(true)
        const picture = () => page.evaluate("document.querySelector('figure canvas').toDataURL()")
        await expect.poll(async () => drawn.includes(await picture())).toBe(false)
        drawn.push(await picture())
      }
    })
  })

  it('show an explanation by keyboard, pointer and tap, and hide it by Escape', async () => {
    await browser.withPage('/ui', consoleApi({ user: null }), async (page) => {
      const head = page.getByRole('columnheader', { name: 'CPU' }).getByRole('button')
      const explanation = page.getByRole('tooltip').getByText('CPU time of all tasks')
      await head.focus()
      await explanation.waitFor()
      await page.keyboard.press('Escape')
      await explanation.waitFor({ state: 'detached' })
      await page.getByRole('heading', { level: 1 }).click()
      await head.hover()
      await explanation.waitFor()
      await page.getByRole('heading', { level: 1 }).hover()
      await explanation.waitFor({ state: 'detached' })
      await page.goto(`${new URL('/ui/query/q-one', page.url())}`)
      await page.getByRole('button', { name: 'Peak memory' }).click()
      await page.getByRole('tooltip').getByText('The most memory').waitFor()
    })
  })

  it.each(['light', 'dark'] as const)('have a log-in that passes axe in %s', async (colorScheme) => {
    const api = express.Router()
    api.get('/ui/log-in', (_request, response) => {
      sendPage(response, 401, logInPage({ password: true, provider: true }, '/ui', 'alice'))
    })
    await browser.withPage('/ui/log-in', api, async (page) => {
      await page.setViewportSize({ width: 390, height: 900 })
      await page.emulateMedia({ colorScheme })
      expect(await violations(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390)
    })
  })

  it('hold at most 1,000 rows with 500 running queries and 10,000 events', async () => {
    const running = Array.from({ length: 500 }, (_, at) => listedQuery(`q-${at}`, { state: 'RUNNING' }))
    const api = consoleApi({ user: null }, { queries: running, events: 10_000 })
    await browser.withPage('/ui/groups', api, async (page) => {
      const rows = async (): Promise<number> => Number(await page.evaluate("document.querySelectorAll('tr').length"))
      await page.getByText('1 to 200 of 500').waitFor()
      expect(await rows()).toBeLessThan(1000)
      for (const [path, text] of [
        ['/ui', 'q-99'],
        ['/ui/query/q-one?tab=events', '1 to 100 of 10,000'],
      ] as const) {
        await page.goto(new URL(path, page.url()).href)
        await page.getByText(text).first().waitFor()
        await expect.poll(rows, { message: path }).toBeGreaterThan(90)
        expect(await rows(), path).toBeLessThan(1000)
      }
    })
  })
})

/** All resources that the pages read, with numbers in every field. */
function consoleApi(
  viewer: { readonly user: string | null },
  { queries = LISTED, events = 3 }: { readonly queries?: readonly object[]; readonly events?: number } = {},
): Router {
  const api = express.Router()
  const answers: Readonly<Record<string, unknown>> = {
    '/v1/query/totals': TOTALS,
    '/v1/query/q-one': QUERY,
    '/v1/query/q-two': { ...QUERY, queryId: 'q-two' },
    '/v1/resourceGroupState': [GROUP],
    '/v1/status': STATUS,
    '/v1/node': [WORKER],
    '/v1/cluster': [CLUSTER],
    '/v1/audit': AUDITS,
  }
  api.get('/ui/session', (_request, response) => void response.json({ ...viewer, mayLogOut: viewer.user !== null }))
  for (const [path, answer] of Object.entries(answers))
    api.get(path, (_request, response) => void response.json(answer))
  api.get('/v1/query', (request, response) => {
    response.json(queries.slice(0, Number(request.query['limit'])))
  })
  api.get('/v1/query/:id/events', (request, response) => {
    const after = Number(request.query['after'])
    const count = Math.max(0, Math.min(Number(request.query['limit']), events - after))
    response.json(Array.from({ length: count }, (_, at) => eventBody(after + at + 1)))
  })
  api.post('/v1/statement', (_request, response) => void response.json(ANSWER))
  return api
}

function eventBody(sequence: number) {
  const type = sequence === 2 ? 'quipu.query.planned.v8' : 'quipu.query.progressed.v2'
  const data = { stages: [{ id: 1, splits: [{ scan: 0, catalog: 'lake', rows: 1200, bytes: 5000 }] }] }
  return { type, time: new Date(Date.parse('2026-11-21T21:44:46Z') + sequence).toISOString(), sequence, data }
}

const PRICED = { cost: 0.5, currency: 'EUR' }
const LISTED = [
  listedQuery('q-one', { ...PRICED, app: 'dbt', fingerprint: 'f' }),
  listedQuery('q-two', { state: 'RUNNING' }),
  listedQuery('q-three', { state: 'QUEUED', queuedReason: 'The group is full' }),
]

const FIGURES = {
  queries: 3,
  cpuTime: '2.00s',
  elapsedTime: '9.00s',
  rawInputDataSize: '2048B',
  outputPositions: 3,
  outputDataSize: '10B',
  ...PRICED,
}
const TOTALS: TotalsInfo = { ...FIGURES, states: { FINISHED: FIGURES } }

const TASK = taskBody('q-one.1.0', [
  { inputPositions: 7, outputPositions: 5, estimatedPositions: 9, getOutputWall: '3.00ms' },
  { operatorType: 'OutputOperator', inputPositions: 5, outputPositions: 5 },
])
const QUERY = queryBody('q-one', {
  ...PRICED,
  state: 'FINISHED',
  finalQueryInfo: true,
  fingerprint: 'f',
  recoveries: 2,
  outputStage: stageBody('q-one.1', [], [TASK], { totalSplits: 4, outputPositions: 5 }),
  inputs: [{ catalogName: 'lake', schema: 'shop', table: 'sales', columns: [{ name: 'price' }] }],
})

const GROUP = {
  id: ['global'],
  state: 'CAN_RUN',
  schedulingPolicy: 'FAIR',
  schedulingWeight: 1,
  softMemoryLimit: '0B',
  memoryUsage: '2048B',
  cpuUsage: '1.00s',
  hardConcurrencyLimit: 10,
  maxQueuedQueries: 100,
  numRunningQueries: 1,
  numQueuedQueries: 1,
}

const STATUS = {
  live: true,
  ready: true,
  log: 'up',
  database: 'up',
  writer: true,
  epoch: 3,
  lag: { events: 5, oldestMillis: 20 },
  deadLetters: 1,
  restarts: 2,
  workers: { active: 1, suspect: 0, failed: 0 },
  openQueries: 2,
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
  runningTasks: 3,
  cores: 8,
  memoryBytes: 8_000_000_000,
}

const CLUSTER = {
  name: 'trino-a',
  group: 'big',
  url: 'http://localhost:9002',
  state: 'ACTIVE',
  health: 'HEALTHY',
  running: 2,
  waiting: 1,
  maxRunning: 40,
  weight: 1,
  mirrors: [],
  refusedCatalogs: [],
}

const AUDITS = {
  logId: 'log',
  audits: [
    {
      time: '2026-11-21T21:44:46Z',
      by: 'root',
      findings: { chain: 2 },
      records: 10,
      events: 9,
      queries: 3,
      open: 1,
      anchors: 2,
      signatures: 2,
      periods: 1,
      tables: 10,
      milliseconds: 1500,
    },
  ],
  anchors: [{ number: 2, time: '2026-11-21T21:44:46Z', heads: 4, events: 9, key: 'ab' }],
  keys: [{ key: 'ab', signedBy: 'ab' }],
} satisfies AuditInfo

const ANSWER = {
  id: 'q-record',
  columns: [
    { name: 'user', type: 'varchar' },
    { name: 'queries', type: 'bigint' },
    { name: 'cpu_seconds', type: 'double' },
    { name: 'cost', type: 'double' },
    { name: 'something', type: 'integer' },
  ],
  data: [['ana', 3, 1.5, 0.25, 7]],
  stats: answerStats('FINISHED', 10),
}
