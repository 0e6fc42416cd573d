import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { replayLineSchema, type ReplayLine } from '../../src/replay/replay-line.ts'
import { startFakeTrino, type FakeTrino } from '../support/fake-trino.ts'
import { openFeed } from '../support/feed-client.ts'
import { processesOf, waitUntil } from '../support/quipu-process.ts'
import { repository } from '../support/repository.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { raw, run, trinoHeaders } from '../support/statement-client.ts'

/** Both servers have a catalog `one` with their own rows, and the same secret, so that their digests can be compared. */
const settings = ({ folder }: { readonly folder: string }): Readonly<Record<string, string>> => {
  const catalogs = join(folder, 'catalogs')
  mkdirSync(catalogs, { mode: 0o755 })
  writeFileSync(join(catalogs, 'one.json'), JSON.stringify({ connector: 'memory' }), { mode: 0o644 })
  return { QUIPU_CATALOG_DIR: catalogs, QUIPU_SHARED_SECRET: 'a secret that both servers know' }
}
const primary = serverOfFile('error', settings)
const second = serverOfFile('error', settings)
let trino: FakeTrino

beforeAll(async () => {
  const tables: readonly (readonly [name: string, here: string, there: string])[] = [
    ['same', '(1, 2), (3, 2)', '(3, 2), (1, 2)'],
    ['wrong', "(1, 'x'), (2, 'y')", "(1, 'x'), (2, 'z')"],
  ]
  for (const [name, here, there] of tables)
    for (const [url, rows] of [
      [primary.url, here],
      [second.url, there],
    ] as const)
      await run(url, `CREATE TABLE one.default.${name} AS SELECT * FROM (VALUES ${rows}) t(a, b)`)
  trino = await startFakeTrino()
}, 240_000)
afterAll(() => trino.close())

const PROGRAM = join(repository, 'dist', 'cli', 'quipu.js')

/** A running `quipu shadow` that writes to a file. */
function startShadow(to: string, name: string, ...more: readonly string[]) {
  const file = join(primary.folder, `${name}.jsonl`)
  const args = ['shadow', '--from', primary.url, '--to', to, '--json', file, ...more]
  const child = spawn(process.execPath, [PROGRAM, ...args], { env: { PATH: process.env['PATH'] } })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const end = new Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>(
    (resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })),
  )
  const lines = (): ReplayLine[] =>
    existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => replayLineSchema.parse(JSON.parse(line)))
      : []
  return {
    file,
    end,
    lines,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    async received(ids: readonly string[]): Promise<void> {
      await waitUntil(`the shadow has verdicts for ${ids.length} queries: ${stderr}`, () => {
        if (child.exitCode !== null) throw new Error(`The shadow ended: ${stdout} ${stderr}`)
        const found = new Set(lines().map(({ queryId }) => queryId))
        return ids.every((id) => found.has(id))
      })
    },
  }
}

function readIfThere(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

/** The id of the last event so far, from which a shadow can begin. */
async function now(): Promise<string> {
  const feed = await openFeed(`${primary.url}/v1/events`)
  await waitUntil('the feed begins', () => feed.firstId !== undefined)
  feed.drop()
  return feed.firstId!
}

/** The texts of all statements that a shadow sent to the second server. */
async function sentTexts(): Promise<string[]> {
  const { text } = await raw(`${second.url}/v1/query?limit=1000`, { headers: trinoHeaders })
  const listed = JSON.parse(text) as { query: string; session: { source?: string } }[]
  return listed.filter(({ session }) => session.source === 'quipu replay').map(({ query }) => query)
}

const headers = {
  ...trinoHeaders,
  'x-trino-user': 'ann',
  'x-trino-source': 'test',
  'x-trino-catalog': 'one',
  'x-trino-schema': 'default',
  'x-trino-prepared-statement': `p=${encodeURIComponent('SELECT a + ? FROM same')}`,
}

describe('quipu shadow', () => {
  it('mirrors reads, never sends a write, and finds a wrong answer of the second server', async () => {
    const metrics = join(primary.folder, 'shadow.prom')
    const summary = join(primary.folder, 'summary.json')
    const shadow = startShadow(
      second.url,
      'live',
      '--rate',
      '100/s',
      '--after',
      await now(),
      '--metrics',
      metrics,
      '--summary',
      summary,
      '--rows',
    )
    const statements: Readonly<Record<string, string>> = {
      same: '/* {"app": "dbt", "node_id": "model.a"} */ SELECT b, count(*) FROM same GROUP BY b',
      wrong: 'SELECT a, b FROM wrong',
      write: 'INSERT INTO same SELECT a, b FROM same WHERE a > 99',
      created: 'CREATE TABLE other AS SELECT 1 a',
      explained: 'EXPLAIN ANALYZE SELECT 1',
      prepared: 'EXECUTE p USING 2',
      chance: 'SELECT random()',
      shown: 'SHOW TABLES',
      dropped: 'DROP TABLE other',
    }
    const ids: Record<string, string> = {}
    for (const [name, sql] of Object.entries(statements)) ids[name] = (await run(primary.url, sql, headers)).id
    const { write, created, dropped, ...mirrored } = ids
    await shadow.received(Object.values(mirrored))
    shadow.kill('SIGTERM')
    const { code, stdout, stderr } = await shadow.end
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    const lines = shadow.lines()
    const verdictOf = (name: string) => lines.find(({ queryId }) => queryId === ids[name])
    expect(verdictOf('same')).toMatchObject({ verdict: 'SAME', byDigest: true, app: 'dbt', user: 'ann' })
    expect(verdictOf('same')!.fingerprint).toMatch(/^v\d+-[0-9a-f]{32}$/)
    expect(verdictOf('wrong')).toMatchObject({
      verdict: 'DIFFERENT',
      difference: { kind: 'values', names: ['b'] },
      thereQueryId: expect.stringMatching(/^\d{8}_/) as string,
      examples: [{ row: ['2', 'y'] }, { row: ['2', 'z'] }],
    })
    expect(verdictOf('explained')).toMatchObject({ verdict: 'SKIPPED', reason: 'notAQuery' })
    expect(verdictOf('prepared')).toMatchObject({ verdict: 'SAME', byDigest: true })
    expect(verdictOf('chance')).toMatchObject({ verdict: 'NON_DETERMINISTIC', difference: { kind: 'digest' } })
    // Only the first server has the table `other` at this time.
    expect(verdictOf('shown')).toMatchObject({ chance: { kind: 'server', names: ['SHOW TABLES'] } })
    expect([write, created, dropped].map((id) => lines.some(({ queryId }) => queryId === id))).toEqual([
      false,
      false,
      false,
    ])
    // No statement of the shadow itself is mirrored.
    expect(lines).toHaveLength(Object.keys(mirrored).length)
    const sent = await sentTexts()
    expect(new Set(sent)).toEqual(
      new Set(['same', 'wrong', 'prepared', 'chance', 'shown'].map((name) => statements[name])),
    )
    expect(stdout).toMatch(/^DIFFERENT +1$/m)
    expect(stdout).toMatch(/^writes +3$/m)
    expect(stdout).toMatch(/^Latency: p50 [\d.]+ ms recorded, [\d.]+ ms there/m)
    expect(stdout).toMatch(new RegExp(`^DIFFERENT ${ids['wrong']}, there \\S+: different values in b$`, 'm'))
    expect(readFileSync(metrics, 'utf8')).toContain('quipu_shadow_statements_total{verdict="DIFFERENT"} 1\n')
    const found = JSON.parse(readFileSync(summary, 'utf8')) as Record<string, unknown>
    expect(found).toMatchObject({
      queries: { writes: 3, dropped: 0, left: 0 },
      apps: { dbt: { statements: 1 } },
      differences: [{ queryId: ids['wrong'] }],
    })
    expect(statSync(shadow.file).mode & 0o777).toBe(0o600)
    const feed = await openFeed(`${primary.url}/v1/events?after=beginning&type=ReplayStarted,ReplayEnded`)
    await feed.received(2)
    feed.drop()
    expect(feed.cloudEvents().map(({ data }) => data)).toMatchObject([
      { mode: 'shadow', statements: 0 },
      { outcome: 'stopped', verdicts: { DIFFERENT: 1 } },
    ])
  })

  it('continues after kill -9 with one verdict for each statement', async () => {
    const after = await now()
    const post = async (from: number, count: number): Promise<string[]> => {
      const made: string[] = []
      for (let i = from; i < from + count; i++) made.push((await run(primary.url, `SELECT ${i} FROM same`, headers)).id)
      return made
    }
    const killed = startShadow(second.url, 'killed', '--rate', '2/s', '--after', after, '--concurrency', '2')
    const ids = await post(0, 6)
    await waitUntil('the shadow has verdicts', () => killed.lines().length >= 2)
    killed.kill('SIGKILL')
    await killed.end
    expect(killed.lines().length).toBeLessThan(6)
    ids.push(...(await post(6, 2)))
    const again = startShadow(second.url, 'killed', '--rate', '50/s')
    await again.received(ids)
    again.kill('SIGTERM')
    const { code, stdout } = await again.end
    expect({
      code,
      lines: again
        .lines()
        .map(({ queryId }) => queryId)
        .toSorted(),
    }).toEqual({
      code: 0,
      lines: ids.toSorted(),
    })
    expect(stdout).toMatch(/^SAME +8$/m)
    expect(stdout).toMatch(/^finished +8$/m)
  })

  it('continues after a kill -9 before any query finished, and misses none', async () => {
    const killed = startShadow(second.url, 'early', '--rate', '50/s')
    await waitUntil('the position is saved', () => /"after":/.test(readIfThere(`${killed.file}.position`)))
    killed.kill('SIGKILL')
    await killed.end
    const { id } = await run(primary.url, 'SELECT 41 FROM same', headers)
    const again = startShadow(second.url, 'early', '--rate', '50/s')
    await again.received([id])
    again.kill('SIGTERM')
    expect((await again.end).stdout).toMatch(/^finished +1$/m)
  })

  it('counts each query once while the primary is killed with kill -9, and reports what it lost', async () => {
    const shadow = startShadow(second.url, 'restarted', '--rate', '4/s', '--after', await now())
    const ids: string[] = []
    const post = async (from: number, count: number): Promise<void> => {
      for (let i = from; i < from + count; i++) ids.push((await run(primary.url, `SELECT ${i} FROM same`, headers)).id)
    }
    // The rate lets further statements wait, so the primary dies while some are mirrored.
    await post(100, 8)
    await shadow.received(ids.slice(0, 1))
    const [coordinator] = processesOf(primary.data).children
    // The statement ends or fails with the coordinator. It counts only if the log has its end.
    const broken = post(200, 1).catch(() => {})
    process.kill(coordinator!, 'SIGKILL')
    await waitUntil('another coordinator serves', async () => {
      const [next] = processesOf(primary.data).children
      return next !== coordinator && (await raw(`${primary.url}/v1/info`).catch(() => undefined))?.status === 200
    })
    await broken
    await post(300, 4)
    const finished = async (): Promise<string[]> => {
      const { rows } = await run(
        primary.url,
        `SELECT query_id FROM system.history.queries WHERE state = 'FINISHED' AND source = 'test'
           AND (query LIKE 'SELECT 1__ FROM same' OR query LIKE 'SELECT 2__ FROM same' OR query LIKE 'SELECT 3__ FROM same')`,
        trinoHeaders,
      )
      return rows.map(([id]) => String(id)).toSorted()
    }
    const recorded = await finished()
    await shadow.received(recorded)
    shadow.kill('SIGTERM')
    const { code, stdout, stderr } = await shadow.end
    const lines = shadow.lines()
    const found = lines.map(({ queryId }) => queryId)
    expect({ code, found }).toEqual({ code: 0, found: expect.arrayContaining(recorded) as unknown })
    expect(new Set(found).size).toBe(found.length)
    expect(lines.filter(({ user, verdict }) => user === 'ann' && !['SAME', 'UNCONFIRMED'].includes(verdict))).toEqual(
      [],
    )
    const countOf = (name: string): number => Number(new RegExp(`^${name} +(\\d+)$`, 'm').exec(stdout)?.[1])
    // Every finished query has one verdict or is counted. The query of the history may still be open.
    expect(countOf('finished')).toBe(found.length + countOf('ignored') + countOf('left'))
    expect(countOf('dropped')).toBe(0)
    expect(stderr).toContain('; trying again\n')
  })

  it('waits for a second server that is away, and passes the session on to a Trino', async () => {
    trino.is = 'dead'
    trino.resultOf = () => ({ columns: [{ name: 'one', type: 'integer' }] })
    const shadow = startShadow(
      trino.url,
      'trino',
      '--rate',
      '50/s',
      '--after',
      await now(),
      '--user-map',
      'ann=shadow',
      '--catalog-map',
      'one=two',
    )
    const { id } = await run(primary.url, 'SELECT 1 one', headers)
    await waitUntil('the shadow asks whether the second server is back', () => trino.checks > 0)
    expect(shadow.lines()).toEqual([])
    trino.is = 'ready'
    await shadow.received([id])
    shadow.kill('SIGTERM')
    await shadow.end
    expect(shadow.lines()).toMatchObject([{ queryId: id, verdict: 'SAME', user: 'ann' }])
    for (const { sql, headers: sent } of trino.statements) {
      expect(sql).toBe('SELECT 1 one')
      expect(sent).toMatchObject({
        'x-trino-user': 'shadow',
        'x-trino-catalog': 'two',
        'x-trino-schema': 'default',
        'x-trino-prepared-statement': headers['x-trino-prepared-statement'].replaceAll('%20', '+'),
      })
    }
  })
})
