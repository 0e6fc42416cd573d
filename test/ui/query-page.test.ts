import { readFileSync } from 'node:fs'
import express, { type Router } from 'express'
import type { Page } from 'playwright-core'
import { describe, expect, it, vi } from 'vitest'
import type { QueryInfo, StageInfo } from '../../src/protocol/info/schemas/query.ts'
import { hasChromium } from '../support/chromium.ts'
import { consoleBrowserOfTests, expectAccessible } from '../support/console-browser.ts'
import { queryBody, stageBody, taskBody } from '../support/query-bodies.ts'

describe.runIf(hasChromium('nothing looks at the page of a query'))('The page of a query', { timeout: 180_000 }, () => {
  const waiting = { timeout: 60_000, interval: 50 }
  const browser = consoleBrowserOfTests()

  it('keeps a selection of the statement while the figures of the query change', async () => {
    const { api, requests } = runningQuery(() => 3)
    await browser.withPage('/ui/query/q', api, async (page) => {
      await page.getByLabel('Statement').selectText()
      const before = requests()
      await vi.waitFor(() => expect(requests()).toBeGreaterThan(before + 1), waiting)
      await page
        .getByText(`${before + 1} s`, { exact: true })
        .or(page.getByText(`${before + 2} s`, { exact: true }))
        .first()
        .waitFor()
      expect(await page.evaluate('String(getSelection())')).toBe('SELECT the_text')
    })
  })

  it('shows all events of a long query, and links to its JSON', async () => {
    const { api } = runningQuery(() => 1_500)
    await browser.withPage('/ui/query/q', api, async (page) => {
      await page.getByText('Now: 1,500 events').waitFor()
      expect(await page.getByRole('slider').getAttribute('aria-valuemax')).toBe('1500')
      expect(await page.getByRole('link', { name: 'JSON' }).getAttribute('href')).toBe('/v1/query/q?format=json')
    })
  })

  it('shows a query as of the event that the slider is moved to by the keyboard', async () => {
    const { api } = runningQuery(() => 3)
    const asOf: unknown[] = []
    const noticing = express.Router()
    noticing.get('/v1/query/q', (request, _response, next) => {
      asOf.push(request.query['asOf'])
      next()
    })
    noticing.use(api)
    await browser.withPage('/ui/query/q', noticing, async (page) => {
      await page.getByText('Now: 3 events').waitFor()
      await page.getByRole('slider').press('ArrowLeft')
      await page.getByText('As of event 2 of 3').waitFor()
      await vi.waitFor(() => expect(asOf).toContain('2'), waiting)
      expect(page.url()).toContain('?asOf=2')
      await page.getByRole('button', { name: 'Go to now' }).click()
      await page.getByText('Now: 3 events').waitFor()
      await expectAccessible(page)
    })
  })

  it('marks the error in the statement at its line and column', async () => {
    const failed: Partial<QueryInfo> = {
      ...JOINED,
      state: 'FAILED',
      finalQueryInfo: true,
      errorCode: { code: 47, name: 'COLUMN_NOT_FOUND', type: 'USER_ERROR' },
      failureInfo: {
        type: 'COLUMN_NOT_FOUND',
        message: "line 3:7: Column 'nmae' cannot be resolved",
        errorLocation: { lineNumber: 3, columnNumber: 7 },
      },
    }
    await browser.withPage(
      '/ui/query/q',
      apiOf(() => failed),
      async (page) => {
        expect(await page.locator('mark').textContent()).toBe('nmae')
        await page.getByText('line 3:7').waitFor()
        await expectAccessible(page)
      },
    )
  })

  it('has one heading for the phases, which explains their times', async () => {
    const queryStats = { ...queryBody('q').queryStats, elapsedTime: '5.00s', queuedTime: '2.00s' }
    await browser.withPage(
      '/ui/query/q',
      apiOf(() => ({ queryStats })),
      async (page) => {
        await page.getByRole('list', { name: 'Phases' }).waitFor()
        expect(await page.getByText('Phases', { exact: true }).count()).toBe(1)
        await page.getByRole('heading', { name: 'Phases' }).getByRole('button').focus()
        await page.getByRole('tooltip').getByText('How long each phase').waitFor()
        await expectAccessible(page)
      },
    )
  })

  it('draws stages, operators and plan as graphs with rows, time and estimates', async () => {
    await browser.withPage(
      '/ui/query/q?tab=graph',
      apiOf(() => JOINED),
      async (page) => {
        const graph = page.getByRole('region', { name: 'Graph of stages' })
        await graph.getByText('Stage 1').waitFor()
        await graph.getByText('3 rows · 120 B').waitFor()
        const box = graph.getByRole('group', { name: 'Stage 1, RUNNING' })
        expect(await box.getAttribute('aria-describedby')).toBe(null)
        await page.getByText('Operators', { exact: true }).last().click()
        const operators = page.getByRole('region', { name: 'Graph of operators' })
        await operators.getByText('estimated 7,000 rows (2,333 times too many)').waitFor()
        await operators.getByText('time 30 ms · 75 %').waitFor()
        await operators.getByText('15,000 rows', { exact: true }).first().waitFor()
        await page.getByText('Plan', { exact: true }).click()
        await page.getByRole('region', { name: 'Graph of plan' }).getByText('estimated 15,000 rows').waitFor()
        await expectAccessible(page)
      },
    )
  })

  it('shows the graph as of the event that the slider is moved to', async () => {
    const api = apiOf((asOf) => (asOf === '1' ? { ...JOINED, outputStage: undefined } : JOINED))
    await browser.withPage('/ui/query/q?tab=graph', api, async (page) => {
      await page.getByText('Stage 1', { exact: true }).waitFor()
      await page.getByRole('slider').press('Home')
      await page.getByText('No stages:').waitFor()
      await page.getByRole('slider').press('End')
      await page.getByText('Stage 1', { exact: true }).waitFor()
    })
  })

  it('lists operators by their share of the time, and tasks, tables, lineage and session', async () => {
    const session = { user: 'ana', startTime: 0, remoteUserAddress: '::1', systemProperties: { query_priority: '7' } }
    await browser.withPage(
      '/ui/query/q',
      apiOf(() => ({ ...JOINED, session })),
      async (page) => {
        await page.getByRole('tab', { name: 'Overview' }).focus()
        await page.keyboard.press('ArrowRight')
        await page.keyboard.press('ArrowRight')
        await page.getByRole('row', { name: /TableScan 1 75.0 %/ }).waitFor()
        await expectAccessible(page)
        await page.getByRole('tab', { name: 'Tasks' }).click()
        await page.getByRole('row', { name: /1.0 RUNNING worker-1:9001/ }).waitFor()
        await page.getByLabel('Task, state or node').fill('worker-2')
        await page.getByText('No task fits the text.').waitFor()
        await page.getByRole('tab', { name: 'Lineage' }).click()
        await page.getByRole('row', { name: 'orderstatus tpch.tiny.orders.orderstatus IDENTITY' }).waitFor()
        await page.getByRole('row', { name: '(whole rows) tpch.tiny.orders.orderkey JOIN' }).waitFor()
        await page.getByRole('tab', { name: 'Session' }).click()
        await page.getByRole('row', { name: 'query_priority 7' }).waitFor()
        await expectAccessible(page)
      },
    )
  })

  it('shows ten thousand events with a filter, and saves all of them', async () => {
    await browser.withPage(
      '/ui/query/q?tab=events',
      apiOf(() => JOINED, 10_000),
      async (page) => {
        await page.getByText('1 to 100 of 10,000').waitFor()
        await page.getByRole('button', { name: 'query failed 1' }).click()
        await page.getByRole('cell', { name: 'query failed' }).waitFor()
        await page.getByText('show').click()
        await page.getByText('"number": 10000').waitFor()
        await expectAccessible(page)
        const saved = page.waitForEvent('download')
        await page.getByRole('button', { name: 'Events', exact: true }).click()
        const lines = readFileSync(await (await saved).path(), 'utf8')
          .trimEnd()
          .split('\n')
        expect(lines.length).toBe(10_000)
        expect(JSON.parse(lines.at(-1)!)).toEqual(eventBody(10_000, true))
      },
    )
  })

  it('holds less than a thousand of ten thousand events, while its list scrolls to the end and back', async () => {
    const limits = new Map<string, number[]>()
    const api = express.Router()
    api.get('/v1/query/q/events', (request, _response, next) => {
      const { after, limit } = request.query
      limits.set(String(limit), [...(limits.get(String(limit)) ?? []), Number(after)])
      next()
    })
    api.use(apiOf(() => JOINED, 10_000))
    await browser.withPage('/ui/query/q?tab=events', api, async (page) => {
      await page.getByText('1 to 100 of 10,000').waitFor()
      await eventRow(page, 1).waitFor()
      expect(await heldEvents(page)).toBeLessThan(1000)
      await scrollTo(page, 9_950)
      await page.getByText('9,901 to 10,000 of 10,000').waitFor()
      await expectInList(page, 9_950)
      expect(await eventRow(page, 9_950).getByRole('cell').nth(3).textContent()).toBe('10 ms')
      expect(await heldEvents(page)).toBeLessThan(1000)
      for (const sequence of [7_000, 3_333, 333, 120]) {
        await scrollTo(page, sequence)
        await expectInList(page, sequence)
      }
      await page.getByRole('group', { name: 'Events: table' }).press('Home')
      await page.getByText('1 to 100 of 10,000').waitFor()
      await expectInList(page, 1)
      expect(await page.getByRole('row').count()).toBe(101)
      expect(await heldEvents(page)).toBeLessThan(1000)
      // The page reads the stream once; a look for new events begins behind the last.
      expect([...new Set(limits.get('1000'))]).toEqual(Array.from({ length: 11 }, (_, at) => 1000 * at))
      limits.delete('1000')
      expect([...limits.keys()].toSorted()).toEqual(['100', '101'])
      await expectAccessible(page)
    })
  })

  it('scrolls through the events of one kind', async () => {
    const api = apiOf(
      () => JOINED,
      10_000,
      (sequence) => (sequence % 3 === 0 ? 'quipu.task.created.v1' : undefined),
    )
    await browser.withPage('/ui/query/q?tab=events', api, async (page) => {
      await page.getByRole('button', { name: 'task created 3333' }).click()
      await page.getByText('1 to 100 of 3,333').waitFor()
      await expectInList(page, 3)
      await scrollTo(page, 3_333)
      await expectInList(page, 9_999)
      await scrollTo(page, 2_000)
      await expectInList(page, 6_000)
      expect(await eventRow(page, 6_000).getByRole('cell').nth(3).textContent()).toBe('30 ms')
      expect(await eventRow(page, 6_001).count()).toBe(0)
      await page.getByLabel('Kind of event').fill('nothing like it')
      await page.getByRole('img', { name: /events over time/ }).waitFor({ state: 'detached' })
      expect(await page.getByRole('row').count()).toBe(1)
    })
  })

  it('adds the events of a running query to its list, its counts and its slider', async () => {
    let count = 150
    let report: () => void = () => undefined
    const api = express.Router()
    api.get('/v1/events', (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.flushHeaders()
      report = () => response.write('data: {}\n\n')
    })
    api.use(
      runningQuery(
        () => count,
        () => ({}),
        () => 'quipu.query.progressed.v1',
      ).api,
    )
    await browser.withPage('/ui/query/q?tab=events', api, async (page) => {
      await page.getByText('Now: 150 events').waitFor()
      await page.getByText('● live').waitFor()
      await scrollTo(page, 150)
      await expectInList(page, 150)
      count = 260
      report()
      await page.getByText('Now: 260 events').waitFor()
      await page.getByRole('button', { name: 'query progressed 260' }).waitFor()
      await eventRow(page, 200).waitFor()
      await scrollTo(page, 260)
      await expectInList(page, 260)
    })
  })

  it('names the event of the past that the slider shows', async () => {
    const api = apiOf(
      () => JOINED,
      5_000,
      (sequence) => (sequence === 4_999 ? 'quipu.task.created.v1' : undefined),
    )
    await browser.withPage('/ui/query/q', api, async (page) => {
      await page.getByText('Now: 5,000 events').waitFor()
      await page.getByText('· query failed ·').waitFor()
      await page.getByRole('slider').press('ArrowLeft')
      await page.getByText('As of event 4999 of 5000').waitFor()
      await page.getByText('· task created ·').waitFor()
      expect(await page.getByRole('slider').getAttribute('aria-valuetext')).toBe('event 4999 of 5000, task created')
    })
  })

  it('draws a thousand stages, and lists their operators in pages', async () => {
    const stages = thousandStages()
    await browser.withPage(
      '/ui/query/q?tab=graph',
      apiOf(() => ({ outputStage: stages })),
      async (page) => {
        await page.getByText('Stage 0', { exact: true }).waitFor()
        await page.getByRole('tab', { name: 'Operators' }).click()
        await page.getByText('1 to 200 of 900').waitFor()
        expect(await page.locator('tbody tr').count()).toBe(200)
      },
    )
  })
})

const SQL = 'SELECT orderstatus, count(*)\nFROM orders\nWHERE nmae = 1'

/** A query that scans, joins and counts in stage 1; stage 0 gives its rows to the client. */
const JOINED: Partial<QueryInfo> = {
  query: SQL,
  inputs: [{ catalogName: 'tpch', schema: 'tiny', table: 'orders', columns: [{ name: 'orderstatus' }] }],
  lineage: {
    columns: [
      { name: 'orderstatus', sources: [{ source: 'tpch.tiny.orders.orderstatus', direct: 'IDENTITY', indirect: [] }] },
    ],
    rows: [{ source: 'tpch.tiny.orders.orderkey', indirect: ['JOIN'] }],
  },
  plan: {
    name: 'Output',
    details: {},
    layout: ['orderstatus:varchar(1)'],
    estimate: {},
    children: [
      {
        name: 'TableScan',
        details: { table: 'tpch:tiny:orders' },
        layout: [],
        estimate: { rows: 15_000 },
        children: [],
      },
    ],
  },
  outputStage: stageBody('q.0', [
    stageBody(
      'q.1',
      [],
      [
        taskBody('q.1.0', [
          { getOutputWall: '30.00ms', outputPositions: 15_000, inputPositions: 15_000, estimatedPositions: 15_000 },
          {
            operatorType: 'HashAggregationOperator',
            engineOperator: 'HASH_GROUP_BY',
            getOutputWall: '10.00ms',
            inputPositions: 15_000,
            outputPositions: 3,
            estimatedPositions: 7_000,
          },
          {
            operatorType: 'TaskOutputOperator',
            engineOperator: 'RESULT_COLLECTOR',
            inputPositions: 3,
            outputPositions: 3,
          },
        ]),
      ],
      { totalTasks: 1, totalSplits: 1, totalCpuTime: '40.00ms', outputPositions: 3, outputDataSize: '120B' },
    ),
  ]),
}

function apiOf(
  body: (asOf: string | undefined) => Partial<QueryInfo>,
  events = 3,
  typeOf?: (sequence: number) => string | undefined,
): Router {
  return runningQuery(() => events, body, typeOf).api
}

function eventRow(page: Page, sequence: number) {
  return page.getByRole('row').filter({ has: page.getByRole('button', { name: String(sequence), exact: true }) })
}

/** Scrolls the list of events, so that a row is the first one below its head. @param row from 1 */
async function scrollTo(page: Page, row: number): Promise<void> {
  await page.locator('.tall tbody:not([aria-hidden]) tr').first().waitFor()
  await page.evaluate(`{
    const list = document.querySelector('.tall')
    list.scrollTop = ${row - 1} * list.querySelector('tbody:not([aria-hidden]) tr').getBoundingClientRect().height
  }`)
}

async function expectInList(page: Page, sequence: number): Promise<void> {
  await eventRow(page, sequence).waitFor()
  const list = (await page.locator('.tall').boundingBox())!
  const row = (await eventRow(page, sequence).boundingBox())!
  expect(row.y, `event ${sequence}`).toBeGreaterThanOrEqual(list.y)
  // The rows that are read may be a little higher than those that were estimated, so the last one may be cut off.
  expect(row.y, `event ${sequence}`).toBeLessThan(list.y + list.height)
}

/** The number of events in the memory of the page, after a collection of garbage. */
async function heldEvents(page: Page): Promise<number> {
  const cdp = await page.context().newCDPSession(page)
  try {
    const all = await cdp.send('Runtime.evaluate', { expression: 'Object.prototype' })
    const { objects } = await cdp.send('Runtime.queryObjects', { prototypeObjectId: all.result.objectId! })
    const { result } = await cdp.send('Runtime.callFunctionOn', {
      objectId: objects.objectId!,
      functionDeclaration: `function () {
        return this.filter((one) => ['type', 'time', 'sequence'].every((name) => Object.hasOwn(one, name))).length
      }`,
      returnByValue: true,
    })
    return Number(result.value)
  } finally {
    await cdp.detach()
  }
}

/** A plan of a thousand stages: each tenth stage reads the ten before it. */
function thousandStages(): StageInfo {
  const tens = Array.from({ length: 100 }, (_, ten) =>
    stageBody(
      `q.${ten + 1}`,
      Array.from({ length: 9 }, (_, one) => {
        const id = 101 + ten * 9 + one
        return stageBody(`q.${id}`, [], [taskBody(`q.${id}.0`, [{ outputPositions: id }])], { outputPositions: id })
      }),
    ),
  )
  return stageBody('q.0', tens)
}

/**
 * A running query whose elapsed time grows with each request.
 * @param events the number of its events
 * @param body of the query, by the parameter asOf
 * @param typeOf the type of an event; undefined: a progress, or a failure at the end
 */
function runningQuery(
  events: () => number,
  body: (asOf: string | undefined) => Partial<QueryInfo> = () => ({ query: 'SELECT the_text' }),
  typeOf: (sequence: number) => string | undefined = () => undefined,
): { readonly api: Router; readonly requests: () => number } {
  const api = express.Router()
  let requests = 0
  api.get('/v1/query/q', (request, response) => {
    requests++
    const { asOf } = request.query
    const shown = queryBody('q', body(typeof asOf === 'string' ? asOf : undefined))
    response.json({ ...shown, queryStats: { ...shown.queryStats, elapsedTime: `${requests}.00s` } })
  })
  api.get('/v1/query/q/events', (request, response) => {
    const { after, limit } = request.query
    const from = Number(after ?? 0)
    const length = Math.max(0, Math.min(Number(limit), events() - from))
    response.json(
      Array.from({ length }, (_, index) => {
        const sequence = from + index + 1
        const type = typeOf(sequence)
        return { ...eventBody(sequence, sequence === events()), ...(type !== undefined && { type }) }
      }),
    )
  })
  return { api, requests: () => requests }
}

function eventBody(sequence: number, isLast: boolean) {
  return {
    sequence,
    type: isLast ? 'quipu.query.failed.v4' : 'quipu.query.progressed.v1',
    time: new Date(Date.UTC(2026, 10, 21, 21, 44, 46) + sequence * 10).toISOString(),
    data: { number: sequence },
  }
}
