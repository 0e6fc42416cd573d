import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load-config.ts'
import { settingList } from '../../src/config/setting-list.ts'
import { settingsHelp, settingsMarkdown } from '../../src/config/settings-documentation.ts'

let folder: string
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'quipu-config-'))))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function file(content: string): string {
  const path = join(folder, `${Math.random()}.json`)
  writeFileSync(path, content)
  return path
}

/** The refusal, as `exit code: line`. */
function refusal(argv: readonly string[], env: NodeJS.ProcessEnv = {}): string {
  try {
    loadConfig(argv, env)
  } catch (error) {
    const { exitCode, message } = error as { exitCode: number; message: string }
    return `${exitCode}: ${message}`
  }
  return 'accepted'
}

describe('The configuration', () => {
  it('has the documented defaults', () => {
    const config = loadConfig([], {})
    expect(config).toMatchObject({ port: 8080, host: '127.0.0.1', workers: 1, insecure: false, kafkaBrokers: [] })
    expect(config.dataDir).toBe(join(process.cwd(), '.quipu'))
    expect(config.databaseUrl).toBeUndefined()
    expect(config.timeouts.longPollMs).toBe(1000)
    expect(config.limits.statementBytes).toBe(1024 * 1024)
  })

  it('reads sizes and durations with units from the file, and names the file of a wrong value', () => {
    const path = file('{"timeouts": {"archiveAfterMs": "90d", "anchorMs": 1000}, "limits": {"statementBytes": "2MB"}}')
    const { timeouts, limits } = loadConfig(['--config', path], {})
    expect(timeouts).toMatchObject({ archiveAfterMs: 90 * 24 * 3_600_000, anchorMs: 1000 })
    expect(limits.statementBytes).toBe(2 * 1024 * 1024)
    const wrong = file('{"timeouts": {"anchorMs": "soon"}}')
    expect(refusal(['--config', wrong])).toBe(
      `64: timeouts.anchorMs in ${wrong}: must be whole milliseconds, or a number with ms, s, m, h or d`,
    )
  })

  it('prefers flags to variables, variables to the file, the file to defaults', () => {
    const path = file('{"port": 1, "workers": 2, "logLevel": "warn", "limits": {"openQueries": 7, "queuedQueries": 9}}')
    const config = loadConfig(['--config', path, '--port=3', '--queued-queries', '11'], {
      QUIPU_PORT: '2',
      QUIPU_WORKERS: '4',
    })
    expect(config.port).toBe(3)
    expect(config.workers).toBe(4)
    expect(config.logLevel).toBe('warn')
    expect(config.limits).toMatchObject({ openQueries: 7, queuedQueries: 11, engineMemoryPercent: 60 })
  })

  it('reads lists, sizes, durations and flags from text', () => {
    const config = loadConfig(['--page-bytes', '2MB', '--insecure', '--host=0.0.0.0'], {
      KAFKA_BROKERS: 'a:9092, b:9092',
      QUIPU_LONG_POLL_MS: '2s',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
      QUIPU_SHARED_SECRET: '',
    })
    expect(config.limits.pageBytes).toBe(2 * 1024 * 1024)
    expect(config.insecure).toBe(true)
    expect(config.kafkaBrokers).toEqual(['a:9092', 'b:9092'])
    expect(config.timeouts.longPollMs).toBe(2000)
    expect(config.telemetry.otlpEndpoint).toBe('http://collector:4318')
    expect(config.sharedSecret).toBeUndefined()
  })

  it('cannot be changed', () => {
    const config = loadConfig([], {}) as { limits: { openQueries: number } }
    expect(() => (config.limits.openQueries = 1)).toThrow(TypeError)
  })

  it('refuses unknown options, variables, keys and files with exit code 64 and one line', () => {
    expect(refusal(['--prot=1'])).toBe("64: Unknown option '--prot'")
    expect(refusal([], { QUIPU_PROT: '1' })).toBe('64: Unknown variable QUIPU_PROT: quipu --help lists the settings')
    const unknown = file('{"limits": {"jons": 1}}')
    expect(refusal(['--config', unknown])).toBe(`64: Unknown key limits.jons in ${unknown}`)
    expect(refusal(['--config', join(folder, 'none.json')])).toMatch(/^64: Cannot read .*the file does not exist$/)
    expect(refusal(['--config', file('{')])).toMatch(/^64: .* is not JSON: .*$/)
  })

  it.each([
    [['--port', 'x'], {}, '64: --port: must be a whole number'],
    [[], { QUIPU_PORT: '70000' }, /^64: QUIPU_PORT: too big/],
    [[], { QUIPU_INSECURE: 'maybe' }, '64: QUIPU_INSECURE: must be true or false'],
    [['--page-bytes=1XB'], {}, /^64: --page-bytes: must be whole bytes/],
    [['--log-level=loud'], {}, /^64: --log-level: invalid option/],
    [['--host', '0.0.0.0'], {}, /^64: Listening on 0\.0\.0\.0 .*--insecure/],
    [['--coordinators', 'localhost:8080'], {}, /^64: QUIPU_COORDINATORS: 'localhost:8080' is not an address/],
    [['--otlp-endpoint', 'localhost:4318'], {}, /^64: --otlp-endpoint: must be an address of the form http/],
    [[], { QUIPU_ANCHOR_WEBHOOK: 'file:///etc/x' }, /^64: QUIPU_ANCHOR_WEBHOOK: must be an address of the form http/],
    [
      [],
      { OTEL_EXPORTER_OTLP_HEADERS: 'secret' },
      '64: OTEL_EXPORTER_OTLP_HEADERS: must be name=value pairs, separated by commas',
    ],
    [['--resource-attributes', 'a=%'], {}, /^64: --resource-attributes: must be name=value/],
    [[], { DATABASE_URL: 'mysql://x' }, '64: DATABASE_URL must begin with postgresql://'],
  ] as const)('refuses %j %j', (argv, env, line) => {
    if (typeof line === 'string') expect(refusal(argv, env)).toBe(line)
    else expect(refusal(argv, env)).toMatch(line)
  })

  it('documents every setting, with unique names', () => {
    const markdown = settingsMarkdown()
    for (const { env, flag } of settingList) expect(markdown).toContain(`| \`--${flag}\` | \`${env}\` |`)
    expect(new Set(settingList.map((one) => one.env)).size).toBe(settingList.length)
    expect(new Set(settingList.map((one) => one.flag)).size).toBe(settingList.length)
    expect(settingsHelp()).toContain('QUIPU_DATA_DIR')
  })

  it('knows every variable of the specification', () => {
    const names =
      'QUIPU_PORT QUIPU_HOST QUIPU_DATA_DIR QUIPU_WORKERS QUIPU_CATALOG_DIR DATABASE_URL KAFKA_BROKERS QUIPU_SHARED_SECRET QUIPU_ENVIRONMENT QUIPU_COORDINATORS QUIPU_ADVERTISED_URL QUIPU_INSECURE QUIPU_PUBLIC_HOSTS QUIPU_LOG_LEVEL'
    expect(settingList.map((one) => one.env)).toEqual(expect.arrayContaining(names.split(' ')))
  })
})
