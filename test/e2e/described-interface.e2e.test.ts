import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { internalBearer } from '../../src/security/cluster-secret.ts'
import { writePasswordFile } from '../support/password-file.ts'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { pythonEnvironment } from '../support/python-environment.ts'
import { spawnQuipu, temporaryFolder } from '../support/quipu-process.ts'
import { finished, missing } from '../support/real-clients.ts'
import { FULL_TESTS } from '../support/full-tests.ts'

/** Schemathesis makes valid and invalid requests from `/openapi.json`, and checks that it describes each answer. */

const CLUSTER_SECRET = 'a secret of the described interface'
const PASSWORD = 'open sesame'

const programs = await pythonEnvironment('schemathesis', ['schemathesis==4.32.5']).catch((error: unknown) =>
  missing('Schemathesis', error),
)
const folder = temporaryFolder()
const ending: (() => Promise<unknown>)[] = [() => folder.remove()]
let base: string
let queryId: string

beforeAll(async () => {
  if (programs === undefined) return
  const database = await createMigratedDatabase()
  ending.unshift(() => database.drop())
  const passwords = join(folder.path, 'passwords')
  writePasswordFile(passwords, ['ada'], PASSWORD, 10_000)
  const asRoot = process.getuid?.() === 0 ? ['--run-as', 'root'] : []
  const quipu = spawnQuipu(['start', '--port', '0', '--data-dir', join(folder.path, 'data'), ...asRoot], {
    env: {
      DATABASE_URL: database.url,
      QUIPU_LOG_LEVEL: 'error',
      QUIPU_AUTHENTICATION: 'password',
      QUIPU_PASSWORD_FILE: passwords,
      QUIPU_SHARED_SECRET: CLUSTER_SECRET,
    },
  })
  ending.unshift(async () => {
    quipu.signal('SIGTERM')
    await quipu.exit
  })
  base = await quipu.url
  const authorization = `Basic ${Buffer.from(`ada:${PASSWORD}`).toString('base64')}`
  const posted = await fetch(`${base}/v1/statement`, { method: 'POST', body: 'SELECT 1', headers: { authorization } })
  queryId = ((await posted.json()) as { id: string }).id
}, 240_000)
afterAll(async () => {
  for (const end of ending) await end().catch(() => {})
}, 240_000)

async function attempt(credentials: readonly string[], which: readonly string[]): Promise<string> {
  const settings = join(folder.path, 'schemathesis.toml')
  // For a query that does not exist the server has little to answer.
  const known = `[parameters]\n"path.queryId" = "${queryId}"\n`
  writeFileSync(settings, `request-timeout = 120\n${credentials.length > 0 ? known : ''}`)
  // The event feed never ends, and the tool would read it to its end.
  const feed = credentials.length > 0 ? ['--exclude-path', '/v1/events'] : []
  const args = ['--config-file', settings, 'run', `${base}/openapi.json`, ...credentials, ...feed]
  const checks = ['--checks', 'not_a_server_error,status_code_conformance', ...which]
  const bounds = ['--max-examples', FULL_TESTS ? '5' : '2', '--generation-deterministic', '--continue-on-failure']
  const { code, stdout, stderr } = await finished(
    join(programs!, 'schemathesis'),
    [...args, ...checks, ...bounds, '--no-color', '--warnings', 'off'],
    { PYTHONUTF8: '1', HYPOTHESIS_STORAGE_DIRECTORY: join(programs!, '..', 'hypothesis') },
    folder.path,
  )
  return code === 0 ? (/\d+ generated, \d+ passed/.exec(stdout)?.[0] ?? stdout) : `${stdout}${stderr}`
}

/** Operations between processes. A user is refused there as a client without credentials is. */
const OF_PROCESSES = '^/v1/(system|announcement|task)'

describe.skipIf(programs === undefined)('The answers of all operations', () => {
  it.each([
    // Wrong and random requests reach the handlers only with credentials: without them the server refuses almost all.
    ['without credentials', ['--phases', 'coverage', '--mode', 'positive'], () => []],
    [
      'for a user',
      FULL_TESTS ? ['--phases', 'coverage,fuzzing'] : ['--phases', 'coverage', '--exclude-path-regex', OF_PROCESSES],
      () => ['--auth', `ada:${PASSWORD}`],
    ],
    [
      'for a process with the key of the cluster',
      ['--phases', 'coverage', '--include-path-regex', OF_PROCESSES],
      () => ['-H', `Authorization: Bearer ${internalBearer(CLUSTER_SECRET)}`],
    ],
  ] as const)(
    'are described in /openapi.json, and none is a server error: %s',
    { timeout: 900_000 },
    async (_name, which, credentials) => {
      expect(await attempt(credentials(), which)).toMatch(/^[1-9]\d* generated/)
    },
  )
})
