import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { loadConfig } from '../src/config/load-config.ts'
import { createAuthority } from './support/certificates.ts'

interface Service {
  readonly image: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly volumes?: readonly string[]
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly depends_on?: Readonly<Record<string, { condition: string }>>
}

const root = new URL('..', import.meta.url)
const text = readFileSync(new URL('docker-compose.yml', root), 'utf8')
const compose = parse(text, { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: object
}

/** Images without a shell. */
const WITHOUT_SHELL = ['collector', 'tempo', 'loki']

/** The named volumes of a service, and the files that it mounts from the project. */
function volumesOf(service: Service): { readonly named: readonly string[]; readonly files: readonly string[] } {
  const sources = (service.volumes ?? []).map((volume) => volume.split(':')[0]!)
  return {
    named: sources.filter((source) => !/^[./]/.test(source)),
    files: sources.filter((source) => source.startsWith('.')),
  }
}

/** Substitutes variables as compose does: required variables get a value, the others their default. */
function substituted(value: string): string {
  return value.replaceAll(/\$\{(\w+)(?::([?-])([^}]*))?\}/g, (_, name: string, sign?: string, rest?: string) =>
    sign === '-' ? rest! : `a value for ${name}`,
  )
}

describe('docker-compose.yml', () => {
  it('conforms to the compose specification', () => {
    // The schema of compose-spec/compose-go, e70e961; Docker itself is not needed for this test.
    const schema = JSON.parse(readFileSync(new URL('test/fixtures/compose/compose-spec.json', root), 'utf8')) as object
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(schema)
    expect(validate(compose), JSON.stringify(validate.errors, null, 2)).toBe(true)
    expect(validate({ ...compose, services: { wrong: { imagine: 'x' } } })).toBe(false)
  })

  it('has Kafka, Postgres, two coordinators and two workers, with health checks and data volumes', () => {
    expect(Object.keys(compose.services).slice(0, 6)).toEqual([
      'kafka',
      'postgres',
      'coordinator',
      'coordinator-2',
      'worker-1',
      'worker-2',
    ])
    for (const [name, service] of Object.entries(compose.services)) {
      if (!WITHOUT_SHELL.includes(name)) expect(service.healthcheck, name).toBeDefined()
      expect(service.image, `${name} has a version`).toMatch(/:v?\d+\.\d+/)
      const { named } = volumesOf(service)
      expect(Object.keys(compose.volumes), name).toEqual(expect.arrayContaining([...named]))
      // Each service has a data volume. Coordinators and workers share the tables, and coordinators share the log folder.
      const own = [...named].filter((volume) => volume !== 'tables' && volume !== 'log')
      expect(own, name).toHaveLength(name === 'collector' ? 0 : 1)
      expect(named.includes('tables'), name).toBe(/^(coordinator|worker)/.test(name))
      expect(named.includes('log'), name).toBe(name.startsWith('coordinator'))
    }
  })

  it('checks the health of coordinators and workers, by HTTPS if they have a certificate', async () => {
    const [, , ...check] = compose.services['coordinator']!.healthcheck!.test
    expect(compose.services['worker-1']!.healthcheck!.test.slice(2)).toEqual(check)
    const authority = await createAuthority()
    const { cert, key } = await authority.issue('elsewhere', 'DNS:quipu.example')
    let starting = true
    const info: RequestListener = (_request, response) => response.end(JSON.stringify({ starting }))
    const servers = [createServer(info), createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }, info)]
    for (const [index, server] of servers.entries()) {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const here = `127.0.0.1:${(server.address() as AddressInfo).port}`
      const args = check.map((arg) => arg.replace('127.0.0.1:8080', here))
      const env = { PATH: process.env['PATH'], ...(index === 1 && { QUIPU_TLS_CERT: cert }) }
      const healthy = () => promisify(execFile)(process.execPath, args, { env }).then(Boolean, () => false)
      starting = true
      expect(await healthy()).toBe(false)
      starting = false
      expect(await healthy()).toBe(true)
      await new Promise((resolve) => server.close(resolve))
      expect(await healthy()).toBe(false)
    }
    await authority.remove()
  })

  it('has Prometheus, a collector, Tempo, Loki and Grafana, and their files exist', () => {
    expect(Object.keys(compose.services).slice(6)).toEqual(['prometheus', 'collector', 'tempo', 'loki', 'grafana'])
    for (const [name, service] of Object.entries(compose.services))
      for (const path of volumesOf(service).files)
        expect(existsSync(new URL(path, root)), `${name}: ${path}`).toBe(true)
    const sources = parse(readFileSync(new URL('dashboards/provisioning/datasources/quipu.yaml', root), 'utf8')) as {
      readonly datasources: readonly { readonly url: string }[]
    }
    for (const { url } of sources.datasources)
      expect(Object.keys(compose.services), url).toContain(url.replace(/^http:\/\//, '').split(':')[0])
    const { scrape_configs: jobs } = parse(
      readFileSync(new URL('dashboards/provisioning/prometheus/quipu.yaml', root), 'utf8'),
    ) as { readonly scrape_configs: readonly { readonly static_configs: readonly { readonly targets: string[] }[] }[] }
    const targets = jobs.flatMap((job) => job.static_configs.flatMap((one) => one.targets))
    expect(targets).toEqual(['coordinator:8080', 'coordinator-2:8080', 'worker-1:8080', 'worker-2:8080'])
  })

  it.each(['coordinator', 'coordinator-2', 'worker-1', 'worker-2'])('gives %s settings that Quipu accepts', (name) => {
    const { environment, command } = compose.services[name]!
    const image = /^ENV ([\s\S]*?[^\\])\n/m.exec(readFileSync(new URL('Dockerfile', root), 'utf8'))![1]!
    const ofImage = Object.fromEntries(image.split(/\s*\\?\s+/).map((pair) => pair.split('=') as [string, string]))
    const env = Object.fromEntries(Object.entries(environment!).map(([key, value]) => [key, substituted(value)]))
    const config = loadConfig(command!.slice(1), { ...ofImage, ...env })
    expect(config).toMatchObject({ host: '0.0.0.0', port: 8080, insecure: true, dataDir: '/var/lib/quipu' })
    expect(config.advertisedUrl).toBe(`http://${name}:8080`)
    // Without public hosts, --insecure would admit requests of any web page.
    expect(config.publicHosts).toEqual([name])
    if (command![0] === 'worker')
      expect(config.coordinators).toEqual(['http://coordinator:8080', 'http://coordinator-2:8080'])
    else expect(config).toMatchObject({ kafkaBrokers: ['kafka:9092'], standby: true })
  })
})

describe('etc/config.example.json', () => {
  it('is a valid configuration with the default values', () => {
    const example = new URL('etc/config.example.json', root).pathname
    expect(loadConfig(['--config', example], {})).toEqual(loadConfig([], {}))
  })
})
