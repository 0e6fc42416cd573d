import { spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../src/supervisor/embedded-postgres.ts'
import { postgresUser } from '../../src/supervisor/posix-user.ts'
import { isAlive, temporaryFolder } from '../support/quipu-process.ts'

let folder: ReturnType<typeof temporaryFolder>
beforeAll(() => void (folder = temporaryFolder()))
afterAll(() => folder.remove())

async function ask(postgres: EmbeddedPostgres, sql: string): Promise<unknown[][]> {
  const client = new Client({ connectionString: postgres.connectionString })
  await client.connect()
  try {
    return (await client.query({ text: sql, rowMode: 'array' })).rows as unknown[][]
  } finally {
    await client.end()
  }
}

describe('The embedded Postgres', () => {
  it('keeps committed rows over a stop and a kill', { timeout: 240_000 }, async () => {
    const dataDir = join(folder.path, 'kept')
    const first = await startEmbeddedPostgres({ dataDir })
    expect(first.adopted).toBe(false)
    await ask(first, 'create table t (n int)')
    await ask(first, 'insert into t values (1)')
    await first.stop()
    expect(isAlive(first.pid)).toBe(false)

    const second = await startEmbeddedPostgres({ dataDir })
    expect(second.connectionString).toBe(first.connectionString)
    await ask(second, 'insert into t values (2)')
    process.kill(second.pid, 'SIGKILL')
    await second.exited

    const third = await startEmbeddedPostgres({ dataDir })
    expect(await ask(third, 'select n from t order by n')).toEqual([[1], [2]])
    await third.stop()
  })

  it('listens only on its socket, with UTF-8, UTC and synchronous commits', { timeout: 240_000 }, async () => {
    const postgres = await startEmbeddedPostgres({
      dataDir: join(folder.path, 'settings'),
      settings: { work_mem: '8MB' },
    })
    const names = ['listen_addresses', 'server_encoding', 'TimeZone', 'fsync', 'synchronous_commit', 'work_mem']
    const values = await ask(postgres, `select ${names.map((name) => `current_setting('${name}')`).join(', ')}`)
    expect(values).toEqual([['', 'UTF8', 'UTC', 'on', 'on', '8MB']])
    await postgres.stop()
    await postgres.stop()
  })

  it('adopts a running server, and replaces one that does not answer', { timeout: 240_000 }, async () => {
    const dataDir = join(folder.path, 'adopted')
    const first = await startEmbeddedPostgres({ dataDir })
    const second = await startEmbeddedPostgres({ dataDir })
    expect({ adopted: second.adopted, pid: second.pid }).toEqual({ adopted: true, pid: first.pid })

    process.kill(first.pid, 'SIGSTOP')
    const third = await startEmbeddedPostgres({ dataDir })
    expect(third.adopted).toBe(false)
    expect(isAlive(first.pid)).toBe(false)
    await Promise.all([first.exited, second.exited])
    await third.stop()
  })

  it('starts although another process has the id of the crashed server', { timeout: 240_000 }, async () => {
    const dataDir = join(folder.path, 'number')
    const first = await startEmbeddedPostgres({ dataDir })
    const note = readFileSync(join(first.clusterDir, 'postmaster.pid'), 'utf8')
    await first.stop()
    // Postgres alone would refuse, because the process runs as the same user.
    const user = postgresUser()
    const other = spawn('sleep', ['60'], user ? { uid: user.uid, gid: user.gid } : {})
    writeFileSync(join(first.clusterDir, 'postmaster.pid'), note.replace(/^\d+/, String(other.pid)))
    const second = await startEmbeddedPostgres({ dataDir })
    expect(await ask(second, 'select 1')).toEqual([[1]])
    expect(isAlive(other.pid!)).toBe(true)
    other.kill()
    await second.stop()
  })

  it('makes the cluster again if the first start was cut short', { timeout: 240_000 }, async () => {
    const dataDir = join(folder.path, 'cut')
    mkdirSync(join(dataDir, 'postgres.new', 'base'), { recursive: true })
    const postgres = await startEmbeddedPostgres({ dataDir })
    expect(existsSync(join(dataDir, 'postgres.new'))).toBe(false)
    await postgres.stop()
  })

  it('moves the socket to another folder if its path would be too long', { timeout: 240_000 }, async () => {
    const postgres = await startEmbeddedPostgres({ dataDir: join(folder.path, 'x'.repeat(100)) })
    expect(postgres.socketDir.length).toBeLessThan(90)
    expect(await ask(postgres, 'select 1')).toEqual([[1]])
    await postgres.stop()
    rmSync(postgres.socketDir, { recursive: true })
  })

  it.runIf(process.getuid?.() === 0)(
    'uses /var/lib/quipu if its user cannot enter the data folder, and prints the path',
    { timeout: 240_000 },
    async () => {
      const closed = join(folder.path, 'closed')
      mkdirSync(closed)
      chmodSync(closed, 0o700)
      const dataDir = join(closed, 'data')
      const reported: string[] = []
      const first = await startEmbeddedPostgres({ dataDir, print: (line) => reported.push(line) })
      expect(reported).toHaveLength(1)
      expect(reported[0]).toContain(dirname(first.clusterDir))
      expect(first.clusterDir).toMatch(/^\/var\/lib\/quipu\/[0-9a-f]+\/postgres$/)
      expect(readlinkSync(join(dataDir, 'postgres'))).toBe(first.clusterDir)
      await first.stop()
      const second = await startEmbeddedPostgres({ dataDir })
      expect(second.clusterDir).toBe(first.clusterDir)
      await second.stop()
      rmSync(dirname(first.clusterDir), { recursive: true })
    },
  )

  it.runIf(process.getuid?.() === 0)('refuses a link that its own user could have made', async () => {
    const dataDir = join(folder.path, 'linked')
    const elsewhere = join(folder.path, 'elsewhere')
    for (const path of [dataDir, elsewhere, join(elsewhere, 'run')]) mkdirSync(path)
    symlinkSync(join(elsewhere, 'postgres'), join(dataDir, 'postgres'))
    lchownSync(join(dataDir, 'postgres'), 65_534, 65_534)
    await expect(startEmbeddedPostgres({ dataDir })).rejects.toThrow(/is a link that does not belong to root/)
    expect(statSync(join(elsewhere, 'run')).uid).toBe(0)
  })
})
