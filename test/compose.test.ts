import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { loadConfig } from '../src/config/load-config.ts'

interface Service {
  readonly image: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly volumes?: readonly string[]
  readonly healthcheck?: unknown
  readonly depends_on?: Readonly<Record<string, { condition: string }>>
}

const root = new URL('..', import.meta.url)
const text = readFileSync(new URL('docker-compose.yml', root), 'utf8')
const compose = parse(text, { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: object
}

/** As compose itself does with variables: those that must be set are, the others take their default. */
function substituted(value: string): string {
  return value.replaceAll(/\$\{(\w+)(?::([?-])([^}]*))?\}/g, (_, name: string, sign?: string, rest?: string) =>
    sign === '-' ? rest! : `a value for ${name}`,
  )
}

describe('docker-compose.yml', () => {
  it('keeps the compose specification', () => {
    // The schema of compose-spec/compose-go, e70e961; Docker itself is not needed for this test.
    const schema = JSON.parse(readFileSync(new URL('test/fixtures/compose/compose-spec.json', root), 'utf8')) as object
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(schema)
    expect(validate(compose), JSON.stringify(validate.errors, null, 2)).toBe(true)
    expect(validate({ ...compose, services: { wrong: { imagine: 'x' } } })).toBe(false)
  })

  it('has Kafka, Postgres, a coordinator and two workers, each with a health check and its data in a volume', () => {
    expect(Object.keys(compose.services)).toEqual(['kafka', 'postgres', 'coordinator', 'worker-1', 'worker-2'])
    for (const [name, service] of Object.entries(compose.services)) {
      expect(service.healthcheck, name).toBeDefined()
      expect(service.image, `${name} has a version`).toMatch(/:\d+\.\d+/)
      const volumes = (service.volumes ?? []).map((volume) => volume.split(':')[0])
      expect(Object.keys(compose.volumes), name).toEqual(expect.arrayContaining(volumes))
      expect(volumes, name).toHaveLength(1)
    }
  })

  it.each(['coordinator', 'worker-1', 'worker-2'])('gives %s settings that Quipu accepts', (name) => {
    const { environment, command } = compose.services[name]!
    const image = /^ENV ([\s\S]*?[^\\])\n/m.exec(readFileSync(new URL('Dockerfile', root), 'utf8'))![1]!
    const ofImage = Object.fromEntries(image.split(/\s*\\?\s+/).map((pair) => pair.split('=') as [string, string]))
    const env = Object.fromEntries(Object.entries(environment!).map(([key, value]) => [key, substituted(value)]))
    const config = loadConfig([], { ...ofImage, ...env })
    expect(config).toMatchObject({ host: '0.0.0.0', port: 8080, insecure: true, dataDir: '/var/lib/quipu' })
    expect(config.advertisedUrl).toBe(`http://${name}:8080`)
    if (command![0] === 'worker') expect(config.coordinators).toEqual(['http://coordinator:8080'])
    else expect(config.kafkaBrokers).toEqual(['kafka:9092'])
  })
})

describe('etc/config.example.json', () => {
  it('is a configuration', () => {
    const example = new URL('etc/config.example.json', root).pathname
    expect(loadConfig(['--config', example], {})).toEqual(loadConfig([], {}))
  })
})
