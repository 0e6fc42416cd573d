import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createBlockedAppends, type BlockedAppends } from '../support/blocked-appends.ts'
import { runOnEither } from '../support/failover-client.ts'
import { temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { follows, rolesOf, startStandbyCluster, writes, type StandbyCluster } from '../support/standby-cluster.ts'
import { run } from '../support/statement-client.ts'
import { FULL_TESTS } from '../support/full-tests.ts'

/*
 * A coordinator is stopped in the middle of the commit of a write. Another one takes the write over and finishes it.
 * Then the first one wakes up and continues.
 */

let tables: ReturnType<typeof temporaryFolder>
let cluster: StandbyCluster
let appends: BlockedAppends

beforeAll(async () => {
  tables = temporaryFolder()
  cluster = await startStandbyCluster({
    // A stopped coordinator stays stopped until the test wakes it.
    QUIPU_COORDINATOR_DEAD_MS: '300s',
    QUIPU_TABLES_DIR: join(tables.path, 'tables'),
  })
  appends = await createBlockedAppends(cluster.databaseUrl)
}, 240_000)
afterAll(async () => {
  await appends.close()
  await cluster.stop()
  await tables.remove()
}, 240_000)

const INSERT = 'INSERT INTO memory.default.t SELECT nationkey FROM nation'
const COUNTS = 'SELECT count(*), count(DISTINCT n) FROM memory.default.t'

const cases = [
  // The decision becomes valid while its coordinator is stopped, which then wakes up and tries to commit it.
  { sleeps: 'after WritePrepared', stop: 'hold', at: 'WritePrepared', write: INSERT, between: true },
  // The table has its new version, but the log does not have the event yet.
  { sleeps: 'before WriteCommitted', stop: 'block', at: 'WriteCommitted', write: INSERT, between: true },
  {
    sleeps: 'after WritePrepared',
    stop: 'hold',
    at: 'WritePrepared',
    write: 'CREATE TABLE memory.default.t AS SELECT nationkey AS n FROM nation',
    between: false,
  },
] as const

it.each(FULL_TESTS ? cases : cases.slice(0, 2))(
  '$write takes effect once if its coordinator is stopped $sleeps (with another INSERT: $between)',
  { timeout: 300_000 },
  async ({ stop, at, write, between }) => {
    const { writer, other } = await rolesOf(cluster)
    const must = async (base: string, sql: string): Promise<unknown> => {
      const { rows, error } = await run(base, sql)
      expect(error, sql).toBeUndefined()
      return rows
    }
    if (write === INSERT) await must(writer.url, 'CREATE TABLE memory.default.t (n bigint)')
    await appends[stop](at)
    const writing = runOnEither([writer.url, other.url], write)
    writing.catch(() => {})
    await appends.reached()
    const asleep = writer.coordinator()
    process.kill(asleep, 'SIGSTOP')
    await appends.letThrough()
    await waitUntil('the other one writes', () => writes(other), 120_000)
    expect(await writing).toMatchObject({ rows: [[25]], error: undefined })
    if (between) await must(other.url, 'INSERT INTO memory.default.t VALUES 100')
    const right = between ? [[26, 26]] : [[25, 25]]
    expect(await must(other.url, COUNTS)).toEqual(right)
    process.kill(asleep, 'SIGCONT')
    await waitUntil('the first one follows', () => follows(writer), 120_000)
    for (const { url } of [other, writer]) expect(await must(url, COUNTS)).toEqual(right)
    await must(other.url, 'DROP TABLE memory.default.t')
  },
)
