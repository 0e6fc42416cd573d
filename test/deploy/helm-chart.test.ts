import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { z } from 'zod'
import { loadConfig } from '../../src/config/load-config.ts'
import { metricNames } from '../../src/telemetry/metric-names.ts'
import { pythonEnvironment } from '../support/python-environment.ts'

const run = promisify(execFile)
const root = new URL('../../', import.meta.url)
const chart = new URL('deploy/helm/quipu', root).pathname
/** The Kubernetes versions of the checks: the oldest version that the chart names, and a current version. */
const KUBERNETES = ['1.27', '1.34']

interface Resource {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> }
  readonly spec?: Readonly<Record<string, unknown>>
  readonly data?: Readonly<Record<string, string>>
}

const REQUIRED = { secrets: { shared: { name: 'quipu-secret' }, database: { name: 'quipu-database' } } }

/** Values that enable every part of the chart. */
const ALL = {
  ...REQUIRED,
  insecure: false,
  secrets: {
    ...REQUIRED.secrets,
    anchorKey: { name: 'quipu-anchor' },
    metricsToken: { name: 'quipu-metrics' },
    kafkaPassword: { name: 'quipu-kafka' },
    mounted: [{ name: 'quipu-passwords' }],
  },
  kafka: { brokers: ['kafka-0:9092', 'kafka-1:9092'], tls: true, saslMechanism: 'scram-sha-512', user: 'quipu' },
  tls: { secretName: 'quipu-tls' },
  config: {
    authentication: ['password'],
    passwordFile: '/etc/quipu/secrets/quipu-passwords/passwords',
    accessRulesFile: '/etc/quipu/files/rules.json',
    timeouts: { archiveAfterMs: '90d' },
  },
  catalogs: { lake: { connector: 'lake', location: '/lake' } },
  files: { 'rules.json': '{"catalogs":[{"allow":"all"}]}' },
  storage: { extra: [{ name: 'lake', claimName: 'lake', mountPath: '/lake', readOnly: true }] },
  worker: { autoscaling: { enabled: true } },
  ingress: { enabled: true, host: 'quipu.example', className: 'nginx', tlsSecretName: 'quipu-ingress' },
  monitoring: { enabled: true, labels: { release: 'prometheus' }, dashboards: { enabled: true } },
  telemetry: { otlpEndpoint: 'http://collector:4318' },
}

/** The fields of the Prometheus operator's API (monitoring.coreos.com/v1) that the chart uses. */
const serviceMonitorSpec = z.strictObject({
  selector: z.strictObject({
    matchLabels: z.record(z.string(), z.string()),
    matchExpressions: z.array(
      z.strictObject({ key: z.string(), operator: z.enum(['In', 'NotIn', 'Exists']), values: z.array(z.string()) }),
    ),
  }),
  endpoints: z.array(
    z.strictObject({
      port: z.string(),
      path: z.string(),
      interval: z.string().regex(/^\d+[smh]$/),
      scheme: z.enum(['http', 'https']).optional(),
      tlsConfig: z
        .strictObject({
          ca: z.strictObject({ secret: z.strictObject({ name: z.string(), key: z.string() }) }).optional(),
          serverName: z.string(),
        })
        .optional(),
      authorization: z.strictObject({ credentials: z.strictObject({ name: z.string(), key: z.string() }) }).optional(),
      relabelings: z.array(z.record(z.string(), z.unknown())),
    }),
  ),
})

const helm = await findHelm()
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'quipu-helm-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Without Helm the tests of the chart are skipped with a message. In CI a missing Helm is a failure. */
async function findHelm(): Promise<string> {
  try {
    const built = await run(new URL('test/support/clients/build-helm', root).pathname, { timeout: 900_000 })
    return built.stdout.trim()
  } catch (error) {
    if (process.env['CI'] === 'true') throw error
    process.stderr.write('SKIPPED: no Helm, and none can be built (go install helm.sh/helm/v3/cmd/helm)\n')
    return ''
  }
}

async function render(values: object): Promise<{ readonly text: string; readonly resources: readonly Resource[] }> {
  const file = join(folder, `values-${Math.random()}.yaml`)
  await writeFile(file, stringify(values))
  const args = ['template', 'prod', chart, '--namespace', 'data', '--kube-version', KUBERNETES.at(-1)!, '-f', file]
  const { stdout } = await run(helm, args, { maxBuffer: 64 * 1024 * 1024 })
  return { text: stdout, resources: parseAllDocuments(stdout).map((document) => document.toJS() as Resource) }
}

function one(resources: readonly Resource[], kind: string, name: string): Resource {
  const found = resources.find((resource) => resource.kind === kind && resource.metadata.name === name)
  expect(found, `${kind} ${name}`).toBeDefined()
  return found!
}

interface Container {
  readonly args: readonly string[]
  readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[]
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
}

function podOf(resource: Resource): { readonly container: Container; readonly volumes: readonly { name: string }[] } {
  const { template } = resource.spec as {
    readonly template: { readonly spec: { readonly containers: Container[]; readonly volumes: { name: string }[] } }
  }
  return { container: template.spec.containers[0]!, volumes: template.spec.volumes }
}

describe.runIf(helm !== '')('The Helm chart', () => {
  it.each([
    ['with required values only', REQUIRED],
    ['with every part', ALL],
  ])('renders resources that Kubernetes accepts, %s', async (_, values) => {
    const programs = await pythonEnvironment('kubernetes-validate', ['kubernetes-validate==1.37.0'])
    const { text, resources } = await render(values)
    // Another test checks the resources of the Prometheus operator: their schemas are not part of Kubernetes.
    const own = resources.filter(({ kind }) => kind !== 'ServiceMonitor' && kind !== 'PrometheusRule')
    expect(own.length).toBeGreaterThan(10)
    const file = join(folder, `rendered-${Math.random()}.yaml`)
    await writeFile(file, own.map((resource) => stringify(resource)).join('---\n'))
    for (const version of KUBERNETES) {
      const checked = await run(join(programs, 'kubernetes-validate'), ['-k', version, '--strict', file])
      const lines = checked.stdout + checked.stderr
      expect(lines.match(/ passed for /g), version).toHaveLength(own.length)
    }
    expect(text).not.toContain('<no value>')
  })

  it('gives coordinators and workers settings that Quipu accepts', async () => {
    const { resources } = await render(ALL)
    const settings = JSON.parse(one(resources, 'ConfigMap', 'prod-quipu-config').data!['config.json']!) as object
    expect(settings).toEqual(ALL.config)
    const file = join(folder, 'config.json')
    await writeFile(file, JSON.stringify(settings))
    for (const [name, command] of [
      ['prod-quipu-coordinator', 'coordinator'],
      ['prod-quipu-worker', 'worker'],
    ] as const) {
      const { container } = podOf(one(resources, 'StatefulSet', name))
      expect(container.args[0]).toBe(command)
      const env = Object.fromEntries(
        container.env.map(({ name: key, value }) => [key, (value ?? `a value of ${key}`).replace('$(POD_NAME)', name)]),
      )
      const { POD_NAME: _, ...variables } = env
      const config = loadConfig(container.args.slice(1), {
        QUIPU_HOST: '0.0.0.0',
        QUIPU_DATA_DIR: '/var/lib/quipu',
        ...variables,
        QUIPU_CONFIG: file,
        ...(command === 'coordinator' && { DATABASE_URL: 'postgresql://quipu@postgres/quipu' }),
      })
      expect(config).toMatchObject({ port: 8080, insecure: false, authentication: ['password'] })
      expect(config.timeouts.archiveAfterMs).toBe(90 * 24 * 3600 * 1000)
      expect(config.advertisedUrl).toBe(`https://${name}.${name}.data.svc.cluster.local:8080`)
      if (command === 'coordinator') expect(config).toMatchObject({ standby: true, kafkaUser: 'quipu' })
      else
        expect(config.coordinators).toEqual(
          [0, 1].map((n) => `https://prod-quipu-coordinator-${n}.prod-quipu-coordinator.data.svc.cluster.local:8080`),
        )
    }
  })

  it('mounts exactly the volumes that it declares', async () => {
    const { resources } = await render(ALL)
    for (const name of ['prod-quipu-coordinator', 'prod-quipu-worker']) {
      const { container, volumes } = podOf(one(resources, 'StatefulSet', name))
      const mounted = container.volumeMounts.map((mount) => mount.name)
      expect(mounted.toSorted(), name).toEqual(['data', ...volumes.map((volume) => volume.name)].toSorted())
      expect(mounted).toEqual(expect.arrayContaining(['extra-lake', 'secret-quipu-passwords', 'tls']))
    }
  })

  it('contains no secret: each is read from a Secret that the values name', async () => {
    const { resources } = await render(ALL)
    expect(resources.filter(({ kind }) => kind === 'Secret')).toEqual([])
    const { container } = podOf(one(resources, 'StatefulSet', 'prod-quipu-coordinator'))
    for (const name of ['QUIPU_SHARED_SECRET', 'DATABASE_URL', 'QUIPU_METRICS_TOKEN', 'QUIPU_KAFKA_PASSWORD'])
      expect(container.env.find((variable) => variable.name === name)?.valueFrom, name).toHaveProperty('secretKeyRef')
  })

  it('scales workers by a metric that workers serve', async () => {
    const { resources } = await render(ALL)
    const { spec } = one(resources, 'HorizontalPodAutoscaler', 'prod-quipu-worker')
    const [metric] = (spec as { metrics: { pods: { metric: { name: string } } }[] }).metrics
    const served = Object.values(metricNames).find(({ text }) => text === metric!.pods.metric.name)
    expect(served).toMatchObject({ on: 'worker', kind: 'gauge' })
    const set = one(resources, 'StatefulSet', 'prod-quipu-worker').spec!
    expect(set).not.toHaveProperty('replicas')
  })

  it('contains the rules and dashboards of dashboards/, and a monitor for both services', async () => {
    const { resources } = await render(ALL)
    const rules = readFileSync(new URL('dashboards/rules/quipu.yaml', root), 'utf8')
    expect(one(resources, 'PrometheusRule', 'prod-quipu').spec).toEqual(parse(rules))
    const monitor = serviceMonitorSpec.parse(one(resources, 'ServiceMonitor', 'prod-quipu').spec)
    const services = resources.filter(({ kind, metadata }) => {
      const { matchLabels, matchExpressions } = monitor.selector
      return (
        kind === 'Service' &&
        matchExpressions.every(({ key, values }) => values.includes(metadata.labels[key]!)) &&
        Object.entries(matchLabels).every(([label, value]) => metadata.labels[label] === value)
      )
    })
    expect(services.map(({ metadata }) => metadata.name).toSorted()).toEqual([
      'prod-quipu-coordinator',
      'prod-quipu-worker',
    ])
    const boards = readdirSync(new URL('dashboards/json', root))
    for (const board of boards) {
      const map = one(resources, 'ConfigMap', `prod-quipu-dashboard-${board.replace('.json', '')}`)
      expect(map.data![board]).toBe(readFileSync(new URL(`dashboards/json/${board}`, root), 'utf8'))
    }
  })

  it.each([
    ['no shared secret', { secrets: { database: { name: 'd' } } }, /name the Secret with the cluster's shared secret/],
    ['no database', { secrets: { shared: { name: 's' } } }, /name the Secret with the address of Postgres/],
    ['a value that it does not know', { ...REQUIRED, workers: 3 }, /workers/],
    ['a replica count of zero', { ...REQUIRED, coordinator: { replicas: 0 } }, /replicas/],
  ])('refuses %s with a message that names it', async (_, values, message) => {
    await expect(render(values)).rejects.toThrow(message)
  })

  it('has the version of the project', () => {
    const { appVersion } = parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8')) as { appVersion: string }
    const project = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { version: string }
    expect(appVersion).toBe(project.version)
  })
})
