import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dashboards } from '../../dashboards/files.ts'
import type { MetricPanel, PanelSpec, TablePanel } from '../../dashboards/panel.ts'
import { recordingRules } from '../../dashboards/recording-rules.ts'
import { internalBearer } from '../../src/security/cluster-secret.ts'
import { embeddedConnection } from '../support/embedded-connection.ts'
import { startFakeTrino, type FakeTrino } from '../support/fake-trino.ts'
import { parseOpenMetrics, type Sample } from '../support/openmetrics.ts'
import { startOtlpReceiver, type OtlpReceiver } from '../support/otlp-receiver.ts'
import { panelCounts, panelSql, panelValues } from '../support/panels.ts'
import { findPrometheus, startPrometheus, type RunningPrometheus } from '../support/prometheus.ts'
import { processesOf, spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import {
  follow,
  post,
  raw,
  run,
  trinoHeaders,
  type RawAnswer,
  type StatementJson,
} from '../support/statement-client.ts'

const folder = temporaryFolder()
const data = `${folder.path}/data`
const prices = `${folder.path}/prices.json`
const SECRET = 'a secret for the tests of dashboards'
let collector: OtlpReceiver
let cluster: FakeTrino
let server: QuipuProcess
let base: string
let worker: string
let prometheus: RunningPrometheus | undefined
/** The load: query ids, and every result key (mac) that clients got. */
const ids: string[] = []
const macs: string[] = []

const JOIN = `SELECT n.name, count(*) FROM customer c JOIN nation n ON c.nationkey = n.nationkey GROUP BY n.name`
const ENDLESS = `SELECT count(*) FROM lineitem a CROSS JOIN lineitem b CROSS JOIN lineitem c`

beforeAll(async () => {
  collector = await startOtlpReceiver()
  const programs = await findPrometheus()
  writePrices(0)
  cluster = await startFakeTrino()
  // So many pages that a statement stays open until its client asks for them.
  cluster.resultOf = () => ({ pages: 5 })
  const files = ['--prices-file', prices, '--open-lineage-file', `${data}/lineage.jsonl`, ...writeFiles()]
  const archive = ['--archive-after-ms', '10s', '--anchor-ms', '500ms']
  const options = ['--data-dir', data, '--port', '0', '--log-level', 'info', '--slow-query-ms', '1ms']
  server = spawnQuipu(['start', ...options, ...files, ...archive], {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      QUIPU_TRACES_PER_SECOND: '1000',
      QUIPU_SHARED_SECRET: SECRET,
    },
  })
  base = await server.url
  await waitUntil('a worker serves', async () => (await workerAddress()) !== undefined)
  worker = (await workerAddress())!
  if (programs) {
    const rules = `${folder.path}/rules.yaml`
    writeFileSync(rules, hurried(readFileSync(new URL('../../dashboards/rules/quipu.yaml', import.meta.url), 'utf8')))
    prometheus = await startPrometheus(
      programs,
      [
        { job: 'quipu-coordinator', address: new URL(base).host },
        { job: 'quipu-worker', address: worker },
      ],
      rules,
    )
  }
  await load()
}, 240_000)

afterAll(async () => {
  await prometheus?.stop()
  server.signal('SIGTERM')
  await server.exit
  await cluster.close()
  await collector.close()
  await folder.remove()
}, 240_000)

describe('The metrics pages', () => {
  it('satisfy a strict parser and stay within their budget of samples', async () => {
    for (const [address, budget] of [
      [base, 4000],
      [`http://${worker}`, 1000],
    ] as const) {
      const { status, headers, text } = await raw(`${address}/metrics`)
      expect(status).toBe(200)
      expect(headers['content-type']).toContain('application/openmetrics-text')
      const samples = parseOpenMetrics(text)
      expect(samples.length).toBeGreaterThan(200)
      expect(samples.length).toBeLessThan(budget)
    }
  })

  it('contain no id, statement or result key in a label', async () => {
    for (const address of [base, `http://${worker}`]) {
      const values = parseOpenMetrics((await raw(`${address}/metrics`)).text).flatMap(({ labels }) =>
        Object.values(labels),
      )
      expect(values.filter((value) => /\d{8}_\d{6}_\d{5}_/.test(value))).toEqual([])
      expect(values.filter((value) => /select\s/i.test(value))).toEqual([])
      expect(values.filter((value) => macs.some((mac) => value.includes(mac)))).toEqual([])
    }
  })

  it('count the same queries as the read models', async () => {
    await waitForRows(
      async () => (await rows(`select query_id from m.queries where ended_at is not null`)).length,
      ids.length,
    )
    const samples = await samplesOf(base)
    expect(total(samples, 'quipu_queries_total')).toBe(ids.length)
    const failed = await rows(`select query_id from m.queries where state = 'FAILED'`)
    expect(total(samples, 'quipu_queries_total', { state: 'FAILED' })).toBe(failed.length)
    expect(total(samples, 'quipu_query_errors_total', { error_name: 'USER_CANCELED' })).toBe(1)
    const events = await rows(`select event from m.query_events`).catch(() => undefined)
    if (events) expect(total(samples, 'quipu_events_appended_total')).toBeGreaterThanOrEqual(events.length)
  })

  it('count tasks, pages and operators at the worker', async () => {
    const samples = await samplesOf(`http://${worker}`)
    expect(total(samples, 'quipu_task_duration_seconds_count', { state: 'FINISHED' })).toBeGreaterThan(0)
    expect(total(samples, 'quipu_pages_spooled_total', { kind: 'result' })).toBeGreaterThan(0)
    expect(total(samples, 'quipu_operator_time_seconds_total')).toBeGreaterThan(0)
    expect(total(samples, 'quipu_engine_statement_duration_seconds_count')).toBeGreaterThan(0)
  })
})

describe('The log lines', () => {
  it('contain one line for the end of each query, with the id of its trace', async () => {
    const endLines = (): Line[] => lines().filter((line) => line.event === 'query.completed')
    await waitUntil('all ends are logged', () => endLines().length >= ids.length)
    expect(
      endLines()
        .map((line) => line.queryId)
        .toSorted(),
    ).toEqual(ids.toSorted())
    const traces = new Map(collector.spans.map((span) => [span.attributes['trino.query_id'], span.traceId]))
    for (const line of endLines()) {
      expect(line).toMatchObject({ user: 'tester', service: 'quipu-coordinator', epoch: 1 })
      if (traces.has(line.queryId)) expect(line.traceId).toBe(traces.get(line.queryId))
    }
  })

  it('contain a line with plan and operators for a slow query', async () => {
    const reported = (): Line | undefined =>
      lines().find((line) => line.event === 'query.slow' && JSON.stringify(line['operators']).includes('JOIN'))
    await waitUntil('it is reported', () => reported() !== undefined)
    const slow = reported()
    expect(JSON.stringify(slow?.['plan'])).toContain('Join')
    expect(slow?.['sql']).toBeUndefined()
    expect(JSON.stringify(slow?.['operators'])).toContain('JOIN')
  })

  it('contain no result key and no password', () => {
    const text = server.stdout() + server.stderr()
    expect(macs.length).toBeGreaterThan(5)
    expect(macs.filter((mac) => text.includes(mac))).toEqual([])
    expect(text.includes('hunter2')).toBe(false)
  })
})

describe('The dashboards', () => {
  const panels = dashboards.flatMap((spec) =>
    spec.panels.map((panel): [string, PanelSpec] => [`${spec.name}: ${panel.title}`, panel]),
  )

  const values = (dashboard: string, title: string) => () => panelValues(prometheus!, dashboard, title)
  const counts = (dashboard: string, title: string) => () => panelCounts(prometheus!, dashboard, title)

  it('show statements that run, wait and are refused, and an act on them', async ({ skip }) => {
    if (!prometheus) return skip()
    const running = await start('crowd')
    const atCluster = await start('tester')
    await expect.poll(values('clusters', 'Running')).toEqual({ a: 1 })
    await expect.poll(values('cost', 'Running at clusters')).toEqual({ a: 1 })
    await expect.poll(values('clusters', 'Waiting')).toEqual({ big: 1 })
    const killed = await start('crowd')
    expect((await run(base, FAR, as('crowd'))).error?.errorName).toBe('QUERY_QUEUE_FULL')
    await expect.poll(counts('queues', 'Rejected statements')).toMatchObject({ 'crowd queue_full': 1 })
    await kill({ user: 'crowd', state: 'QUEUED' })
    expect((await follow(killed)).error?.errorName).toBe('ADMINISTRATIVELY_KILLED')
    await expect
      .poll(counts('queues', 'Acts on many queries'))
      .toMatchObject({ 'kill done': 1, 'kill failed': 0, 'acts: kill': 1, 'acts: hold': 0 })
    const queued = await start('crowd')
    for (const { error } of await Promise.all([running, atCluster, queued].map((one) => follow(one))))
      expect(error).toBeUndefined()
    await expect.poll(values('queues', 'Wait, 95th percentile')).toEqual({ wait: ABOVE_0 })
    await expect.poll(values('clusters', 'Wait for a slot, 99th percentile')).toMatchObject({ slot: ABOVE_0 })
    await expect.poll(values('clusters', 'Running')).toEqual({ a: 0 })
  })

  it('show the state and the health of a cluster that fails and recovers', async ({ skip }) => {
    if (!prometheus) return skip()
    await expect.poll(values('clusters', 'States')).toEqual({ 'a ACTIVE': 1, 'a DRAINING': 0, 'a INACTIVE': 0 })
    await expect.poll(values('clusters', 'Open clusters')).toEqual({ big: 1 })
    const bad = values('clusters', 'Clusters that are not healthy')
    await expect.poll(bad).toEqual({ 'a PENDING': 0, 'a UNHEALTHY': 0 })
    await expect.poll(values('clusters', 'Check time, 99th percentile')).toEqual({ a: ABOVE_0 })
    cluster.is = 'wrong'
    await expect.poll(bad).toEqual({ 'a PENDING': 0, 'a UNHEALTHY': 1 })
    await expect.poll(values('clusters', 'Open clusters')).toEqual({ big: 0 })
    cluster.is = 'ready'
    await expect.poll(bad).toEqual({ 'a PENDING': 0, 'a UNHEALTHY': 0 })
    await expect.poll(counts('clusters', 'Health changes, 1 h')).toMatchObject({ 'a UNHEALTHY': 1, 'a PENDING': 1 })
    await expect.poll(values('clusters', 'Checks')).toMatchObject({ 'a ready': ABOVE_0, 'a failed': ABOVE_0 })
  })

  it('show an erasure, the records that move to the archive, and clients beyond the limit', async ({ skip }) => {
    if (!prometheus) return skip()
    await run(base, `SELECT 'eva.lund@example.com'`)
    await erase('eva.lund@example.com')
    await expect.poll(counts('log', 'Erasures, 1 h')).toEqual({ complete: 1, remains: 0, failed: 0 })
    await expect.poll(counts('log', 'Archived records, 1 h')).toEqual({ records: ABOVE_0 })
    await expect.poll(counts('log', 'Archiving, 1 h')).toEqual({ done: ABOVE_0, failed: 0 })
    for (let client = 0; client < 30; client++)
      await run(base, 'SELECT 1', { ...trinoHeaders, 'x-trino-source': `client ${client}` })
    await expect.poll(counts('runtime', 'Labels folded, 1 h')).toMatchObject({ source: ABOVE_0, user: 0 })
  })

  it('get data from a live Prometheus for every panel', { timeout: 240_000 }, async ({ skip }) => {
    if (!prometheus) return skip()
    const asked = panels
      .filter((entry): entry is [string, MetricPanel] => entry[1].kind !== 'table')
      .flatMap(([name, panel]) => panel.targets.map((target) => [name, inPrometheus(target.expr)] as const))
    const empty = new Map(asked.map(([name, expr]) => [expr, name]))
    const until = performance.now() + 80_000
    while (empty.size > 0 && performance.now() < until) {
      for (const expr of empty.keys())
        if ((await prometheus.query(expr)).some(({ value }) => Number.isFinite(value))) empty.delete(expr)
      if ([...empty.values()].every((name) => WITHOUT_DATA.has(name))) break
      await run(base, JOIN)
      // Larger than a result that fits into one answer.
      await run(base, 'SELECT * FROM lineitem LIMIT 5000')
      await raw(`${base}/v1/announcement`, { method: 'PUT', headers: { authorization: 'Bearer nobody' } })
      await cancelOne()
      // The file is read again after each change.
      writePrices(performance.now())
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    expect(new Set(empty.values())).toEqual(WITHOUT_DATA)
    expect(asked.length).toBeGreaterThan(70)
  })

  it('get rows of the read models for every table', async () => {
    const tables = panels.filter((entry): entry is [string, TablePanel] => entry[1].kind === 'table')
    for (const [name, { sql, units, leadsTo }] of tables) {
      const found = await rows(panelSql(sql, { user: 'tester', table: '%' }))
      if (!TABLES_OF_FAULTS.has(name)) expect(found.length, name).toBeGreaterThan(0)
      const columns = new Set(Object.keys(found[0] ?? {}))
      if (found.length === 0) continue
      for (const column of [...Object.keys(units ?? {}), ...leadsTo.map((to) => `${to}_id`)])
        expect(columns.has(column), `${name}: ${column}`).toBe(true)
    }
  })

  it('link a histogram bucket to an exported trace', async ({ skip }) => {
    if (!prometheus) return skip()
    const now = Date.now() / 1000
    const found = (await prometheus.get(
      `/api/v1/query_exemplars?query=quipu_query_duration_seconds_bucket&start=${now - 300}&end=${now}`,
    )) as readonly { exemplars: readonly { labels: { trace_id: string } }[] }[]
    const ids = found.flatMap(({ exemplars }) => exemplars.map(({ labels }) => labels.trace_id))
    expect(ids.length).toBeGreaterThan(0)
    await waitUntil('the trace is exported', () => collector.trace(ids[0]!).length > 0)
  })
})

describe('The rules', () => {
  it('record values from live data, and none has an error', async ({ skip }) => {
    if (!prometheus) return skip()
    const missing: string[] = []
    for (const { record } of recordingRules) if ((await prometheus.query(record)).length === 0) missing.push(record)
    expect(missing).toEqual([])
    const { groups } = (await prometheus.get('/api/v1/rules')) as {
      groups: readonly { rules: readonly { name: string; health: string; lastError?: string }[] }[]
    }
    const sick = groups.flatMap(({ rules }) => rules).filter((rule) => rule.health !== 'ok')
    expect(sick.map((rule) => `${rule.name}: ${rule.lastError}`)).toEqual([])
  })

  it(
    'fire for a killed worker and for a coordinator that is killed again and again',
    { timeout: 240_000 },
    async ({ skip }) => {
      const live = prometheus
      if (!live) return skip()
      const firing = async (): Promise<Set<string>> => {
        const { alerts } = (await live.get('/api/v1/alerts')) as {
          alerts: readonly { labels: { alertname: string }; state: string }[]
        }
        return new Set(alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname))
      }
      // Nothing was wrong until now, except that a pause of the machine may have disturbed a scrape.
      await waitUntil('no rule fires', async () => [...(await firing())].every((name) => EXPECTED_AT_REST.has(name)))

      process.kill(processesOf(data).children[1]!, 'SIGKILL')
      await waitUntil('QuipuWorkerDown fires', async () => (await firing()).has('QuipuWorkerDown'))
      await expect
        .poll(() => panelCounts(live, 'runtime', 'Processes started again, 1 h'))
        .toMatchObject({ 'worker exit': 1, 'worker hang': 0 })
      for (let kill = 0; kill < 4; kill++) {
        const [coordinator] = processesOf(data).children
        process.kill(coordinator!, 'SIGKILL')
        await waitUntil('another coordinator serves', async () => {
          const [next] = processesOf(data).children
          return next !== coordinator && (await raw(`${base}/metrics`).catch(() => undefined))?.status === 200
        })
        await waitUntil(
          'Prometheus has seen it',
          async () => (await live.query('max(quipu_epoch)'))[0]?.value === kill + 2,
        )
      }
      await waitUntil('QuipuRestartLoop fires', async () => (await firing()).has('QuipuRestartLoop'))
      await waitUntil('QuipuEpochFlapping fires', async () => (await firing()).has('QuipuEpochFlapping'))
      expect(await live.query('max(quipu_epoch)')).toMatchObject([{ value: 5 }])
    },
  )
})

/** Panels for which this server has no data. */
const WITHOUT_DATA = new Set([
  // The log is in Postgres. standby-kafka sees this panel with data.
  'runtime: Kafka, 99th percentile',
  // Prometheus and the clients use plain HTTP. log-in-credentials sees this panel with data.
  'runtime: Certificate, days left',
])
/** `test/dashboards/table-rows.int.test.ts` proves these. */
const TABLES_OF_FAULTS = new Set([
  'audit: Denied and refused',
  'log: Open dead letters',
  'audit: Statements of $user',
  'access: Refused accesses',
  'access: Log-ins by user and address',
  'access: Queries as another user',
  'access: Audits of the event log',
  'cost: Cost by group of the user',
  'cost: Cost by app and object',
])
/** On a test machine alerts about several processes, or about a budget over days, may fire without a fault. */
const EXPECTED_AT_REST = new Set([
  'QuipuFirstRowsBudgetBurn',
  'QuipuEventLoopBlocked',
  'QuipuAppendSlow',
  // A test above fills a queue, and the alert holds for five minutes.
  'QuipuTurningAway',
])

function writePrices(cpuSecond: number): void {
  const text = JSON.stringify({ currency: 'EUR', periods: [{ from: '2026-01-01T00:00:00Z', cpuSecond }] })
  writeFileSync(`${prices}.new`, text, { mode: 0o644 })
  renameSync(`${prices}.new`, prices)
}

const FAR = 'SELECT a FROM far.s.t'
const ABOVE_0 = expect.toSatisfy((value: unknown) => typeof value === 'number' && value > 0, 'is above 0')

/** Writes the files of a cluster and of a small resource group. @returns the flags that name them */
function writeFiles(): string[] {
  // The server runs as a user of its own, and that user must be able to list the folder.
  mkdirSync(`${folder.path}/clusters`, { mode: 0o755 })
  const about = { url: cluster.url, group: 'big', catalogs: ['far'], maxRunning: 1 }
  writeFileSync(`${folder.path}/clusters/a.json`, JSON.stringify(about), { mode: 0o644 })
  const groups = {
    rootGroups: [
      { name: 'crowd', hardConcurrencyLimit: 1, maxQueued: 1 },
      { name: 'others', hardConcurrencyLimit: 100, maxQueued: 100 },
    ],
    selectors: [{ user: 'crowd', group: 'crowd' }, { group: 'others' }],
  }
  writeFileSync(`${folder.path}/groups.json`, JSON.stringify(groups), { mode: 0o644 })
  return ['--clusters-dir', `${folder.path}/clusters`, '--resource-groups-file', `${folder.path}/groups.json`]
}

function as(user: string): Readonly<Record<string, string>> {
  return { ...trinoHeaders, 'x-trino-user': user }
}

/** Starts a statement at the cluster. It holds its slots there and here as long as its client asks for no more. */
async function start(user: string): Promise<RawAnswer> {
  return raw((await post(base, FAR, as(user))).json.nextUri!)
}

/** Kills all queries that a filter matches. */
async function kill(filter: Readonly<Record<string, string>>): Promise<void> {
  const { token } = await ask<{ token: string }>('/v1/act/preview', { act: 'kill', filter })
  await ask('/v1/act', { act: 'kill', filter, reason: 'The queue is full', token })
}

/** Erases a value, and waits for the end. */
async function erase(value: string): Promise<void> {
  const { erasureId } = await ask<{ erasureId: string }>('/v1/erasure', { value, by: 'officer' })
  await waitUntil('the erasure has ended', async () => {
    const { text } = await raw(`${base}/v1/erasure/${erasureId}`, { headers: administrator })
    return (JSON.parse(text) as { state: string }).state === 'ENDED'
  })
}

const administrator = { authorization: `Bearer ${internalBearer(SECRET)}`, 'content-type': 'application/json' }

async function ask<T>(path: string, body: unknown): Promise<T> {
  const { status, text } = await raw(base + path, {
    method: 'POST',
    headers: administrator,
    body: JSON.stringify(body),
  })
  if (status >= 300) throw new Error(`${path}: ${status} ${text}`)
  return JSON.parse(text) as T
}

/** Runs good, failing and canceled statements, with and without a worker. */
async function load(): Promise<void> {
  for (const sql of ['SELECT 1', JOIN, 'DESCRIBE nation', `SELECT * FROM nation ORDER BY name`, 'SHOW SCHEMAS'])
    for (let count = 0; count < 3; count++) note(await run(base, sql))
  note(await run(base, 'SELECT nothing FROM nation'))
  note(await run(base, 'SELEKT 1'))
  note(await run(base, `SELECT 1 FROM nation WHERE password = 'hunter2'`))
  const { id, nextUri } = await cancelOne()
  ids.push(id)
  macs.push(macOf(nextUri!))
  await raw(`${base}/v1/query`, { headers: trinoHeaders })
  await raw(`${base}/v1/query/${ids[0]}/events`, { headers: trinoHeaders })
}

async function cancelOne(): Promise<StatementJson> {
  const { json } = await post(base, ENDLESS)
  await raw(json.nextUri!)
  await raw(json.nextUri!, { method: 'DELETE' })
  return json
}

function note({ id, answers }: Awaited<ReturnType<typeof run>>): void {
  ids.push(id)
  for (const { nextUri } of answers) if (nextUri) macs.push(macOf(nextUri))
}

function macOf(uri: string): string {
  return uri.slice(uri.lastIndexOf('.') + 1)
}

async function workerAddress(): Promise<string | undefined> {
  const nodes = (await raw(`${base}/v1/node`, { headers: trinoHeaders })).json as unknown as { uri: string }[]
  const uri = nodes[0]?.uri
  return uri === undefined ? undefined : new URL(uri).host
}

/** The rules, but evaluated each second and without waiting: a test cannot run for 30 days. */
function hurried(rules: string): string {
  return rules.replaceAll(/interval: \S+/g, 'interval: 1s').replaceAll(/\bfor: \S+/g, 'for: 1s')
}

function inPrometheus(expr: string): string {
  return expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', '.*')
}

async function rows(sql: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client(embeddedConnection(data))
  await client.connect()
  try {
    return (await client.query(sql)).rows as Record<string, unknown>[]
  } finally {
    await client.end()
  }
}

async function waitForRows(count: () => Promise<number>, wanted: number): Promise<void> {
  await waitUntil(`${wanted} rows are projected`, async () => (await count()) >= wanted)
}

async function samplesOf(address: string): Promise<readonly Sample[]> {
  return parseOpenMetrics((await raw(`${address}/metrics`)).text)
}

function total(samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  return samples
    .filter((sample) => sample.name === name && Object.entries(labels).every(([key, of]) => sample.labels[key] === of))
    .reduce((sum, sample) => sum + sample.value, 0)
}

interface Line {
  readonly event: string
  readonly queryId: string
  readonly traceId: string
  readonly [key: string]: unknown
}

function lines(): Line[] {
  // The text after the last newline is not yet a whole line.
  return server
    .stdout()
    .split('\n')
    .slice(0, -1)
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line)
}
