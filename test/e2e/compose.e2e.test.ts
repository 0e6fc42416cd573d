import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { composeServices, OURS, settingsOf } from '../support/compose-services.ts'
import { kafkaIsAvailable, sharedKafka } from '../support/kafka.ts'
import { createDatabase, freePort } from '../support/postgres.ts'
import { findPrometheus, startPrometheusFrom } from '../support/prometheus.ts'
import { spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { raw, run } from '../support/statement-client.ts'

const REPLACED_AT_ONCE = /^quipu: Epoch 2 replaced epoch 1 of this process; starting it again in \d+ ms\n/
const root = new URL('../../', import.meta.url)
const available = await kafkaIsAvailable()

/**
 * Runs the command lines of docker-compose.yml, as written, as processes of one host: names of containers become
 * ports of loopback, variables get values, and each process has a data folder of its own.
 */
describe.runIf(available)('The services of docker-compose.yml', () => {
  const folder = temporaryFolder()
  const processes = new Map<string, QuipuProcess>()
  const ports = new Map<string, number>()
  let here: (text: string) => string

  beforeAll(async () => {
    const { brokers } = await sharedKafka()
    const database = await createDatabase()
    // The user of the image owns its volume; here the folder of root goes to the user that the processes become.
    const tables = join(folder.path, 'tables')
    mkdirSync(tables)
    const topic = `test-compose-${randomBytes(4).toString('hex')}`
    for (const name of OURS) ports.set(name, await freePort())
    here = (text) =>
      [...ports]
        .reduce((now, [name, port]) => now.replaceAll(`${name}:8080`, `127.0.0.1:${port}`), text)
        .replaceAll('kafka:9092', brokers.join(','))
        .replace(/^postgresql:.*@postgres:5432\/quipu$/, database.url)
        .replace(/\$\{QUIPU_SHARED_SECRET[^}]*\}/, 'a secret of the whole cluster')
        .replace(/\$\{OTEL_EXPORTER_OTLP_ENDPOINT[^}]*\}/, '')
    for (const name of OURS) {
      processes.set(
        name,
        spawnQuipu(composeServices[name]!.command, {
          env: {
            QUIPU_DATA_DIR: join(folder.path, name),
            ...settingsOf(name, here),
            QUIPU_PORT: String(ports.get(name)),
            QUIPU_KAFKA_TOPIC: topic,
            QUIPU_TABLES_DIR: tables,
            // On a machine that is busy with tests the stand-by would take a silent writer for dead.
            QUIPU_WRITER_SILENT_MS: '10m',
            QUIPU_LOG_LEVEL: 'error',
          },
        }),
      )
    }
  }, 240_000)

  afterAll(async () => {
    // One after the other: a coordinator that takes over while it drains would write more lines to stderr.
    for (const name of ['coordinator-2', 'coordinator']) {
      processes.get(name)?.signal('SIGTERM')
      await processes.get(name)?.exit
    }
    for (const [name, quipu] of processes) if (name.startsWith('worker')) quipu.signal('SIGTERM')
    const exits = await Promise.all([...processes.values()].map((quipu) => quipu.exit))
    await folder.remove()
    // If two coordinators start at once, both may claim the log: the log fences the first, and it starts again.
    const reported = exits.map(({ code, stderr }) => ({ code, stderr: stderr.replace(REPLACED_AT_ONCE, '') }))
    expect(reported).toEqual(OURS.map(() => ({ code: 0, stderr: '' })))
  }, 240_000)

  it('become healthy by their own health checks', { timeout: 180_000 }, async () => {
    for (const name of OURS) {
      const [kind, program, ...args] = composeServices[name]!.healthcheck.test
      expect([kind, program]).toEqual(['CMD', 'node'])
      const check = args.map((arg) => arg.replace('127.0.0.1:8080', `127.0.0.1:${ports.get(name)}`))
      const healthy = () => promisify(execFile)(process.execPath, check).then(Boolean, () => false)
      await waitUntil(`${name} is healthy`, healthy, 120_000)
    }
  })

  it('answer a statement at both coordinators while two workers serve', { timeout: 240_000 }, async () => {
    const base = here('http://coordinator:8080')
    let serving: readonly string[] = []
    await waitUntil(
      'both workers serve',
      async () => {
        serving = (await nodes(base)).map(({ uri }) => uri)
        return serving.length === 2
      },
      60_000,
    )
    expect(serving.toSorted()).toEqual(['worker-1', 'worker-2'].map((name) => here(`http://${name}:8080`)).toSorted())
    for (const name of ['coordinator', 'coordinator-2'])
      expect((await run(here(`http://${name}:8080`), 'SELECT count(*) FROM tpch.tiny.lineitem')).rows).toEqual([
        [60_175],
      ])
    const writers = await Promise.all(
      ['coordinator', 'coordinator-2'].map(async (name) => writes(here(`http://${name}:8080`))),
    )
    expect(writers.toSorted()).toEqual([false, true])
  })

  it('are scraped by Prometheus with the shipped configuration', { timeout: 240_000 }, async () => {
    const programs = await findPrometheus()
    if (!programs) return
    const config = readFileSync(new URL('dashboards/provisioning/prometheus/quipu.yaml', root), 'utf8')
    const rules = new URL('dashboards/rules/quipu.yaml', root).pathname
    const prometheus = await startPrometheusFrom(
      programs,
      here(config).replace('/etc/prometheus/rules/quipu.yaml', rules),
    )
    try {
      const up = async () => (await prometheus.query('up')).filter(({ value }) => value === 1).length
      await waitUntil('all are scraped', async () => (await up()) === OURS.length, 60_000)
      const loaded = (await prometheus.get('/api/v1/rules')) as { groups: readonly unknown[] }
      expect(loaded.groups.length).toBeGreaterThan(0)
    } finally {
      await prometheus.stop()
    }
  })
})

async function writes(base: string): Promise<boolean> {
  return ((await raw(`${base}/v1/info`)).json as unknown as { writer: boolean }).writer
}

async function nodes(base: string): Promise<readonly { readonly uri: string }[]> {
  return (await raw(`${base}/v1/node`)).json as unknown as { uri: string }[]
}
