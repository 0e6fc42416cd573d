import { createHash } from 'node:crypto'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { patient, startKillableServer, type KillableServer } from '../support/killable-server.ts'
import { temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { raw, run } from '../support/statement-client.ts'

/* Statements that use more than their session, the server, or a rules file allows. */

const folder = temporaryFolder()
const file = join(folder.path, 'properties.json')
let server: KillableServer

function writeRules(text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o644 })
  renameSync(`${file}.new`, file)
}

const forAll = (cpu: string) => ({ user: 'ruled', sessionProperties: { query_max_cpu_time: cpu } })
const forReports = {
  user: 'ruled',
  source: 'report.*',
  queryType: 'SELECT',
  clientTags: ['night'],
  group: 'global',
  sessionProperties: { query_max_run_time: '5s', query_priority: 7, spill_enabled: true },
  overrideSessionProperties: true,
}

beforeAll(async () => {
  writeRules(JSON.stringify([forAll('1h'), forReports]))
  server = await startKillableServer({
    QUIPU_SESSION_PROPERTY_RULES_FILE: file,
    QUIPU_QUERY_SCAN_BYTES: '100kB',
    QUIPU_QUERY_EXECUTION_MS: '2h',
  })
})
afterAll(async () => {
  await server?.close()
  await folder.remove()
})

const headers = (properties: string) => ({
  'x-trino-user': 'ana',
  'x-trino-catalog': 'tpch',
  'x-trino-schema': 'tiny',
  ...(properties === '' ? {} : { 'x-trino-session': properties }),
})

/** Hours of CPU, and almost no memory. */
const LONG = `SELECT count(*) FROM UNNEST(sequence(1, 10000)) a(x), UNNEST(sequence(1, 10000)) b(y),
  UNNEST(sequence(1, 10000)) c(z) WHERE x + y * z = 7`
/** Nine million groups. */
const LARGE = `SELECT count(*) FROM (SELECT x * 10000 + y k, count(*) c FROM UNNEST(sequence(1, 3000)) a(x),
  UNNEST(sequence(1, 3000)) b(y) GROUP BY 1) WHERE c > 1`
const SCAN = "SELECT count(*) FROM lineitem WHERE comment LIKE '%x%'"

describe('A statement that exceeds a limit', () => {
  it.each([
    ['query_max_run_time=1s', LONG, 'EXCEEDED_TIME_LIMIT', 'Query exceeded maximum time limit of 1.00s'],
    [
      'query_max_execution_time=1s',
      LONG,
      'EXCEEDED_TIME_LIMIT',
      'Query exceeded the maximum execution time limit of 1.00s',
    ],
    [
      'query_max_planning_time=1ns',
      'SELECT count(*) FROM lineitem',
      'EXCEEDED_TIME_LIMIT',
      'Query exceeded the maximum planning time limit of 1.00ns',
    ],
    ['query_max_cpu_time=1s', LONG, 'EXCEEDED_CPU_LIMIT', 'Exceeded CPU limit of 1.00s'],
    ['query_max_cpu_time=300ms', `EXPLAIN ANALYZE ${LONG}`, 'EXCEEDED_CPU_LIMIT', 'Exceeded CPU limit of 300.00ms'],
    [
      'query_max_cpu_time=300ms',
      `CREATE TABLE memory.default.long AS ${LONG.replace('count(*)', 'count(*) AS n')}`,
      'EXCEEDED_CPU_LIMIT',
      'Exceeded CPU limit of 300.00ms',
    ],
    [
      'query_max_memory=60MB',
      LARGE,
      'EXCEEDED_GLOBAL_MEMORY_LIMIT',
      'Query exceeded distributed user memory limit of 60MB',
    ],
    [
      'query_max_memory=10GB,query_max_memory_per_node=0.05GB',
      LARGE,
      'EXCEEDED_LOCAL_MEMORY_LIMIT',
      'Query exceeded per-node memory limit of 0.05GB [of the process of its engine]',
    ],
    ['query_max_scan_physical_bytes=10kB', SCAN, 'EXCEEDED_SCAN_LIMIT', 'Exceeded scan limit of 10kB'],
    ['', `WITH SESSION query_max_cpu_time = '0.5s' ${LONG}`, 'EXCEEDED_CPU_LIMIT', 'Exceeded CPU limit of 0.50s'],
  ])('fails with the error of its limit: %s', async (properties, sql, errorName, message) => {
    const { error, answers } = await run(server.url, sql, headers(properties))
    expect(error).toMatchObject({ errorName, message, errorType: 'INSUFFICIENT_RESOURCES' })
    expect(answers.at(-1)?.stats.state).toBe('FAILED')
    await waitUntil('no task of it runs on a worker', async () => {
      const left = await run(
        server.url,
        "SELECT count(*) FROM system.runtime.tasks WHERE state = 'RUNNING' AND stage_id NOT LIKE '%.0'",
      )
      return left.rows[0]?.[0] === 0
    })
  })

  it('returns its rows if it stays within all limits', async () => {
    const all =
      'query_max_run_time=1h,query_max_execution_time=1h,query_max_planning_time=1m,query_max_cpu_time=1h,' +
      'query_max_memory=1GB,query_max_memory_per_node=1GB,query_max_scan_physical_bytes=1GB,retry_policy=NONE'
    expect((await run(server.url, 'SELECT count(*) FROM nation', headers(all))).rows).toEqual([[25]])
  })

  it('an impossible limit of a session can be reset', async () => {
    const back = await run(server.url, 'RESET SESSION query_max_run_time', headers('query_max_run_time=0s'))
    expect(back.error).toBeUndefined()
  })
})

describe('The limits of the server', () => {
  it('bound the limits of a session, and the client gets a warning', async () => {
    const { error } = await run(server.url, SCAN, headers('query_max_scan_physical_bytes=1PB'))
    expect(error).toMatchObject({ errorName: 'EXCEEDED_SCAN_LIMIT', message: 'Exceeded scan limit of 100kB' })
    const set = await run(server.url, "SET SESSION query_max_execution_time = '3h'", headers(''))
    expect(JSON.stringify(set.answers.at(-1))).toContain("'query_max_execution_time' is bounded here: 2.00h holds")
    const shown = await run(server.url, "SHOW SESSION LIKE 'query\\_max\\_%\\_bytes' ESCAPE '\\'", headers(''))
    expect(shown.rows[0]?.slice(0, 3)).toEqual(['query_max_scan_physical_bytes', '100kB', '100kB'])
  })
})

it('the run time limit counts from the beginning of the query over a kill -9', async () => {
  const options = { headers: headers('query_max_run_time=6s'), method: 'POST', body: LONG }
  const began = performance.now()
  let answer = (await patient(`${server.url}/v1/statement`, options)).json
  await waitUntil('it runs', async () => {
    if (answer.nextUri) answer = (await patient(answer.nextUri)).json
    return answer.nextUri === undefined || /^(STARTING|RUNNING)$/.test(answer.stats.state)
  })
  server.kill()
  while (answer.nextUri) answer = (await patient(answer.nextUri)).json
  expect(answer.error).toMatchObject({ message: 'Query exceeded maximum time limit of 6.00s' })
  expect(performance.now() - began).toBeGreaterThan(5_900)
  const { elapsedTimeMillis } = answer.stats as unknown as { readonly elapsedTimeMillis: number }
  expect(elapsedTimeMillis).toBeGreaterThan(5_900)
})

describe('Session properties that rules set', () => {
  const ruled = (properties = '') => ({ ...headers(properties), 'x-trino-user': 'ruled' })
  const report = (properties = '') => ({
    ...ruled(properties),
    'x-trino-source': 'report 1',
    'x-trino-client-tags': 'night,big',
  })
  const shown = async (name: string, as: Readonly<Record<string, string>>) =>
    (await run(server.url, `SHOW SESSION LIKE '${name}'`, as)).rows[0]?.[1]

  it('apply to matching users that have not set the property themselves', async () => {
    expect(await shown('query_max_cpu_time', ruled())).toBe('1h')
    expect(await shown('query_max_cpu_time', ruled('query_max_cpu_time=2h'))).toBe('2h')
    expect(await shown('query_max_cpu_time', headers(''))).toBe('1000000000.00d')
  })

  it('cannot be changed by a session if the rule overrides it, also over a kill -9', async () => {
    const options = {
      headers: report('query_max_run_time=9d'),
      method: 'POST',
      body: `WITH SESSION query_max_run_time = '8d' ${LONG}`,
    }
    let answer = (await patient(`${server.url}/v1/statement`, options)).json
    await waitUntil('it is planned', async () => {
      if (answer.nextUri) answer = (await patient(answer.nextUri)).json
      return answer.nextUri === undefined || /^(STARTING|RUNNING)$/.test(answer.stats.state)
    })
    expect(JSON.stringify(answer)).toContain("'query_max_run_time' is fixed here: 5s holds")
    expect(JSON.stringify(answer)).not.toContain('spill_enabled')
    server.kill()
    while (answer.nextUri) answer = (await patient(answer.nextUri)).json
    expect(answer.error).toMatchObject({ message: 'Query exceeded maximum time limit of 5.00s' })
    const query = JSON.parse((await patient(`${server.url}/v1/query/${answer.id}`)).text) as { session: object }
    const properties = {
      query_max_run_time: '5s',
      query_max_cpu_time: '1h',
      query_priority: '7',
      spill_enabled: 'true',
    }
    expect(query.session).toMatchObject({ systemProperties: properties })
    const [created] = JSON.parse((await patient(`${server.url}/v1/query/${answer.id}/events`)).text) as {
      data: unknown
    }[]
    expect(created).toMatchObject({
      data: {
        session: {
          properties,
          propertyRules: {
            digest: createHash('sha256')
              .update(JSON.stringify([forAll('1h'), forReports]))
              .digest('hex'),
            overridden: { query_max_run_time: '9d' },
          },
        },
      },
    })
  })

  it('change with the file; a broken file leaves the old rules in force', async () => {
    writeRules(JSON.stringify([forAll('2h')]))
    await waitUntil('it is in force', async () => (await shown('query_max_cpu_time', ruled())) === '2h')
    writeRules('[{ "sessionProperties": { "query_max_cpu_time": "soon" } }]')
    await waitUntil('it is known to be broken', async () => {
      const { text } = await raw(`${server.url}/metrics`)
      return text.includes('quipu_files_broken{file="session_properties"} 1')
    })
    expect(await shown('query_max_cpu_time', ruled())).toBe('2h')
  })
})
