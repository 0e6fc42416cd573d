import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { patient, startKillableServer, type KillableServer } from '../support/killable-server.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { run } from '../support/statement-client.ts'

let server: KillableServer
beforeAll(async () => {
  server = await startKillableServer({
    QUIPU_QUERY_SCAN_BYTES: '100kB',
    QUIPU_QUERY_EXECUTION_MS: '2h',
  })
})
afterAll(() => server?.close())

const headers = (properties: string) => ({
  'x-trino-user': 'ana',
  'x-trino-catalog': 'tpch',
  'x-trino-schema': 'tiny',
  ...(properties === '' ? {} : { 'x-trino-session': properties }),
})

/** Hours of CPU, and nothing in memory. */
const LONG = `SELECT count(*) FROM UNNEST(sequence(1, 10000)) a(x), UNNEST(sequence(1, 10000)) b(y),
  UNNEST(sequence(1, 10000)) c(z) WHERE x + y * z = 7`
/** Nine million groups. */
const LARGE = `SELECT count(*) FROM (SELECT x * 10000 + y k, count(*) c FROM UNNEST(sequence(1, 3000)) a(x),
  UNNEST(sequence(1, 3000)) b(y) GROUP BY 1) WHERE c > 1`
const SCAN = "SELECT count(*) FROM lineitem WHERE comment LIKE '%x%'"

describe('a statement ends when it takes more than it may', () => {
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
      'query_max_memory=60MB,query_max_memory_per_node=0.05GB',
      LARGE,
      'EXCEEDED_LOCAL_MEMORY_LIMIT',
      'Query exceeded per-node memory limit of 0.05GB [of the process of its engine]',
    ],
    ['query_max_scan_physical_bytes=10kB', SCAN, 'EXCEEDED_SCAN_LIMIT', 'Exceeded scan limit of 10kB'],
    ['', `WITH SESSION query_max_cpu_time = '0.5s' ${LONG}`, 'EXCEEDED_CPU_LIMIT', 'Exceeded CPU limit of 0.50s'],
  ])('%s', { timeout: 120_000 }, async (properties, sql, errorName, message) => {
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

  it('and whoever keeps within them gets his rows', { timeout: 60_000 }, async () => {
    const all =
      'query_max_run_time=1h,query_max_execution_time=1h,query_max_planning_time=1m,query_max_cpu_time=1h,' +
      'query_max_memory=1GB,query_max_memory_per_node=1GB,query_max_scan_physical_bytes=1GB,retry_policy=NONE'
    expect((await run(server.url, 'SELECT count(*) FROM nation', headers(all))).rows).toEqual([[25]])
  })

  it('whoever set what nothing can keep can take it back', async () => {
    const back = await run(server.url, 'RESET SESSION query_max_run_time', headers('query_max_run_time=0s'))
    expect(back.error).toBeUndefined()
  })
})

describe('what the server bounds', () => {
  it('holds whatever a session asks for, which is warned', { timeout: 60_000 }, async () => {
    const { error } = await run(server.url, SCAN, headers('query_max_scan_physical_bytes=1PB'))
    expect(error).toMatchObject({ errorName: 'EXCEEDED_SCAN_LIMIT', message: 'Exceeded scan limit of 100kB' })
    const set = await run(server.url, "SET SESSION query_max_execution_time = '3h'", headers(''))
    expect(JSON.stringify(set.answers.at(-1))).toContain("'query_max_execution_time' is bounded here: 2.00h holds")
    const shown = await run(server.url, "SHOW SESSION LIKE 'query\\_max\\_%\\_bytes' ESCAPE '\\'", headers(''))
    expect(shown.rows[0]?.slice(0, 3)).toEqual(['query_max_scan_physical_bytes', '100kB', '100kB'])
  })
})

it('a time goes on from its beginning over a kill -9', { timeout: 120_000 }, async () => {
  const options = { headers: headers('query_max_run_time=6s'), method: 'POST', body: LONG }
  const began = performance.now()
  let answer = (await patient(`${server.url}/v1/statement`, options)).json
  await waitUntil('it runs', async () => {
    if (answer.nextUri) answer = (await patient(answer.nextUri)).json
    return answer.stats.state === 'STARTING' || answer.stats.state === 'RUNNING'
  })
  server.kill()
  while (answer.nextUri) answer = (await patient(answer.nextUri)).json
  expect(answer.error).toMatchObject({ message: 'Query exceeded maximum time limit of 6.00s' })
  expect(performance.now() - began).toBeGreaterThan(5_900)
  const { elapsedTimeMillis } = answer.stats as unknown as { readonly elapsedTimeMillis: number }
  expect(elapsedTimeMillis).toBeGreaterThan(5_900)
})
