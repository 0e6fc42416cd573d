import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FULL_TESTS } from '../support/full-tests.ts'
import { openErasureBed } from '../support/erasure-bed.ts'
import { eraseInProcess, type Death } from '../support/erasing-process.ts'
import { leaksOfTables } from '../support/leaks.ts'
import { queryLife, testQueryId, toLogEvents } from '../support/query-life.ts'
import { sharedPostgres, type TestDatabase } from '../support/postgres.ts'

const VALUE = 'eva.lund@example.com'
const WORDS = /eva\.lund/g
const minute = '2026-11-27T10:00'

/** A database with its data folder, and an erasure that was requested there. */
interface Filled {
  readonly database: TestDatabase
  readonly root: string
  readonly id: string
}

let filled: Filled
/** The queries with the value. */
const found: string[] = []
/** A query without it, and its events. */
let kept: { readonly id: string; readonly events: readonly unknown[] }
/** The effects of an erasure that is not interrupted, in order. */
let effects: readonly string[]

/**
 * Fills a log and its archive. The archive has two periods: the log no longer has the first one, and still has the second
 * one. Both periods and the rest of the log have a query, a refusal and rows with the value.
 */
async function fill(): Promise<Filled> {
  const bed = await openErasureBed({ keeps: true })
  const { journal, query } = bed
  const refused = () => journal.record('AccessDenied', { user: 'bob', action: 'view', object: VALUE, count: 1, minute })
  const withValue = { sql: `SELECT '${VALUE}'` }
  await refused()
  found.push(await query(0, withValue), await query(1, withValue))
  const keptId = await query(2, { sql: `SELECT 'zerlina'` })
  await bed.archiveRecords()
  await bed.archiveRows()
  await refused()
  found.push(await query(3, withValue))
  const stops = { drop: () => Promise.reject(new Error('the archiver was killed')) }
  await expect(bed.archiveRecords(stops)).rejects.toThrow('the archiver was killed')
  await refused()
  found.push(await query(4, withValue))
  const page = testQueryId(5)
  found.push(page)
  await bed.bed.log.append(page, 0, toLogEvents(queryLife(page)), [{ token: 0, bytes: Buffer.from(`[["${VALUE}"]]`) }])
  await bed.projected()
  const id = await bed.request({ value: VALUE })
  const events = (await bed.events()).filter(({ stream }) => stream === keptId)
  kept = { id: keptId, events }
  await bed.close()
  return { database: bed.bed.database, root: bed.root, id }
}

/** A copy of the filled log that a test may change. */
async function copied(): Promise<Filled> {
  const root = mkdtempSync(join(tmpdir(), 'quipu-killed-'))
  cpSync(filled.root, root, { recursive: true })
  const template = new URL(filled.database.url).pathname.slice(1)
  return { ...filled, root, database: await (await sharedPostgres()).createDatabase(template) }
}

const processOf = ({ database, root, id }: Filled, kill?: Death) =>
  eraseInProcess({ database: database.url, root, id }, kill)

beforeAll(async () => {
  filled = await fill()
  const one = await copied()
  const end = await processOf(one)
  if (end.kind === 'dead') throw new Error('No kill was ordered')
  effects = end.effects
  await mustBeComplete(one)
})
afterAll(async () => {
  await filled?.database.drop()
  if (filled) rmSync(filled.root, { recursive: true, force: true })
})

/** Completes an erasure if it has not ended, and checks what is left of it. */
async function mustBeComplete(data: Filled): Promise<void> {
  const end = await processOf(data)
  expect(end).toMatchObject({ kind: 'done', result: { queries: found.length, records: 3, waiting: [], remains: [] } })
  const bed = await openErasureBed({ filled: data })
  try {
    expect(await bed.erasing.store.open()).toEqual([])
    const events = await bed.events()
    const ofType = (type: string) => events.filter((event) => event.type === type)
    expect(ofType('ErasureStarted')).toHaveLength(1)
    expect(ofType('ErasureEnded')).toHaveLength(1)
    const streams = ofType('DataForgotten').map((event) => (event.data as { stream: string }).stream)
    expect(streams.filter((stream) => stream !== 'system').toSorted()).toEqual(found.toSorted())
    expect(events.filter((event) => JSON.stringify(event.data).match(WORDS))).toEqual([])
    expect(events.filter(({ stream }) => stream === kept.id)).toEqual(kept.events)
    await bed.projected()
    expect(await leaksOfTables(data.database.url, WORDS)).toEqual([])
    expect(bed.filesWith(WORDS)).toEqual([])
    expect(await bed.audit()).toEqual([])
  } finally {
    await bed.close()
  }
}

describe('An erasure after a kill of its process', () => {
  it('is completed after a kill at each of its effects, one process after the other', async () => {
    const data = await copied()
    for (const effect of new Set(effects))
      expect(await processOf(data, { effect, nth: 1 }), `killed at: ${effect}`).toEqual({ kind: 'dead' })
    await mustBeComplete(data)
  })

  const counts = new Map<string, number>()
  it.runIf(FULL_TESTS)('is completed after one kill at any of its effects', { timeout: 3_600_000 }, async () => {
    for (const effect of effects) {
      const nth = (counts.get(effect) ?? 0) + 1
      counts.set(effect, nth)
      const data = await copied()
      await processOf(data, { effect, nth })
      await mustBeComplete(data)
    }
  })
})
