import { readFileSync } from 'node:fs'
import express, { type Router } from 'express'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { ActPreview } from '../../src/protocol/acts/act-schemas.ts'
import { hasChromium } from '../support/chromium.ts'
import { consoleBrowserOfTests, expectAccessible } from '../support/console-browser.ts'
import { answerStats, listedQuery, queryBody } from '../support/query-bodies.ts'

const MARKUP = `</pre></textarea><img src=x onerror="document.title='pwned'"><script>document.title='pwned'</script>`
const LONG = `long ${'x'.repeat(100_000)} end`
/** Texts that users can put into each field that the console shows. */
const TEXTS = [
  MARKUP,
  '\u202Egnp.exe\u202C \u2067reversed',
  'nul \0 \u0001 \u2400 \\u0000 %00',
  'مرحبا بالعالم שלום',
  '👩‍👩‍👧🏳️‍🌈',
  '__proto__',
  'constructor',
  `=cmd|'/C calc'!A0`,
  'javascript:alert(1)',
  '{{7*7}}${7*7}',
  LONG,
] as const

/** A page of the console, and the table or region that shows the texts. */
const PAGES: readonly (readonly [path: string, name: string])[] = [
  ['/ui', 'Queries'],
  ...['reads&table=a.b.c', 'cost', 'unused', 'refusals', 'log-ins', 'acts', 'erasures', 'events', 'replays'].map(
    (view) => [`/ui/record?view=${view}`, 'Rows'] as const,
  ),
  ['/ui/record?view=audits', 'Audits'],
  ['/ui/groups', 'Resource groups'],
  ['/ui/groups', 'Waiting queries'],
  ['/ui/cluster', 'Workers'],
  ['/ui/cluster', 'Clusters'],
]

/** Goes to a path as a link of the console does. */
async function go(page: Page, path: string): Promise<void> {
  await page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)})`)
}

describe.runIf(hasChromium('nothing looks at hostile texts'))('Hostile texts of users', { timeout: 300_000 }, () => {
  const browser = consoleBrowserOfTests()

  /** Requires that the page shows the texts as texts, and has no element that they describe. */
  async function expectTexts(page: Page, shown: string): Promise<void> {
    for (const text of TEXTS.slice(0, -1)) expect(shown).toContain(text)
    expect(shown).toContain(LONG.slice(0, 500))
    expect(await page.title()).toMatch(/ · Quipu$/)
    expect(await page.locator('img, script:not([src]), iframe, [href^="javascript:" i]').count()).toBe(0)
  }

  it('are shown as texts on all pages with lists, which stay usable', async () => {
    await browser.withPage('/ui', hostileApi(), async (page) => {
      for (const [path, name] of PAGES) {
        await go(page, path)
        const table = page.getByRole('table', { name, exact: true })
        await table.waitFor()
        await expectTexts(page, (await table.allTextContents()).join('\n'))
        // A long text does not push the other columns out of reach.
        expect((await table.boundingBox())!.width, `${path} ${name}`).toBeLessThan(10_000)
        if (PAGES.find(([, other]) => other === name)?.[0] === path) await expectAccessible(page)
      }
      await go(page, '/ui')
      await page.getByRole('button', { name: 'Kill all that match' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('table').waitFor()
      await expectTexts(page, (await dialog.allTextContents()).join('\n'))
      await expectAccessible(page)
    })
  })

  it('are shown as texts on the page of a query and of a group, and saved as they are', async () => {
    await browser.withPage('/ui/query/q', hostileApi(), async (page) => {
      await page.getByLabel('Statement').waitFor()
      await page.getByRole('tab', { name: 'Session' }).click()
      await page.getByText('client tags', { exact: false }).first().waitFor()
      await expectTexts(page, (await page.locator('main').allTextContents()).join('\n'))
      await expectAccessible(page)
      for (const text of TEXTS.slice(0, -1)) {
        const search = new URLSearchParams([
          ['group', 'global'],
          ['group', text],
        ])
        await go(page, `/ui/groups?${search.toString()}`)
        await page.getByRole('heading', { level: 1 }).getByText('global').waitFor()
        expect(await page.title()).toMatch(/^global › .* · Quipu$/su)
        expect(await page.locator('img').count()).toBe(0)
      }
    })
  })

  it('do not become formulas in a saved CSV, and are unchanged in JSON', async () => {
    await browser.withPage('/ui/sql', hostileApi(), async (page) => {
      const editor = page.getByRole('textbox', { name: 'SQL statement' })
      await editor.fill('SELECT 1')
      await editor.press('Control+Enter')
      await page.getByRole('table', { name: 'Rows' }).waitFor()
      const save = async (name: string): Promise<string> => {
        const saved = page.waitForEvent('download')
        await page.getByRole('button', { name }).click()
        return readFileSync(await (await saved).path(), 'utf8')
      }
      const csv = await save('CSV')
      expect(csv).toContain(`'=cmd|'/C calc'!A0`)
      expect(csv).not.toMatch(/(^|,|")[=@]/m)
      expect(csv).toContain('\r\n-1,')
      const { rows } = JSON.parse(await save('JSON')) as { readonly rows: readonly (readonly unknown[])[] }
      expect(rows.map(([, text]) => text)).toEqual(TEXTS)
    })
  })
})

/** Resources with these texts in each field that a user can choose. */
function hostileApi(): Router {
  const api = express.Router()
  const get = (path: string, answer: unknown) => api.get(path, (_request, response) => void response.json(answer))
  get('/ui/session', { user: MARKUP, mayLogOut: false })
  get('/v1/query/totals', TOTALS)
  get('/v1/query', TEXTS.map(hostileQuery))
  get('/v1/query/q', hostileQueryBody())
  get('/v1/query/q/events', [])
  get(
    '/v1/resourceGroupState',
    TEXTS.map((text) => ({ ...GROUP, id: [text], schedulingPolicy: text })),
  )
  api.get('/v1/resourceGroupState/*group', (_request, response) => void response.json({ ...GROUP, subGroups: [] }))
  get('/v1/status', STATUS)
  get('/v1/node', TEXTS.map(hostileNode))
  get('/v1/cluster', TEXTS.map(hostileCluster))
  get('/v1/audit', AUDITS)
  api.post('/v1/act/preview', (_request, response) => void response.json(PREVIEW))
  api.post('/v1/statement', (_request, response) => {
    response.json({ id: 'q', stats: ANSWER.stats, nextUri: 'http://localhost/v1/statement/q/1' })
  })
  get('/v1/statement/q/1', ANSWER)
  return api
}

const TIME = '2026-11-21T21:44:46.000Z'

function hostileQuery(text: string, at: number) {
  return listedQuery(`2026_${at}`, {
    state: 'QUEUED',
    session: { user: text, source: text, startTime: 0 },
    query: text,
    app: text,
    appObject: text,
    resourceGroupId: ['global', text],
    queuedReason: text,
    errorCode: { code: 1, name: text, type: text },
  })
}

function hostileQueryBody() {
  const properties = Object.fromEntries(TEXTS.map((text) => [text, text]))
  return queryBody('q', {
    state: 'FAILED',
    finalQueryInfo: true,
    query: TEXTS.join('\n'),
    session: {
      user: MARKUP,
      source: MARKUP,
      catalog: MARKUP,
      clientTags: TEXTS,
      clientInfo: MARKUP,
      remoteUserAddress: MARKUP,
      userAgent: MARKUP,
      startTime: 0,
      systemProperties: { ...properties },
    } as never,
    errorCode: { code: 1, name: MARKUP, type: MARKUP },
    failureInfo: { type: MARKUP, message: TEXTS.join('\n') } as never,
  })
}

function hostileNode(text: string) {
  return {
    uri: text,
    nodeId: text.slice(0, 64),
    age: '5.00m',
    recentRequests: 1,
    recentFailures: 0,
    recentSuccesses: 1,
    recentFailureRatio: 0,
    recentFailuresByType: {},
    nodeVersion: { version: text },
    state: 'active',
    lastFailureInfo: { type: text, message: text },
  }
}

function hostileCluster(text: string) {
  const figures = { running: 2, waiting: 1, maxRunning: 40, weight: 1, mirrors: [], refusedCatalogs: [] }
  const state = { state: 'ACTIVE', health: 'HEALTHY', reason: text, by: text, since: TIME }
  return { ...figures, ...state, name: text, group: text, url: 'http://localhost:1', version: text }
}

const FIGURES = {
  queries: 3,
  cpuTime: '2.00s',
  elapsedTime: '9.00s',
  rawInputDataSize: '2048B',
  outputPositions: 3,
  outputDataSize: '10B',
}
const TOTALS = { ...FIGURES, states: {}, cost: 1, currency: MARKUP }

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
  projection: { state: 'stuck', since: TIME, reason: LONG },
  deadLetters: 1,
  restarts: 2,
  workers: { active: 1, suspect: 0, failed: 0 },
  openQueries: 2,
}

const AUDITS = {
  logId: 'log',
  audits: TEXTS.map((by) => ({
    time: TIME,
    by,
    findings: { [by]: 2 },
    records: 10,
    events: 9,
    queries: 3,
    open: 1,
    anchors: 2,
    signatures: 2,
    periods: 1,
    tables: 10,
    milliseconds: 1500,
  })),
  anchors: [],
  keys: TEXTS.map((key) => ({ key, signedBy: MARKUP })),
}

const PREVIEW: ActPreview = {
  act: 'kill',
  matched: TEXTS.length,
  denied: 0,
  states: { QUEUED: TEXTS.length },
  users: TEXTS.map((user) => ({ user, queries: 1 })),
  queries: TEXTS.map((text, at) => ({
    queryId: `2026_${at}`,
    state: 'QUEUED',
    user: text,
    resourceGroupId: ['global', text],
    createTime: TIME,
    query: text,
  })),
  token: 'sealed',
  expires: TIME,
}

/** An answer to each statement: numbers, and columns of texts of which some have hostile names. */
const COLUMNS = [
  { name: 'row_count', type: 'bigint' },
  ...['user', 'stream', 'data', 'object', '__proto__', MARKUP, '=1+1'].map((name) => ({
    name,
    type: 'varchar',
  })),
]
const ANSWER = {
  id: 'q',
  columns: COLUMNS,
  data: TEXTS.map((text) => [-1, ...COLUMNS.slice(1).map(() => text)]),
  stats: answerStats('FINISHED', 10),
}
