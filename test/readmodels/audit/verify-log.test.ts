import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Finding } from '../../../src/events/audit/finding.ts'
import { PostgresRecordStore } from '../../../src/events/postgres/postgres-record-store.ts'
import { createPostgresEventLog } from '../../../src/events/postgres/postgres-event-log.ts'
import { createSystemJournal } from '../../../src/coordinator/system/system-journal.ts'
import { verifyLog, type AuditSummary } from '../../../src/readmodels/audit/verify-log.ts'
import { rebuildReadModels } from '../../../src/readmodels/rebuild.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { appendLives, queryLife, testQueryId, toLogEvents } from '../../support/query-life.ts'
import { openReadModelBed, type ReadModelBed } from '../../support/read-models.ts'

let bed: ReadModelBed
const streams = [0, 1, 2, 3].map(testQueryId)
const tampered = streams[2]!

beforeEach(async () => {
  bed = await openReadModelBed()
  await appendLives(
    bed.log,
    streams.map((queryId, index) => ({ queryId, events: queryLife(queryId, index === 3 ? { end: 'failed' } : {}) })),
  )
})
afterEach(() => bed.close())

async function audit(readModels = false): Promise<{ summary: AuditSummary; findings: Finding[] }> {
  const store = new PostgresRecordStore(bed.config)
  const findings: Finding[] = []
  try {
    const { partitions } = await store.open()
    const summary = await verifyLog({
      store,
      partitions,
      database: bed.config,
      onFinding: (finding) => findings.push(finding),
      ...(readModels && { compareWith: bed.log }),
    })
    return { summary, findings }
  } finally {
    await store.close()
  }
}

async function positionOf(stream: string, sequence: number): Promise<number> {
  const [row] = await bed.query<{ position: string }>(
    'select position from quipu_log.events where stream = $1 and sequence = $2',
    [stream, sequence],
  )
  return Number(row!.position)
}

async function project(): Promise<void> {
  const runner = await bed.startRunner()
  expect(await runner.barrier(60_000)).toBe(true)
  await runner.stop()
}

describe('An audit of an unaltered log', () => {
  it('finds nothing, with the read models and after a rebuild', async () => {
    await project()
    const { summary, findings } = await audit(true)
    expect(findings).toEqual([])
    expect(summary).toMatchObject({ findings: 0, queries: 4, open: 0, tables: 10 })
    await rebuildReadModels({ log: bed.log, database: bed.config, clock: systemClock })
    expect((await audit(true)).findings).toEqual([])
    expect(await bed.query(`select nspname from pg_namespace where nspname like 'm\\_%'`)).toEqual([])
  })

  it('accepts events of several epochs and appends with many events', async () => {
    const next = createPostgresEventLog(bed.config)
    await next.open()
    await next.claim({ address: 'http://127.0.0.1:8081', version: 'test' })
    for (const number of [10, 11])
      await next.append(testQueryId(number), 0, toLogEvents(queryLife(testQueryId(number))))
    await next.close()
    const { summary, findings } = await audit()
    expect(findings).toEqual([])
    expect(summary.queries).toBe(6)
  })

  it('accepts forgotten data that an event records, and reports other forgotten data', async () => {
    const forget = (sequence: number) =>
      bed.query(
        `update quipu_log.events set data = (data::jsonb || '{"data":"","forgotten":true}')::text
         where stream = $1 and sequence = $2`,
        [tampered, sequence],
      )
    await forget(1)
    await forget(2)
    const data = { stream: tampered, sequences: [1], by: 'alice' }
    await bed.log.append('system', 1, [{ type: 'DataForgotten', v: 1, time: '2026-03-02T00:00:00.000Z', data }])
    expect((await audit()).findings).toMatchObject([{ kind: 'forgotten', stream: tampered, sequence: 2 }])
  })
})

describe('An audit of an altered log', () => {
  const alter = (sequence: number, set: string) =>
    bed.query(`update quipu_log.events set ${set} where stream = $1 and sequence = $2`, [tampered, sequence])

  it('finds altered data', async () => {
    await alter(1, `data = replace(data, 'alice', 'mallory')`)
    const position = `0/${await positionOf(tampered, 1)}`
    expect((await audit()).findings).toEqual([
      expect.objectContaining({ kind: 'data', stream: tampered, sequence: 1, position }),
    ])
  })

  it.each([
    ['the type', 3, `data = replace(data, '"TaskCreated"', '"TaskFailed"')`],
    ['the time', 3, `data = replace(data, '"time":"2026-', '"time":"2025-')`],
    ['the sequence in the row', 3, `sequence = 33`],
    ['the stream in the row', 3, `stream = 'another'`],
  ])('finds an alteration of %s', async (_what, sequence, set) => {
    const position = `0/${await positionOf(tampered, sequence)}`
    await alter(sequence, set)
    const { findings } = await audit()
    expect(findings[0]).toMatchObject({ kind: 'header', position })
  })

  it('finds an altered epoch, number or `seen` in the header of a record', async () => {
    for (const set of ['epoch = epoch + 7', 'number = number + 3', `seen = replace(seen, '|', '|1')`]) {
      const [before] = await bed.query<Record<string, string>>(
        'select epoch, number, seen from quipu_log.events where stream = $1 and sequence = 4',
        [tampered],
      )
      await alter(4, set)
      const { findings } = await audit()
      expect(findings.length, set).toBeGreaterThan(0)
      expect(findings[0]!.position, set).toBe(`0/${await positionOf(tampered, 4)}`)
      const { epoch, number, seen } = before!
      await alter(4, `epoch = ${epoch}, number = ${number}, seen = '${seen}'`)
      expect((await audit()).findings, set).toEqual([])
    }
  })

  it('finds a removed event and a removed query', async () => {
    // An event removed at the very end of a log would leave no gap.
    await appendLives(bed.log, [{ queryId: testQueryId(30), events: queryLife(testQueryId(30)) }])
    const position = await positionOf(tampered, 4)
    await bed.query('delete from quipu_log.events where position = $1', [position])
    expect((await audit()).findings).toEqual([
      expect.objectContaining({ kind: 'missing-record', position: `0/${position}` }),
      expect.objectContaining({ kind: 'sequence', stream: tampered, sequence: 5 }),
    ])
    const rows = await bed.query<{ position: string }>(
      'delete from quipu_log.events where stream = $1 returning position',
      [tampered],
    )
    const gone = new Set([position, ...rows.map((row) => Number(row.position))])
    const runs = [...gone].filter((one) => !gone.has(one - 1)).sort((a, b) => a - b)
    expect((await audit()).findings).toEqual(
      runs.map((start) => expect.objectContaining({ kind: 'missing-record', position: `0/${start}` })),
    )
  })

  it('finds a removed event whose gap was closed', async () => {
    const position = await positionOf(tampered, 4)
    await bed.query('delete from quipu_log.events where position = $1', [position])
    await bed.query('update quipu_log.events set position = position - 1 + 1000000 where position > $1', [position])
    await bed.query('update quipu_log.events set position = position - 1000000 where position >= 1000000')
    const { findings } = await audit()
    // The next record of the same append has a wrong number; a record of another append saw a later position.
    expect(findings[0]!.kind).toMatch(/^(history|not-counted)$/)
    expect(findings[0]!.position).toBe(`0/${position}`)
    expect(findings).toContainEqual(expect.objectContaining({ kind: 'sequence', stream: tampered, sequence: 5 }))
  })

  it('finds removed last events by the checkpoint of the projection', async () => {
    await project()
    await bed.query('delete from quipu_log.events where position = (select max(position) from quipu_log.events)')
    expect((await audit()).findings[0]).toMatchObject({ kind: 'missing-record' })
  })

  it('finds an inserted event', async () => {
    const end = Number((await bed.log.tip()).at[0]!.offset)
    await bed.query(
      `insert into quipu_log.events select $2, kind, epoch, writer, number + 1000, stream, sequence + 7, time, seen, data
       from quipu_log.events where stream = $1 and sequence = 1`,
      [tampered, end],
    )
    expect((await audit()).findings[0]).toMatchObject({ kind: 'not-counted', stream: tampered, position: `0/${end}` })
    // The number that the writer would have given to the event.
    await bed.query(
      `update quipu_log.events set number = (select max(number) + 1 from quipu_log.events
      where position < $1) where position = $1`,
      [end],
    )
    expect((await audit()).findings).toContainEqual(
      expect.objectContaining({ kind: 'sequence', stream: tampered, sequence: 1, position: `0/${end}` }),
    )
  })

  it('finds two exchanged events', async () => {
    const [one, two] = [await positionOf(tampered, 3), await positionOf(tampered, 4)]
    await bed.query('update quipu_log.events set position = $2 where position = $1', [one, 5_000_000])
    await bed.query('update quipu_log.events set position = $2 where position = $1', [two, one])
    await bed.query('update quipu_log.events set position = $2 where position = $1', [5_000_000, two])
    const { findings } = await audit()
    expect(findings).toContainEqual(expect.objectContaining({ stream: tampered, sequence: 4, position: `0/${one}` }))
    expect(findings).toContainEqual(expect.objectContaining({ stream: tampered, sequence: 3, position: `0/${two}` }))
    expect(findings.map((finding) => finding.kind)).toContain('sequence')
  })

  it('finds two events whose stream and data were exchanged without their record headers', async () => {
    const [one, two] = [await positionOf(tampered, 3), await positionOf(streams[1]!, 3)]
    await bed.query(
      `update quipu_log.events e set stream = o.stream, sequence = o.sequence, data = o.data
       from quipu_log.events o where e.position in ($1, $2) and o.position in ($1, $2) and o.position <> e.position`,
      [one, two],
    )
    expect((await audit()).findings).toMatchObject([{ kind: 'history' }])
  })

  it('finds a query without an end after another epoch began, and counts it as open before', async () => {
    const queryId = testQueryId(20)
    await bed.log.append(queryId, 0, toLogEvents(queryLife(queryId, { end: 'open' })))
    const before = await audit()
    expect(before.findings).toEqual([])
    expect(before.summary).toMatchObject({ queries: 5, open: 1 })
    const next = createPostgresEventLog(bed.config)
    await next.open()
    await next.claim({ address: 'http://127.0.0.1:8081', version: 'test' })
    await next.close()
    expect((await audit()).findings).toEqual([
      expect.objectContaining({ kind: 'query-without-end', stream: queryId, sequence: 4 }),
    ])
  })

  it('does not report an open query that a later epoch took over without an event of the query', async () => {
    const [kept, lost] = [testQueryId(20), testQueryId(21)]
    for (const queryId of [kept, lost])
      await bed.log.append(queryId, 0, toLogEvents(queryLife(queryId, { end: 'open' })))
    const next = createPostgresEventLog(bed.config)
    await next.open()
    const epoch = await next.claim({ address: 'http://127.0.0.1:8081', version: 'test' })
    // So many queries that the log compresses the event.
    const queries = [...Array.from({ length: 500 }, (_, number) => testQueryId(100 + number)), kept]
    await createSystemJournal(next, systemClock).record('QueriesTakenOver', { epoch, queries })
    await next.close()
    const { findings, summary } = await audit()
    expect(findings).toEqual([expect.objectContaining({ kind: 'query-without-end', stream: lost, sequence: 4 })])
    expect(summary).toMatchObject({ open: 1 })
  })

  it('finds a query with two ends', async () => {
    const [end] = toLogEvents(queryLife(tampered, { end: 'failed' })).slice(-1)
    await bed.log.append(tampered, 7, [end!])
    expect((await audit()).findings).toEqual([
      expect.objectContaining({ kind: 'query-with-two-ends', stream: tampered, sequence: 8 }),
    ])
  })

  it('finds read models that differ from the log', async () => {
    await project()
    await bed.query(`update queries set user_name = 'mallory' where query_id = $1`, [tampered])
    await bed.query('delete from operators')
    expect((await audit()).findings).toEqual([])
    expect((await audit(true)).findings).toEqual([
      expect.objectContaining({ kind: 'read-model', what: expect.stringMatching(/^operators has 0 rows/) }),
      expect.objectContaining({ kind: 'read-model', what: expect.stringMatching(/^queries has other rows/) }),
    ])
  })
})
