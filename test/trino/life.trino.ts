import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { waitUntil } from '../support/quipu-process.ts'
import { follow, post, raw, run, type Ran, type StatementJson } from '../support/statement-client.ts'
import { changesIn, gatewayOfFile, headers, seen, trinoUrl, untilHealthy } from './gateway.ts'
import { CLIENT_TIMEOUT_MS } from './trino-server.ts'

const gateway = gatewayOfFile()
beforeAll(() => untilHealthy(gateway))

/** Takes many minutes. */
const SLOW = 'SELECT count(*) FROM tpch.sf1.lineitem a, tpch.sf1.lineitem b WHERE a.comment < b.comment'
/** 240,700 rows in many pages. */
const PAGES =
  'SELECT orderkey, linenumber, comment FROM tpch.tiny.lineitem CROSS JOIN (VALUES 1, 2, 3, 4) ORDER BY 1, 2'

const queryInfo = z.looseObject({ state: z.string(), errorCode: z.looseObject({ name: z.string() }).optional() })

/** A query at Trino; undefined when it does not know the query, or has not started it. */
async function atTrino(remoteId: string): Promise<z.output<typeof queryInfo> | undefined> {
  const answer = await raw(`${trinoUrl}/v1/query/${remoteId}`, { headers: { 'x-trino-user': 'tester' } })
  return answer.status === 200 ? queryInfo.parse(JSON.parse(answer.text)) : undefined
}

async function remoteIdOf(id: string): Promise<string> {
  const { text } = await raw(`${gateway.url}/v1/query/${id}/events`)
  const events = z
    .array(z.looseObject({ type: z.string(), data: z.record(z.string(), z.unknown()) }))
    .parse(JSON.parse(text))
  const task = events.findLast(({ type }) => type.startsWith('quipu.task.created.'))
  return z.object({ remote: z.object({ queryId: z.string() }) }).parse(task?.data).remote.queryId
}

/** Follows a statement until it runs at Trino. */
async function untilRunning(sql: string): Promise<{ readonly json: StatementJson; readonly remoteId: string }> {
  let { json } = await post(gateway.url, sql, headers)
  await waitUntil('it runs at Trino', async () => {
    json = (await raw(json.nextUri!)).json
    return json.stats.state === 'RUNNING' && (json.stats['totalSplits'] as number) > 0
  })
  return { json, remoteId: await remoteIdOf(json.id) }
}

async function untilEnded(remoteId: string): Promise<string | undefined> {
  let info: Awaited<ReturnType<typeof atTrino>>
  await waitUntil('it has ended at Trino', async () => {
    info = await atTrino(remoteId)
    return info === undefined || info.state === 'FAILED' || info.state === 'FINISHED'
  })
  return info?.errorCode?.name
}

describe('The session of a client', () => {
  const both = async (sql: string, more: Readonly<Record<string, string>> = {}) => {
    const sent = { ...headers, ...more }
    const [direct, through] = [await run(trinoUrl, sql, sent), await run(gateway.url, sql, sent)]
    expect(seen(through)).toEqual(seen(direct))
    return changesIn(through.last.headers)
  }

  it('changes as Trino says', async () => {
    expect(await both('USE tpch.sf1')).toEqual({ 'x-trino-set-catalog': 'tpch', 'x-trino-set-schema': 'sf1' })
    expect(await both("SET SESSION iceberg.target_max_file_size = '5MB'")).toEqual({
      'x-trino-set-session': 'iceberg.target_max_file_size=5MB',
    })
    expect(await both('RESET SESSION iceberg.target_max_file_size')).toEqual({
      'x-trino-clear-session': 'iceberg.target_max_file_size',
    })
    expect(await both("SET SESSION join_distribution_type = 'BROADCAST'")).toEqual({
      'x-trino-set-session': 'join_distribution_type=BROADCAST',
    })
    expect(Object.keys(await both('PREPARE p FROM SELECT name FROM tpch.tiny.nation WHERE nationkey = ?'))).toEqual([
      'x-trino-added-prepare',
    ])
    expect(await both("SET TIME ZONE 'Europe/Berlin'")).toEqual({
      'x-trino-set-session': expect.stringContaining('time_zone_id='),
    })
    expect(await both('SET ROLE NONE IN iceberg')).toEqual({ 'x-trino-set-role': expect.stringContaining('iceberg=') })
    expect(await both('SET PATH iceberg.information_schema')).toEqual({ 'x-trino-set-path': expect.any(String) })
  })

  it('goes to Trino with each statement', async () => {
    const prepared = `p=${encodeURIComponent('SELECT name, ? FROM tpch.tiny.nation WHERE nationkey = ?')}`
    await both("EXECUTE p USING 'é', 3", { 'x-trino-prepared-statement': prepared })
    await both('DESCRIBE INPUT p', { 'x-trino-prepared-statement': prepared })
    await both('DESCRIBE OUTPUT p', { 'x-trino-prepared-statement': prepared })
    await both('DEALLOCATE PREPARE p', { 'x-trino-prepared-statement': prepared })
    await both('SELECT current_timezone() FROM nation', { 'x-trino-time-zone': 'America/New_York' })
    await both('SELECT current_timezone() FROM nation', { 'x-trino-session': 'time_zone_id=Europe%2FBerlin' })
    await both("SHOW SESSION LIKE 'iceberg.target%'", { 'x-trino-session': 'iceberg.target_max_file_size=5MB' })
    await both('SELECT 1 FROM nation', {
      'x-trino-session': 'query_max_run_time=1h,join_distribution_type=PARTITIONED',
    })
    await both('SELECT 1 FROM nation', { 'x-trino-session': 'no_such_property=1' })
    await both('SELECT 1 FROM nation', { 'x-trino-session': 'query_max_run_time=nonsense' })
    await both('SELECT count(*) FROM nation', { 'x-trino-role': 'iceberg=NONE,system=NONE' })
    await both('SELECT count(*) FROM nation', { 'x-trino-client-tags': 'a,b', 'x-trino-client-info': 'täg' })
    await both('SELECT count(*) FROM nation', { 'x-trino-resource-estimate': 'EXECUTION_TIME=5m' })
    await both("SELECT date_format(timestamp '2020-03-01 00:00', '%M') FROM nation", { 'x-trino-language': 'de-DE' })
    await both("SELECT cast(timestamp '2020-03-01 00:00:00.123456' AS timestamp(6)) FROM region", {
      'x-trino-client-capabilities': '',
    })
  })

  it('keeps a large prepared statement', async () => {
    const text = `SELECT ${Array.from({ length: 150 }, (_, n) => `'${'x'.repeat(50)}${n}' AS c${n}`).join(', ')} FROM nation WHERE nationkey = ?`
    const prepared = { 'x-trino-prepared-statement': `big=${encodeURIComponent(text)}` }
    await both('EXECUTE big USING 1', prepared)
  })

  it('has transactions only without delegated statements', async () => {
    const started = await run(gateway.url, 'START TRANSACTION', { ...headers, 'x-trino-source': 'other' })
    expect(started.error).toBeUndefined()
    const transaction = String(started.last.headers['x-trino-started-transaction-id'])
    const inside = await run(gateway.url, 'SELECT count(*) FROM nation', {
      ...headers,
      'x-trino-transaction-id': transaction,
    })
    expect(inside.error?.errorName).toBe('NOT_SUPPORTED')
  })
})

describe('A long statement', () => {
  it('shows the progress that Trino shows', async () => {
    const { answers, error } = await run(gateway.url, 'SELECT sum(extendedprice) FROM tpch.sf1.lineitem', headers)
    expect(error).toBeUndefined()
    const states = answers.map(({ stats }) => stats.state)
    expect(states.at(-1)).toBe('FINISHED')
    expect(states).toContain('RUNNING')
    const running = answers.filter(({ stats }) => stats['rootStage'] !== undefined)
    expect(running.length).toBeGreaterThan(0)
    expect(answers.at(-1)!.stats).toMatchObject({
      completedSplits: expect.any(Number),
      processedRows: expect.any(Number),
    })
    expect(answers.at(-1)!.stats['processedRows']).toBe(6_001_215)
  })

  it('is canceled at Trino when its client cancels it', async () => {
    const { json, remoteId } = await untilRunning(SLOW)
    expect((await raw(json.nextUri!, { method: 'DELETE' })).status).toBe(204)
    expect(await untilEnded(remoteId)).toBe('USER_CANCELED')
    await waitUntil('its slot is free', async () =>
      (await raw(`${gateway.url}/v1/cluster`)).text.includes('"running":0'),
    )
  })

  it('is canceled at Trino when another user kills it', async () => {
    const { json, remoteId } = await untilRunning(SLOW)
    const killed = await run(
      gateway.url,
      `CALL system.runtime.kill_query(query_id => '${json.id}', message => 'too slow')`,
    )
    expect(killed.error).toBeUndefined()
    const last = await follow(await raw(json.nextUri!))
    expect(last.error).toMatchObject({
      errorName: 'ADMINISTRATIVELY_KILLED',
      message: expect.stringContaining('too slow'),
    })
    expect(await untilEnded(remoteId)).toBe('USER_CANCELED')
  })

  it('is canceled at Trino when its own limit is over', async () => {
    const limited = { ...headers, 'x-trino-session': 'query_max_run_time=3s' }
    const { id, error } = await run(gateway.url, SLOW, limited)
    expect(error?.errorName).toBe('EXCEEDED_TIME_LIMIT')
    expect(await untilEnded(await remoteIdOf(id))).toMatch(/USER_CANCELED|EXCEEDED_TIME_LIMIT/)
  })

  it('fails with the reason when it is killed at Trino', async () => {
    const { json, remoteId } = await untilRunning(SLOW)
    const kill = `CALL system.runtime.kill_query(query_id => '${remoteId}', message => 'maintenance')`
    expect((await run(trinoUrl, kill)).error).toBeUndefined()
    const last = await follow(await raw(json.nextUri!))
    expect(last.error).toMatchObject({
      errorName: 'ADMINISTRATIVELY_KILLED',
      message: expect.stringContaining('maintenance'),
    })
  })
})

describe('A client that pauses for longer than the client time-out of Trino', () => {
  const PAUSE_MS = CLIENT_TIMEOUT_MS * 2

  /** Reads a statement to its end with a pause after the answer that the condition names. */
  async function withPause(
    sql: string,
    when: (answer: StatementJson) => boolean,
  ): Promise<Ran & { readonly paused: boolean }> {
    const first = await post(gateway.url, sql, headers)
    let { json } = first
    const rows: (readonly unknown[])[] = []
    let paused = false
    for (;;) {
      rows.push(...(json.data ?? []))
      if (!paused && when(json)) {
        await sleep(PAUSE_MS)
        paused = true
      }
      if (json.nextUri === undefined) break
      const answer = await raw(json.nextUri)
      expect(answer.status).toBe(200)
      json = answer.json
    }
    return { id: json.id, rows, columns: json.columns, error: json.error, answers: [json], last: first, paused }
  }

  it.each<[string, (answer: StatementJson) => boolean]>([
    ['before its first GET', (answer) => answer.stats.state === 'QUEUED' || answer.data === undefined],
    ['with a part of the rows', (answer) => (answer.data?.length ?? 0) > 0],
  ])('gets all rows when it pauses %s', { timeout: 300_000 }, async (_, when) => {
    const { rows } = await run(trinoUrl, PAGES, headers)
    const slow = await withPause(PAGES, when)
    expect(slow.error).toBeUndefined()
    expect(slow.paused).toBe(true)
    expect(slow.rows.length).toBe(rows.length)
    expect(slow.rows).toEqual(rows)
  })

  it('finds its statement still running', { timeout: 300_000 }, async () => {
    const { json, remoteId } = await untilRunning(SLOW)
    await sleep(PAUSE_MS)
    expect((await atTrino(remoteId))?.state).toBe('RUNNING')
    expect((await raw(json.nextUri!)).json.error).toBeUndefined()
    await raw(json.nextUri!, { method: 'DELETE' })
    await untilEnded(remoteId)
  })
})
