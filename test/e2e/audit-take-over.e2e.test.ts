import { generateKeyPairSync } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createSystemJournal } from '../../src/coordinator/system/system-journal.ts'
import { vouchFor } from '../../src/events/audit/anchor-keys.ts'
import { createPostgresEventLog } from '../../src/events/postgres/postgres-event-log.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { spawnQuipu, waitUntil } from '../support/quipu-process.ts'
import {
  CLUSTER_SECRET,
  rolesOf,
  startStandbyCluster,
  writes,
  type ClusterNode,
  type StandbyCluster,
} from '../support/standby-cluster.ts'
import { run } from '../support/statement-client.ts'

let cluster: StandbyCluster
beforeAll(async () => {
  cluster = await startStandbyCluster({ QUIPU_ANCHOR_MS: '300ms' })
}, 240_000)
afterAll(() => cluster.stop())

async function count(text: string): Promise<number> {
  const client = new pg.Client(cluster.databaseUrl)
  await client.connect()
  try {
    return (await client.query<{ count: number }>(text)).rows[0]!.count
  } finally {
    await client.end()
  }
}

const verify = ({ dataDir }: Pick<ClusterNode, 'dataDir'>, ...args: string[]) =>
  spawnQuipu(['audit', 'verify', '--data-dir', dataDir, '--database-url', cluster.databaseUrl, ...args], {
    // The writer records the audit for a caller with the key.
    env: { QUIPU_SHARED_SECRET: CLUSTER_SECRET },
  }).exit

it(
  'audit verify finds nothing at either coordinator after a take-over, and reports an unknown key',
  { timeout: 240_000 },
  async () => {
    const { writer, other } = await rolesOf(cluster)
    await run(writer.url, 'SELECT 1')
    await waitUntil('the two keys vouch for each other', async () => {
      const pairs = `select count(*)::int as count from m.audit_log where kind = 'AnchorKeyVouched' and details->>'key' <> details->>'signedBy'`
      return (await count(pairs)) === 2
    })
    await writer.kill()
    await waitUntil('the other one writes', () => writes(other), 120_000)
    await run(other.url, 'SELECT 2')
    await waitUntil('it anchors with its own key', async () => {
      const keys = `select count(distinct details->>'key')::int as count from m.audit_log where kind = 'LogAnchored'`
      return (await count(keys)) === 2
    })
    for (const node of [writer, other]) {
      const verified = await verify(node)
      expect(verified.stdout).toMatch(/^Nothing found in /)
      expect(verified).toMatchObject({ code: 0, stderr: '' })
    }
    const anchors = [writer, other].flatMap(({ dataDir }) => ['--anchors', join(dataDir, 'anchors.jsonl')])
    const keys = [writer, other].flatMap(({ dataDir }) => ['--public-key', join(dataDir, 'anchor-key.pem.pub')])
    expect(await verify({ dataDir: join(writer.dataDir, 'elsewhere') }, ...anchors, ...keys)).toMatchObject({ code: 0 })

    other.process.signal('SIGTERM')
    await other.process.exit
    const log = createPostgresEventLog({ connectionString: cluster.databaseUrl })
    await log.open()
    await log.claim({ address: '', version: 'none' })
    const { logId } = await log.tip()
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const record = vouchFor(publicKey, logId, { private: privateKey, public: publicKey })
    await createSystemJournal(log, systemClock).record('AnchorKeyVouched', record)
    await log.close()
    const forged = await verify(writer)
    expect(forged.stdout).toMatch(new RegExp(`^unknown-key .* Key ${record.key} is unknown`))
    expect(forged.code).toBe(1)
  },
)
