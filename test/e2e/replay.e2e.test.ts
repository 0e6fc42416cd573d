import { spawn } from 'node:child_process'
import { appendFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { replayLineSchema, type ReplayLine } from '../../src/replay/replay-line.ts'
import { openFeed } from '../support/feed-client.ts'
import { repository } from '../support/repository.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { raw, run, trinoHeaders } from '../support/statement-client.ts'

/** Two catalogs of one server are the two sides: `one` in the record is `two` on the other side. */
const server = serverOfFile('error', ({ folder }) => {
  const catalogs = join(folder, 'catalogs')
  mkdirSync(catalogs, { mode: 0o755 })
  for (const name of ['one', 'two'])
    writeFileSync(join(catalogs, `${name}.json`), JSON.stringify({ connector: 'memory' }), { mode: 0o644 })
  return { QUIPU_CATALOG_DIR: catalogs }
})

const PROGRAM = join(repository, 'dist', 'cli', 'quipu.js')

interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function quipu(...args: readonly string[]): Promise<Run> {
  return new Promise((resolve) => {
    const env = { PATH: process.env['PATH'], QUIPU_SERVER: server.url }
    const child = spawn(process.execPath, [PROGRAM, 'replay', ...args], { env })
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.once('close', (code) => resolve({ code, stdout, stderr }))
  })
}

const recorded: Record<string, string> = {
  same: 'SELECT b, count(*), avg(d) FROM one.default.same GROUP BY b',
  otherOrder: 'SELECT a FROM one.default.moved ORDER BY b',
  different: 'SELECT a, b FROM one.default.changed',
  more: 'SELECT a FROM one.default.longer',
  tie: 'SELECT a FROM one.default.moved ORDER BY b LIMIT 1',
  chosen: 'SELECT a FROM one.default.moved LIMIT 1',
  chance: 'SELECT random()',
  failedThere: 'SELECT * FROM one.default.missing',
  failedBoth: 'SELECT 1 / a FROM one.default.zero',
  prepared: 'EXECUTE p USING 2',
  wrong: 'SELECT nothing FROM one.default.same',
  write: 'INSERT INTO one.default.same SELECT a, b + 1, d FROM one.default.same WHERE a > 99',
  shown: 'SHOW TABLES FROM one.default',
}
const ids: Record<string, string> = {}
const headers = {
  ...trinoHeaders,
  'x-trino-user': 'ann',
  'x-trino-source': 'test',
  'x-trino-prepared-statement': `p=${encodeURIComponent('SELECT a + ? FROM one.default.same')}`,
}

beforeAll(async () => {
  const tables: readonly (readonly [name: string, columns: string, one: string, two?: string])[] = [
    ['same', '(a, b, d)', '(1, 2, 0.5e0), (3, 2, 0.25e0)', '(3, 2, 0.25e0), (1, 2, 0.5e0)'],
    ['moved', '(a, b)', '(1, 1), (2, 1)', '(2, 1), (1, 1)'],
    ['changed', '(a, b)', "(1, 'x'), (2, '<y>')", "(1, 'x'), (2, '<z>')"],
    ['longer', '(a)', '(1)', '(1), (1)'],
    ['zero', '(a)', '(0)', '(0)'],
    ['missing', '(a)', '(1)'],
  ]
  for (const [name, columns, one, two] of tables)
    for (const [catalog, rows] of Object.entries({ one, two }))
      if (rows !== undefined)
        await run(server.url, `CREATE TABLE ${catalog}.default.${name} AS SELECT * FROM (VALUES ${rows}) t${columns}`)
  for (const [name, sql] of Object.entries(recorded)) ids[name] = (await run(server.url, sql, headers)).id
}, 240_000)

const linesOf = (file: string): ReplayLine[] =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => replayLineSchema.parse(JSON.parse(line)))

describe('quipu replay', () => {
  it('gives a verdict for each recorded statement, and continues a file of an interrupted run', async () => {
    const [file, report] = [join(server.folder, 'out.jsonl'), join(server.folder, 'report.html')]
    const args = [
      '--against',
      server.url,
      '--catalog-map',
      'one=two',
      '--source',
      'test',
      '--rows',
      '--json',
      file,
      '--report',
      report,
    ]
    const chosen = `query_id IN ('${ids['same']}', '${ids['chosen']}')`
    const first = await quipu(...args, '--where', `${chosen} OR false`)
    expect(first).toMatchObject({ code: 0, stderr: '' })
    // The first run was killed in the middle of a line.
    appendFileSync(file, '{"queryId":"2026')
    const { code, stdout, stderr } = await quipu(...args, '--concurrency', '16')
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    const lines = linesOf(file)
    const names = Object.fromEntries(Object.entries(ids).map(([name, id]) => [id, name]))
    const verdicts = Object.fromEntries(lines.map((line) => [names[line.queryId], line]))
    expect(lines).toHaveLength(Object.keys(recorded).length)
    expect(verdicts).toMatchObject({
      same: { verdict: 'SAME', rows: 1, user: 'ann', sql: recorded['same'], byDigest: true },
      otherOrder: { verdict: 'SAME_OTHER_ORDER', byDigest: true },
      different: {
        verdict: 'DIFFERENT',
        difference: { kind: 'values', names: ['b'] },
        examples: [
          { side: 'here', row: ['2', '<y>'] },
          { side: 'there', row: ['2', '<z>'] },
        ],
      },
      more: { verdict: 'DIFFERENT', difference: { kind: 'rows', here: 1, there: 2 } },
      tie: { verdict: 'NON_DETERMINISTIC', chance: { kind: 'tie' } },
      chosen: { verdict: 'NON_DETERMINISTIC', chance: { kind: 'limit' } },
      chance: { verdict: 'NON_DETERMINISTIC', chance: { kind: 'functions', names: ['random'] } },
      failedThere: { verdict: 'FAILED_THERE', there: { name: 'TABLE_NOT_FOUND' } },
      failedBoth: { verdict: 'FAILED_BOTH', here: { name: 'DIVISION_BY_ZERO' }, there: { name: 'DIVISION_BY_ZERO' } },
      prepared: { verdict: 'SAME', rows: 2 },
      wrong: { verdict: 'SKIPPED', reason: 'notAnalysed' },
      write: { verdict: 'SKIPPED', reason: 'write' },
      shown: { verdict: 'SKIPPED', reason: 'notAQuery' },
    })
    expect(stdout).toMatch(/^SAME +2$/m)
    expect(stdout).toMatch(/^NON_DETERMINISTIC +3$/m)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const page = readFileSync(report, 'utf8')
    expect(page).toContain('<h1>3 of 13 statements are different</h1>')
    expect(page).toContain('<tr class="there"><th>only there</th><td>2</td><td>&lt;z&gt;</td></tr>')
    expect(statSync(report).mode & 0o777).toBe(0o600)
    const feed = await openFeed(`${server.url}/v1/events?after=beginning&type=ReplayStarted,ReplayEnded`)
    await feed.received(4)
    feed.drop()
    const [begun, , again, ended] = feed.cloudEvents().map(({ data }) => data)
    expect(begun).toMatchObject({ statements: 2, filter: { source: 'test', where: `${chosen} OR false` } })
    expect(again).toMatchObject({ statements: 11, baseline: server.url, against: server.url, mode: 'run' })
    expect(ended).toMatchObject({
      outcome: 'completed',
      verdicts: { SAME: 2, NON_DETERMINISTIC: 3, SKIPPED: 3, DIFFERENT: 2 },
    })
    // Nothing is left to do; the command prints the same verdicts again.
    expect(await quipu(...args)).toMatchObject({ code: 1, stdout })
    expect(linesOf(file)).toEqual(lines)
  })

  it('the record of a write contains the lineage of its columns', async () => {
    const { text } = await raw(`${server.url}/v1/query/${ids['write']}/events`, { headers })
    const events = JSON.parse(text) as { type: string; data: { lineage?: unknown } }[]
    const same = (column: string) => `one.default.same.${column}`
    expect(events.find(({ type }) => type.startsWith('quipu.query.planned'))?.data.lineage).toEqual({
      columns: [
        { position: 0, name: 'a', sources: [{ source: same('a'), direct: 'IDENTITY', indirect: [] }] },
        { position: 1, name: 'b', sources: [{ source: same('b'), direct: 'TRANSFORMATION', indirect: [] }] },
        { position: 2, name: 'd', sources: [{ source: same('d'), direct: 'IDENTITY', indirect: [] }] },
      ],
      rows: [{ source: same('a'), indirect: ['FILTER'] }],
    })
  })

  it('replays only statements of a user, a time or a source, and a sample of them', async () => {
    const none = await quipu('--against', server.url, '--of-user', 'nobody')
    expect(none).toMatchObject({ code: 0, stdout: 'No statement was replayed\n' })
    const later = await quipu('--against', server.url, '--since', '2100-01-01T00:00:00Z')
    expect(later).toMatchObject({ code: 0, stdout: 'No statement was replayed\n' })
    const some = await quipu('--against', server.url, '--source', 'test', '--sample', '40%', '--speed', '1000x')
    const sampled = [...some.stdout.matchAll(/ (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0)
    expect(sampled).toBeLessThan(Object.keys(recorded).length)
  })

  it('replays representatives of each fingerprint with --sample fingerprints, and prints what they cover', async () => {
    const file = join(server.folder, 'sampled.jsonl')
    const args = ['--against', server.url, '--catalog-map', 'one=two', '--source', 'test', '--json', file]
    const { stdout, stderr } = await quipu(...args, '--sample', 'fingerprints:1', '--most', '5')
    expect(stderr).toBe('')
    expect(stdout).toMatch(/^5 fingerprints of 9 cover [\d.]+ % of CPU with 5 statements$/m)
    const reads = ['same', 'failedThere', 'otherOrder', 'different', 'more', 'tie', 'chosen', 'chance', 'prepared']
    for (const { queryId, verdict } of linesOf(file)) {
      expect(reads.map((name) => ids[name])).toContain(queryId)
      expect(verdict).not.toBe('SKIPPED')
    }
    expect(linesOf(file)).toHaveLength(5)
  })

  it('times statements with --repeat, and compares plans with --plan without running statements', async () => {
    const timed = join(server.folder, 'timed.jsonl')
    const args = ['--against', server.url, '--source', 'test', '--json']
    const repeated = await quipu(...args, timed, '--repeat', '3', '--query', ids['same']!)
    expect(repeated).toMatchObject({ code: 0 })
    // A single recorded run says nothing about speed.
    expect(linesOf(timed)).toEqual([expect.objectContaining({ verdict: 'SAME', hereMs: expect.any(Number) as number })])
    const planned = join(server.folder, 'plans.jsonl')
    expect(await quipu(...args, planned, '--plan')).toMatchObject({ code: 0 })
    const lines = linesOf(planned).filter(({ queryId }) => Object.values(ids).includes(queryId))
    const verdictOf = (name: string) => lines.find(({ queryId }) => queryId === ids[name])
    for (const name of ['same', 'tie', 'chance', 'failedBoth', 'prepared'])
      expect([name, verdictOf(name)]).toEqual([name, expect.objectContaining({ verdict: 'SAME' })])
    expect(verdictOf('write')).toMatchObject({ verdict: 'SKIPPED', reason: 'write' })
  })

  it.each([
    [[], '--against is missing'],
    [['--against', 'http://127.0.0.1:9', '--speed', 'fast'], '--speed must be max or a speed such as 1x'],
    [['--against', 'http://127.0.0.1:9', '--sample', '5'], '--sample must be a percentage such as 5%'],
    [['--against', 'http://127.0.0.1:9', '--since', 'yesterday'], '--since must be a time'],
    [['--against', 'http://127.0.0.1:9', '--most', '5'], '--most needs --sample fingerprints'],
    [['--against', 'http://127.0.0.1:9', '--session', 'x'], '--session x: must be name=value'],
  ])('refuses the arguments %s', async (args, message) => {
    const { code, stderr } = await quipu(...args)
    expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining(message) as string })
  })

  it('prints why it could not run, and leaves a file alone that is not a replay file', async () => {
    const away = await quipu('--against', 'http://127.0.0.1:9', '--query', ids['same']!)
    expect(away).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Cannot reach http://127.0.0.1:9') as string,
    })
    const file = join(server.folder, 'notes.txt')
    writeFileSync(file, 'dear diary')
    const strange = await quipu('--against', server.url, '--json', file)
    expect(strange).toMatchObject({
      code: 2,
      stderr: `quipu: ${file}:1 is not a line of a replay: name another file\n`,
    })
    expect(readFileSync(file, 'utf8')).toBe('dear diary')
  })
})
