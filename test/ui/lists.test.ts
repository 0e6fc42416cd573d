import express, { type Router } from 'express'
import { describe, expect, it, vi } from 'vitest'
import type { ActInfo } from '../../src/protocol/acts/act-schemas.ts'
import type { QueryListItem, TotalsInfo } from '../../src/protocol/info/schemas/query.ts'
import { hasChromium } from '../support/chromium.ts'
import { consoleBrowserOfTests, expectAccessible } from '../support/console-browser.ts'
import { listedQuery, queryBody } from '../support/query-bodies.ts'

describe.runIf(hasChromium('nothing looks at the lists'))('The lists of the console', { timeout: 180_000 }, () => {
  const waiting = { timeout: 60_000, interval: 50 }
  const browser = consoleBrowserOfTests()

  it('sends all filters, shows totals of the queries that match, and keeps filters under a name', async () => {
    const { api, asked } = queriesApi([listedQuery('q', { app: 'dbt', appObject: 'model.orders' })])
    await browser.withPage('/ui', api, async (page) => {
      await page.getByText('1,200 queries (1,000 FINISHED, 200 FAILED)').waitFor()
      await page.getByText('More filters').click()
      await page.getByLabel('App', { exact: true }).fill('dbt')
      await page.getByLabel('Error', { exact: true }).fill('COLUMN_NOT_FOUND')
      await page.getByLabel('Created since').fill('2026-11-21T21:44')
      await page.getByLabel('State', { exact: true }).selectOption('FAILED')
      await page.getByRole('button', { name: 'Filter', exact: true }).click()
      const filters = { state: 'FAILED', app: 'dbt', error: 'COLUMN_NOT_FOUND', since: expect.stringMatching(/Z$/) }
      await vi.waitFor(() => expect(asked()).toMatchObject(filters), waiting)
      expect(new URL(page.url()).searchParams.get('app')).toBe('dbt')
      await page.getByRole('cell', { name: 'dbt: model.orders' }).waitFor()
      await page.getByText('Saved filters').click()
      await page.getByLabel('Save these filters as').fill('broken models')
      await page.getByRole('button', { name: 'Save', exact: true }).click()
      await page.getByRole('button', { name: 'Clear' }).click()
      await vi.waitFor(() => expect(asked()).not.toHaveProperty('app'), waiting)
      await page.getByRole('button', { name: 'broken models' }).click()
      await vi.waitFor(() => expect(asked()).toMatchObject(filters), waiting)
      await expectAccessible(page)
    })
  })

  it('keeps the focus on the button that filters, and shows the filters of the address in its fields', async () => {
    const { api, asked } = queriesApi([listedQuery('q')])
    await browser.withPage('/ui', api, async (page) => {
      const user = page.getByLabel('User', { exact: true })
      await user.fill('ana')
      await page.getByRole('button', { name: 'Filter', exact: true }).focus()
      await page.keyboard.press('Enter')
      await vi.waitFor(() => expect(asked()).toMatchObject({ user: 'ana' }), waiting)
      await page.locator('button:focus', { hasText: 'Filter' }).waitFor()
      await page.goBack()
      await vi.waitFor(() => expect(asked()).not.toHaveProperty('user'), waiting)
      expect(await user.inputValue()).toBe('')
      await user.fill('not filtered yet')
      await page.getByRole('button', { name: 'Clear' }).click()
      expect(await user.inputValue()).toBe('')
    })
  })

  it('leads from a group to the groups above it', async () => {
    const { api } = queriesApi([])
    const group = {
      id: ['global', 'etl'],
      schedulingPolicy: 'FAIR',
      state: 'CAN_RUN',
      memoryUsage: '0B',
      cpuUsage: '0s',
    }
    api.get('/v1/resourceGroupState', (_request, response) => void response.json([]))
    api.get('/v1/resourceGroupState/*path', (_request, response) => void response.json(group))
    await browser.withPage('/ui/groups?group=global&group=etl', api, async (page) => {
      const head = page.getByRole('heading', { level: 1 })
      expect(await head.textContent()).toBe('Groups › global › etl')
      await head.getByRole('link', { name: 'global' }).click()
      await page.getByRole('heading', { level: 1, name: 'Groups › global', exact: true }).waitFor()
      await head.getByRole('link', { name: 'Groups' }).click()
      await page.getByRole('heading', { level: 1, name: 'Groups', exact: true }).waitFor()
      await page.getByText('No group has queries now.').waitFor()
    })
  })

  it('acts on the selected queries after a preview, and keeps the selection while data refresh', async () => {
    const hostile = '<img src=x onerror="document.title=\'pwned\'">'
    const { api } = queriesApi(['q1', 'q2', 'q3'].map((id) => listedQuery(id)))
    const { posted } = addActs(api, hostile)
    await browser.withPage('/ui', api, async (page) => {
      await page.getByRole('checkbox', { name: 'Select q1' }).check()
      await page.getByRole('checkbox', { name: 'Select q3' }).check()
      // The list is read again because the filter changes; both rows stay selected.
      await page.getByRole('columnheader', { name: 'Elapsed' }).getByRole('button').click()
      await page.getByRole('button', { name: 'Filter', exact: true }).click()
      await page.getByLabel('Act', { exact: true }).selectOption('Hold')
      await page.getByRole('button', { name: 'Hold selected (2)' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('2 queries, 2 QUEUED. 1 more is left out').waitFor()
      await dialog.getByText(hostile).waitFor()
      await expectAccessible(page)
      await dialog.getByLabel('Reason').fill('the warehouse is full')
      await dialog.getByRole('button', { name: 'Hold 2' }).click()
      await dialog.getByText('In progress: 1 of 2 queries, 1 done').waitFor()
      await dialog.getByRole('button', { name: 'Stop' }).click()
      await dialog.getByText('Done: 2 of 2 queries, 1 done, 1 failed').waitFor()
      await dialog.getByText(`q3: ${hostile}`).waitFor()
      await expectAccessible(page)
      await dialog.getByRole('button', { name: 'Close', exact: true }).click()
      await page.getByRole('button', { name: 'Hold selected (0)' }).waitFor()
      expect(posted()).toEqual([
        { act: 'hold', filter: { queries: ['q1', 'q3'] } },
        { act: 'hold', filter: { queries: ['q1', 'q3'] }, reason: 'the warehouse is full', token: 'sealed' },
        'stop',
      ])
    })
  })

  it('previews an act on all queries that the filters choose', async () => {
    const { api } = queriesApi([listedQuery('q1')])
    const { posted } = addActs(api, 'SELECT 1')
    await browser.withPage('/ui?user=ana&state=QUEUED', api, async (page) => {
      await page.getByRole('button', { name: 'Kill all that match' }).click()
      await page.getByRole('dialog').getByText('2 queries, 2 QUEUED').waitFor()
      expect(posted()).toEqual([{ act: 'kill', filter: { user: 'ana', state: 'QUEUED' } }])
    })
  })

  it('shows a statement of a megabyte, and a hostile session', async () => {
    const hostile = '<img src=x onerror="document.title=\'pwned\'">'
    const api = express.Router()
    const query = `SELECT '${'x'.repeat(1_000_000)}' -- the end`
    const session = { user: hostile, source: hostile, catalog: hostile, remoteUserAddress: hostile, startTime: 0 }
    api.get('/v1/query/q', (_request, response) => void response.json(queryBody('q', { query, session })))
    api.get('/v1/query/q/events', (_request, response) => void response.json([]))
    await browser.withPage('/ui/query/q', api, async (page) => {
      expect((await page.getByLabel('Statement').textContent())?.endsWith('-- the end')).toBe(true)
      await page.getByRole('tab', { name: 'Session' }).click()
      await page.getByText(hostile).first().waitFor()
      expect(await page.locator('img').count()).toBe(0)
    })
  })

  it('shows which queries wait, why, and behind which queries', async () => {
    const { api } = queriesApi([
      listedQuery('q-runs', { state: 'RUNNING', resourceGroupId: ['global', 'etl'] }),
      listedQuery('q-elsewhere', { state: 'RUNNING', resourceGroupId: ['global', 'bi'] }),
      listedQuery('q-waits', {
        state: 'QUEUED',
        resourceGroupId: ['global', 'etl'],
        queuedReason: 'The group global.etl runs as many queries as it may',
      }),
    ])
    api.get('/v1/resourceGroupState', (_request, response) => void response.json([]))
    await browser.withPage('/ui/groups', api, async (page) => {
      const row = page.getByRole('table', { name: 'Waiting queries' }).locator('tbody tr')
      await row.getByText('The group global.etl runs as many queries as it may').waitFor()
      expect(await row.getByRole('link').allTextContents()).toEqual(['q-waits', 'q-runs'])
      await expectAccessible(page)
    })
  })

  it('compares two runs of a fingerprint', async () => {
    const { api } = queriesApi([listedQuery('q'), listedQuery('q2')])
    const elapsed = { q: '1.00s', q2: '3.00s' }
    for (const [id, elapsedTime] of Object.entries(elapsed)) {
      const body = queryBody(id, { fingerprint: 'f1', finalQueryInfo: true })
      const shown = { ...body, queryStats: { ...body.queryStats, elapsedTime } }
      api.get(`/v1/query/${id}`, (_request, response) => void response.json(shown))
      api.get(`/v1/query/${id}/events`, (_request, response) => void response.json([]))
    }
    await browser.withPage('/ui/query/q?tab=runs', api, async (page) => {
      await page.getByRole('link', { name: 'Compare' }).click()
      await page.getByRole('row', { name: 'Elapsed 1 s 3 s × 3.00' }).waitFor()
      await expectAccessible(page)
    })
  })
})

/** `GET /v1/query` and its totals. `asked` gives the parameters of the last request for totals. */
function queriesApi(queries: readonly QueryListItem[]) {
  const api: Router = express.Router()
  let asked: unknown
  const figures = {
    queries: 1_000,
    cpuTime: '2.00s',
    elapsedTime: '9.00s',
    rawInputDataSize: '2048B',
    outputPositions: 3,
    outputDataSize: '0B',
  }
  const totals: TotalsInfo = {
    ...figures,
    queries: 1_200,
    states: { FINISHED: figures, FAILED: { ...figures, queries: 200 } },
  }
  api.get('/v1/query/totals', (request, response) => {
    asked = request.query
    response.json(totals)
  })
  api.get('/v1/query', (_request, response) => void response.json(queries))
  return { api, asked: () => asked }
}

/**
 * Adds `/v1/act` to an API: a preview of two queries, and an act that runs until it is stopped.
 * @returns `posted`: the bodies of all requests
 */
function addActs(api: Router, text: string) {
  const bodies: unknown[] = []
  const begun = {
    actId: 'a1',
    act: 'hold',
    state: 'RUNNING',
    user: 'root',
    reason: 'r',
    filter: {},
    before: '2026-11-21T00:00:00.000Z',
    matched: 2,
    done: 0,
    outcomes: {},
    problems: [],
    startTime: '2026-11-21T00:00:00.000Z',
  } satisfies ActInfo
  const looks: readonly ActInfo[] = [
    { ...begun, done: 1, outcomes: { done: 1 } },
    {
      ...begun,
      state: 'ENDED',
      done: 2,
      outcomes: { done: 1, failed: 1 },
      problems: [{ queryId: 'q3', outcome: 'failed', why: text }],
    },
  ]
  let look = 0
  api.use(express.json())
  api.post('/v1/act/preview', (request, response) => {
    bodies.push(request.body)
    const queries = ['q1', 'q3'].map((queryId) => ({
      queryId,
      state: 'QUEUED',
      user: 'ana',
      resourceGroupId: ['global'],
      createTime: begun.before,
      query: queryId === 'q1' ? text : 'SELECT 1',
    }))
    const counts = { matched: 2, denied: 1, states: { QUEUED: 2 }, users: [{ user: 'ana', queries: 2 }] }
    response.json({ act: 'hold', ...counts, queries, token: 'sealed', expires: begun.before })
  })
  api.post('/v1/act', (request, response) => {
    bodies.push(request.body)
    response.json(begun)
  })
  api.get('/v1/act/a1', (_request, response) => void response.json(looks[look]))
  api.delete('/v1/act/a1', (_request, response) => {
    bodies.push('stop')
    look = 1
    response.json(looks[look])
  })
  return { posted: () => bodies }
}
