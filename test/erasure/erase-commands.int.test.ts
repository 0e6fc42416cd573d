import { rmSync } from 'node:fs'
import { userInfo } from 'node:os'
import pg from 'pg'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { eraseCommand } from '../../src/cli/erase-command.ts'
import { LOCK_ARCHIVE } from '../../src/events/postgres/statements.ts'
import { ExitError } from '../../src/shared/engine-error.ts'
import { openErasureBed, type ErasureBed } from '../support/erasure-bed.ts'
import { leaksOfTables } from '../support/leaks.ts'
import { waitUntil } from '../support/quipu-process.ts'

const VALUES = ['eva.lund@example.com', 'olga.berg@example.com'] as const
const WORDS = /eva\.lund|olga\.berg/g
const minute = '2026-11-27T10:00'

let filled: ErasureBed

/** A log that no coordinator writes. */
beforeEach(async () => {
  filled = await openErasureBed({ keeps: true })
  const sql = `SELECT '${VALUES.join("', '")}'`
  await filled.query(0, { sql })
  await filled.query(1, { sql: `SELECT '${VALUES[1]}'` })
  for (const object of [...VALUES, sql])
    await filled.journal.record('AccessDenied', {
      user: 'bob',
      action: 'view',
      object,
      count: 1,
      minute,
    })
  await filled.archiveRecords()
  await handOver(filled)
})
afterEach(async () => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  await filled.bed.database.drop()
  rmSync(filled.root, { recursive: true, force: true })
})

const reopened = () =>
  openErasureBed({
    filled: { database: filled.bed.database, root: filled.root },
    keeps: true,
  })

/** Ends the epoch of a bed, as a coordinator does that stops, and closes it. */
async function handOver(bed: ErasureBed): Promise<void> {
  const { epoch, writer } = (await bed.events('EpochStarted')).at(-1)!.data as {
    epoch: number
    writer: string
  }
  await bed.journal.record('EpochEnded', { epoch, writer, reason: 'drained' })
  await bed.projected()
  await bed.close()
}

async function erase(value: string): Promise<{ readonly code: number; readonly message: string }> {
  vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  // The variables of the test run are not settings.
  for (const name in process.env) if (name.startsWith('QUIPU_TEST_')) vi.stubEnv(name, undefined)
  const folder = ['--data-dir', filled.root, '--archive-folder', `${filled.root}/archive`]
  const settings = [...folder, '--database-url', filled.bed.database.url, '--run-as', userInfo().username]
  try {
    return {
      code: await eraseCommand(['--value', value, '--yes', ...settings]),
      message: '',
    }
  } catch (error) {
    if (error instanceof ExitError) return { code: error.exitCode, message: error.message }
    throw error
  }
}

it('the second of two `quipu erase` at once without a coordinator is refused, and completes its erasure when it is repeated', async () => {
  const results = await Promise.all(VALUES.map((value) => erase(value)))
  const refused = {
    code: 64,
    message: 'Another quipu erase runs: wait until it has ended',
  }
  expect(results).toEqual(expect.arrayContaining([{ code: 0, message: '' }, refused]))
  const again = VALUES[results.findIndex(({ code }) => code === 64)]!
  expect(await erase(again)).toEqual({ code: 0, message: '' })
  const bed = await reopened()
  expect(await leaksOfTables(bed.bed.database.url, WORDS)).toEqual([])
  expect(bed.filesWith(WORDS)).toEqual([])
  expect(await bed.audit()).toEqual([])
  expect(await bed.erasing.store.open()).toEqual([])
  await bed.close()
})

it('`quipu erase` says who continues when another process claims its log, and the next command completes both erasures', async () => {
  const client = new pg.Client({ connectionString: filled.bed.database.url })
  await client.connect()
  const { rows } = await client.query<{ log_id: string }>('select log_id from quipu_log.log_start')
  // The command waits for the archive, and meanwhile another process claims the log.
  await client.query(LOCK_ARCHIVE, [rows[0]!.log_id])
  const first = erase(VALUES[0])
  await waitUntil('the erasure forgets a query', async () => {
    const { rowCount } = await client.query(`select from quipu_log.erasures where working <> '[]'`)
    return rowCount === 1
  })
  const other = await reopened()
  await client.end()
  expect(await first).toEqual({
    code: 69,
    message: expect.stringContaining('or the next quipu erase, continues erasure'),
  })
  await handOver(other)
  expect(await erase(VALUES[1])).toEqual({ code: 0, message: '' })
  const end = await reopened()
  expect(await leaksOfTables(end.bed.database.url, WORDS)).toEqual([])
  expect(end.filesWith(WORDS)).toEqual([])
  expect(await end.erasing.store.open()).toEqual([])
  await end.close()
})
