import { mkdirSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { metricNames } from '../../src/telemetry/metric-names.ts'
import type { MetricDefinition } from '../../src/telemetry/metrics/metric-definition.ts'
import { parseOpenMetrics, type Sample } from '../support/openmetrics.ts'
import { processesOf, waitUntil } from '../support/quipu-process.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { startStandInCluster, type StandInCluster } from '../support/stand-in-cluster.ts'
import { post, raw, run, trinoHeaders } from '../support/statement-client.ts'

let cluster: StandInCluster
// Hooks run in reverse order: the server ends before it.
afterAll(() => cluster.close())
const server = serverOfFile('warn', async ({ folder }) => {
  // Programs run as a user of their own, and that user must be able to list the folder.
  mkdirSync(`${folder}/clusters`, { mode: 0o755 })
  cluster = await startStandInCluster()
  writeFileSync(`${folder}/clusters/a.json`, JSON.stringify({ url: cluster.url, group: 'big', catalogs: ['far'] }))
  return {
    // No collector listens there: spans are dropped, and the drops are counted.
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    QUIPU_TRACES_PER_SECOND: '1000',
    QUIPU_CLUSTERS_DIR: `${folder}/clusters`,
    QUIPU_OPEN_LINEAGE_FILE: `${folder}/lineage.jsonl`,
  }
})
let base: string

const JOIN = `SELECT n.name, count(*) FROM customer c JOIN nation n ON c.nationkey = n.nationkey GROUP BY n.name`
/** Larger than what is kept beside the log, so its pages are fetched from the worker. */
const LARGE = 'SELECT * FROM orders'
const ENDLESS = `SELECT count(*) FROM lineitem a CROSS JOIN lineitem b CROSS JOIN lineitem c`

beforeAll(async () => {
  base = server.url
  await waitUntil('a worker serves', async () => (await workerAddress()) !== undefined)
  for (const sql of ['SELECT 1', JOIN, LARGE, 'DESCRIBE nation', 'SELECT nothing FROM nation', 'SELEKT 1'])
    await run(base, sql)
  expect((await run(base, 'SELECT a FROM far.s.t')).rows).toEqual([[1]])
  await run(base, 'SELECT 2', { ...trinoHeaders, traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-00` })
  const { json } = await post(base, ENDLESS)
  const worker = `http://${(await workerAddress())!}`
  // If it were canceled before an engine works on it, there would be nothing to time.
  await waitUntil('an engine works on it', async () => {
    await raw(json.nextUri!)
    return (await samplesOf(worker)).some(
      ({ name, labels, value }) => name === 'quipu_engine_children' && labels['state'] === 'busy' && value > 0,
    )
  })
  await raw(json.nextUri!, { method: 'DELETE' })
  await waitUntil('all ends are counted', async () => total(await samplesOf(base), 'quipu_queries_total') === 9)
}, 240_000)

describe('The metrics after a load', () => {
  it('contain a value for every metric, except those that only faults feed', { timeout: 240_000 }, async () => {
    const worker = `http://${(await workerAddress())!}`
    const silent = async (): Promise<string[]> => {
      const pages = { coordinator: await samplesOf(base), worker: await samplesOf(worker) }
      return Object.values<MetricDefinition>(metricNames)
        .filter(({ on, text, kind }) => {
          const name = kind === 'histogram' ? `${text}_count` : text
          const from = on === 'both' ? [...pages.coordinator, ...pages.worker] : pages[on]
          const found = from.filter((sample) => sample.name === name)
          // A gauge may be 0; its presence shows that it was measured.
          return kind === 'gauge' ? found.length === 0 : !found.some(({ value }) => value > 0)
        })
        .map(({ text }) => text)
    }
    // If the wait fails, the assertion below names what is missing.
    await waitUntil('late metrics have values', async () => {
      // A read that waits until the read models have its own writes.
      await run(base, 'SELECT count(*) FROM system.runtime.queries')
      return (await silent()).every((name) => OF_FAULTS.has(name))
    }).catch(() => {})
    expect((await silent()).filter((name) => !OF_FAULTS.has(name))).toEqual([])
  })

  it('contain a time for every phase of a statement that this load runs', async () => {
    const samples = await samplesOf(base)
    const timed = samples
      .filter(({ name, value }) => name === 'quipu_query_phase_duration_seconds_count' && value > 0)
      .map(({ labels }) => labels['phase'])
    expect(timed).toEqual(
      expect.arrayContaining([
        'append',
        'parse',
        'analyze',
        'render',
        'plan',
        'start',
        'execute',
        'publish',
        'deliver',
      ]),
    )
  })
})

describe('A coordinator that is killed', () => {
  it('leaves its counts to the next coordinator', { timeout: 240_000 }, async () => {
    const before = await samplesOf(base)
    const [coordinator] = processesOf(server.data).children
    process.kill(coordinator!, 'SIGKILL')
    let after: readonly Sample[] = []
    await waitUntil(
      'the next one counts',
      async () => {
        after = await samplesOf(base).catch(() => [])
        return total(after, 'quipu_epoch') === 2
      },
      120_000,
    )
    for (const name of RESTORED) {
      const seriesOf = (samples: readonly Sample[]): Record<string, number> =>
        Object.fromEntries(
          samples
            .filter((sample) => sample.name === name && sample.value > 0)
            .map(({ labels, value }) => [JSON.stringify(Object.entries(labels).toSorted()), value]),
        )
      const were = seriesOf(before)
      const are = seriesOf(after)
      expect(Object.keys(were).length, name).toBeGreaterThan(0)
      for (const [series, value] of Object.entries(were)) {
        // A counter that fell, even a little, would be taken for a restart.
        expect(are[series], `${name} ${series}`).toBeGreaterThanOrEqual(value)
        if (!GROWS.has(name)) expect(are[series]).toBeCloseTo(value, 3)
      }
      if (!GROWS.has(name)) expect(Object.keys(are).toSorted()).toEqual(Object.keys(were).toSorted())
    }
    const queries = total(after, 'quipu_queries_total')
    await run(base, 'SELECT 3')
    await waitUntil('it goes on', async () => total(await samplesOf(base), 'quipu_queries_total') === queries + 1)
  })
})

/** Counters that continue over a crash. */
const RESTORED = [
  'quipu_queries_total',
  'quipu_query_errors_total',
  'quipu_query_cpu_seconds_total',
  'quipu_query_rows_total',
  'quipu_query_bytes_total',
  'quipu_plans_total',
  'quipu_tasks_total',
  'quipu_query_duration_seconds_bucket',
  'quipu_query_duration_seconds_count',
  'quipu_query_duration_seconds_sum',
  'quipu_user_queries_total',
  'quipu_source_queries_total',
  'quipu_splits_total',
  'quipu_events_appended_total',
  'quipu_event_bytes_total',
]
/** Counters that grow by the events of the next coordinator itself. */
const GROWS = new Set(['quipu_events_appended_total', 'quipu_event_bytes_total'])

/** Metrics that only a fault, a rule or another kind of log feeds; the tests of their alerts cause the faults. */
const OF_FAULTS = new Set([
  'quipu_group_rejections_total',
  'quipu_task_retries_total',
  'quipu_worker_failures_total',
  'quipu_pages_lost_total',
  'quipu_event_append_failures_total',
  'quipu_events_ignored_total',
  'quipu_archive_records_total',
  'quipu_archive_rounds_total',
  'quipu_erasures_total',
  'quipu_acts_total',
  'quipu_act_queries_total',
  'quipu_audit_findings_total',
  'quipu_audit_verified_timestamp_seconds',
  'quipu_postgres_errors_total',
  'quipu_kafka_request_duration_seconds',
  'quipu_kafka_errors_total',
  'quipu_engine_restarts_total',
  'quipu_spilled_bytes_total',
  'quipu_http_refusals_total',
  'quipu_tls_certificate_expiry_timestamp_seconds',
  'quipu_tls_certificate_loads_total',
  // Metrics of authentication and of the files that configure it.
  'quipu_log_ins_total',
  'quipu_files_broken',
  'quipu_access_denied_total',
  'quipu_writes_total',
  'quipu_recovered_queries_total',
  'quipu_process_restarts_total',
  'quipu_label_overflow_total',
  'quipu_exchange_blocked_seconds_total',
])

async function workerAddress(): Promise<string | undefined> {
  const nodes = (await raw(`${base}/v1/node`, { headers: trinoHeaders })).json as unknown as { uri: string }[]
  const uri = nodes[0]?.uri
  return uri === undefined ? undefined : new URL(uri).host
}

async function samplesOf(address: string): Promise<readonly Sample[]> {
  const { text } = await raw(`${address}/metrics`)
  // A process that has just started has no figures yet.
  return text === '' ? [] : parseOpenMetrics(text)
}

function total(samples: readonly Sample[], name: string): number {
  return samples.filter((sample) => sample.name === name).reduce((sum, sample) => sum + sample.value, 0)
}
