import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { startOtlpReceiver, type OtlpReceiver } from '../support/otlp-receiver.ts'
import { spawnQuipu, temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { run } from '../support/statement-client.ts'

let folder: ReturnType<typeof temporaryFolder>
let meant: OtlpReceiver
let other: OtlpReceiver

beforeAll(async () => {
  folder = temporaryFolder()
  meant = await startOtlpReceiver()
  other = await startOtlpReceiver()
})
afterAll(async () => {
  await meant.close()
  await other.close()
  await folder.remove()
})

/**
 * Runs a statement on a server with these settings, and waits until spans arrive at `path` of the intended collector.
 */
async function traceOne(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  path: string,
): Promise<void> {
  const dataDir = join(folder.path, name)
  const database = await createMigratedDatabase()
  const quipu = spawnQuipu(['start', '--port', '0', '--data-dir', dataDir, '--log-level', 'error', ...args], {
    env: { ...env, DATABASE_URL: database.url },
  })
  try {
    await run(await quipu.url, 'SELECT 1')
    await waitUntil(`${name}: spans arrive at ${path}`, () => meant.exports.some((one) => one.path === path))
  } finally {
    quipu.signal('SIGTERM')
    await quipu.exit
    await database.drop()
  }
}

describe('The collector of spans', () => {
  it('is set by flags, which override variables', { timeout: 240_000 }, async () => {
    const flags = {
      'otlp-endpoint': `${meant.url}/base/`,
      'otlp-headers': 'x-tenant=a%20b',
      'resource-attributes': 'team=knots,service.version=none',
    }
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: other.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=of-variables,x-more=of-variables',
      OTEL_RESOURCE_ATTRIBUTES: 'team=of-variables',
      OTEL_SERVICE_NAME: 'named',
    }
    const args = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value])
    await traceOne('flags', args, env, '/base/v1/traces')
    const [first] = meant.exports.filter(({ path }) => path === '/base/v1/traces')
    expect(first!.headers['x-tenant']).toBe('a b')
    expect(first!.headers).not.toHaveProperty('x-more')
    expect(first!.resource).toMatchObject({ team: 'knots', 'service.name': 'named' })
    // The attributes that a process sets itself cannot be changed.
    expect(first!.resource['service.version']).not.toBe('none')
    expect(other.exports).toEqual([])
  })

  it(
    'is set by the configuration file, where the address for traces overrides the base address',
    { timeout: 240_000 },
    async () => {
      const file = join(folder.path, 'config.json')
      const telemetry = {
        otlpEndpoint: other.url,
        otlpTracesEndpoint: `${meant.url}/traces-only`,
        otlpHeaders: 'authorization=Bearer%20key',
        resourceAttributes: 'team=of-file',
      }
      writeFileSync(file, JSON.stringify({ telemetry }))
      await traceOne('file', ['--config', file], {}, '/traces-only')
      const [first] = meant.exports.filter(({ path }) => path === '/traces-only')
      expect(first!.headers.authorization).toBe('Bearer key')
      expect(first!.resource).toMatchObject({ team: 'of-file' })
      expect(other.exports).toEqual([])
    },
  )
})
