import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { panelShows } from '../support/panels.ts'
import { findPrometheus, startPrometheus, type RunningPrometheus } from '../support/prometheus.ts'
import {
  postgresOf,
  processesOf,
  spawnQuipu,
  temporaryFolder,
  waitUntil,
  type QuipuProcess,
} from '../support/quipu-process.ts'
import { freezeFamily } from '../support/process-children.ts'
import { post, raw, run, trinoHeaders } from '../support/statement-client.ts'

const ENDLESS = 'SELECT count(*) FROM lineitem a CROSS JOIN lineitem b CROSS JOIN lineitem c'

const programs = await findPrometheus()

describe.runIf(programs)('Alerts and panels of the operator', () => {
  const folder = temporaryFolder()
  const data = `${folder.path}/data`
  let server: QuipuProcess
  let base: string
  let prometheus: RunningPrometheus

  beforeAll(async () => {
    const settings = ['--running-queries', '1', '--queued-queries', '1', '--log-level', 'silent']
    server = spawnQuipu(['start', '--data-dir', data, '--port', '0', ...settings], { productWaits: true })
    base = await server.url
    const rules = `${folder.path}/rules.yaml`
    writeFileSync(rules, hurried(readFileSync(new URL('../../dashboards/rules/quipu.yaml', import.meta.url), 'utf8')))
    prometheus = await startPrometheus(programs!, [{ job: 'quipu-coordinator', address: new URL(base).host }], rules)
  }, 240_000)

  afterAll(async () => {
    await prometheus.stop()
    server.signal('SIGTERM')
    await server.exit
    await folder.remove()
  }, 240_000)

  const firing = async (): Promise<readonly string[]> => {
    const { alerts } = (await prometheus.get('/api/v1/alerts')) as {
      alerts: readonly { labels: { alertname: string }; state: string }[]
    }
    return alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname)
  }
  const fires = (name: string, wanted = true): Promise<void> =>
    waitUntil(
      `${name} ${wanted ? 'fires' : 'is silent'}`,
      async () => (await firing()).includes(name) === wanted,
      60_000,
    )
  const shows = (dashboard: string, title: string, meanwhile?: () => Promise<unknown>): Promise<void> =>
    panelShows(prometheus, dashboard, title, meanwhile)

  it('a full queue fires its alerts, and the panels show refusals and the wait', { timeout: 180_000 }, async () => {
    const running = await post(base, ENDLESS)
    await raw(running.json.nextUri!)
    const waiting = await post(base, 'SELECT count(*) FROM nation')
    await raw(waiting.json.nextUri!)
    const refused = async () => (await run(base, 'SELECT count(*) FROM nation')).error?.errorName
    expect(await refused()).toBe('QUERY_QUEUE_FULL')
    await fires('QuipuQueueFilling')
    await waitUntil(
      'QuipuTurningAway fires',
      async () => {
        expect(await refused()).toBe('QUERY_QUEUE_FULL')
        return (await firing()).includes('QuipuTurningAway')
      },
      120_000,
    )
    await shows('queues', 'Rejected statements')
    expect((await raw(running.json.nextUri!, { method: 'DELETE' })).status).toBe(204)
    let answer = await raw(waiting.json.nextUri!)
    const rows = [...(answer.json.data ?? [])]
    while (answer.json.nextUri) {
      answer = await raw(answer.json.nextUri)
      rows.push(...(answer.json.data ?? []))
    }
    expect(rows).toEqual([[25]])
    await shows('queues', 'Wait, 95th percentile')
    await fires('QuipuQueueFilling', false)
  })

  it('the panels show a stopped worker, and folded labels of many clients', { timeout: 180_000 }, async () => {
    const worker = processesOf(data).children[1]!
    process.kill(worker, 'SIGSTOP')
    let client = 0
    try {
      // Each run has another source: labels beyond the most frequent sources are folded.
      await shows('runtime', 'Labels folded, 1 h', () =>
        run(base, 'SELECT 1', { ...trinoHeaders, 'X-Trino-Source': `client ${++client}` }),
      )
      await shows('workers', 'Workers lost, 1 h')
    } finally {
      process.kill(worker, 'SIGCONT')
    }
    expect(client).toBeGreaterThan(12)
    await waitUntil('the worker is back', async () => {
      const { workers } = (await raw(`${base}/v1/status`)).json as unknown as { workers: { active: number } }
      return workers.active === 1
    })
    expect((await run(base, 'SELECT count(*) FROM nation')).rows).toEqual([[25]])
  })

  it(
    'a stopped database fires QuipuEventLogDown, and the alert ends when the database runs again',
    { timeout: 180_000 },
    async () => {
      const goOn = await freezeFamily(postgresOf(data)!)
      try {
        const refused = await post(base, 'SELECT 1')
        expect(refused.status).toBe(503)
        expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
        await fires('QuipuEventLogDown')
      } finally {
        goOn()
      }
      await waitUntil('statements are taken again', async () => (await post(base, 'SELECT 1')).status === 200, 60_000)
      await fires('QuipuEventLogDown', false)
      // The statements above have ended: one query may run and one may wait.
      await waitUntil('statements run', async () => (await run(base, 'SELECT 1')).error === undefined)
      expect((await run(base, 'SELECT count(*) FROM nation')).rows).toEqual([[25]])
    },
  )
})

/** The rules, but evaluated each second and without waiting. */
function hurried(rules: string): string {
  return rules.replaceAll(/interval: \S+/g, 'interval: 1s').replaceAll(/\bfor: \S+/g, 'for: 1s')
}
