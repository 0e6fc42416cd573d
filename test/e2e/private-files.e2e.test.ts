import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { postgresUser } from '../../src/supervisor/posix-user.ts'
import { spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { run } from '../support/statement-client.ts'

const NOBODY = { uid: 65534, gid: 65534 }
const asRoot = process.getuid?.() === 0
let folder: ReturnType<typeof temporaryFolder>
let quipu: QuipuProcess | undefined

async function stop(): Promise<void> {
  const running = quipu
  quipu = undefined
  running?.signal('SIGTERM')
  await running?.exit
}

afterEach(async () => {
  await stop()
  await folder.remove()
}, 240_000)

/** Names below a folder with their modes, and the folder itself as ''. Pages may be removed meanwhile. */
function modes(path: string, name = ''): { readonly name: string; readonly mode: number }[] {
  const stats = lstatSync(join(path, name), { throwIfNoEntry: false })
  if (stats === undefined || stats.isSymbolicLink()) return []
  const own = { name, mode: stats.mode & 0o777 }
  if (!stats.isDirectory()) return [own]
  const entries = existsSync(join(path, name)) ? readdirSync(join(path, name)) : []
  return [own, ...entries.flatMap((entry) => modes(path, join(name, entry)))]
}

/** Returns the paths that users other than the owner can access. */
function open(path: string): string[] {
  return modes(path).flatMap(({ name, mode }) => ((mode & 0o077) === 0 ? [] : [`${mode.toString(8)} ${name || '.'}`]))
}

describe.each([
  ['as root', undefined],
  ['as a user', NOBODY],
] as const)('A data folder after all kinds of work, started %s', { timeout: 240_000 }, (_how, user) => {
  it.skipIf(user !== undefined && !asRoot)('is accessible to its owner only', async () => {
    folder = temporaryFolder()
    const data = join(folder.path, 'data')
    const catalogs = join(folder.path, 'catalogs')
    // A start as root becomes this user.
    const owner = user ?? postgresUser()
    // A lake belongs to its operator: users that can read its folder can read new files in it.
    const lakes = { shared: 0o755, private: 0o700 }
    mkdirSync(catalogs)
    for (const [name, mode] of Object.entries(lakes)) {
      mkdirSync(join(folder.path, name, 's'), { recursive: true })
      for (const path of [join(folder.path, name, 's'), join(folder.path, name)]) {
        chmodSync(path, mode)
        if (owner) chownSync(path, owner.uid, owner.gid)
      }
      writeFileSync(
        join(catalogs, `${name}.json`),
        JSON.stringify({ connector: 'lake', location: join(folder.path, name) }),
      )
    }
    for (const name of ['tpch', 'memory'])
      writeFileSync(join(catalogs, `${name}.json`), JSON.stringify({ connector: name }))
    if (user) {
      mkdirSync(data)
      chownSync(data, user.uid, user.gid)
      chmodSync(data, 0o755)
      // An earlier version left the folder with this mode.
      mkdirSync(join(data, 'worker-1'))
      chownSync(join(data, 'worker-1'), user.uid, user.gid)
      chmodSync(join(data, 'worker-1'), 0o755)
    }
    const env = { QUIPU_LOG_LEVEL: 'error', QUIPU_ANCHOR_MS: '1s' }
    const args = ['start', '--port', '0', '--data-dir', data, '--catalog-dir', catalogs]
    quipu = spawnQuipu(args, { env, ...(user && { user }) })
    const url = await quipu.url
    const statements = [
      'CREATE TABLE memory.default.a AS SELECT * FROM tpch.tiny.orders',
      'INSERT INTO memory.default.a SELECT * FROM tpch.tiny.orders',
      'CREATE VIEW memory.default.v AS SELECT orderkey FROM memory.default.a',
      'CREATE SCHEMA memory.more',
      'CREATE TABLE shared.s.t AS SELECT * FROM tpch.tiny.nation',
      'CREATE TABLE private.s.t AS SELECT * FROM tpch.tiny.nation',
      'SELECT * FROM tpch.tiny.lineitem',
      'SELECT count(*) FROM memory.default.a',
    ]
    for (const sql of statements) expect((await run(url, sql)).error, sql).toBeUndefined()
    await waitUntil('an anchor is there', () => existsSync(join(data, 'anchors.jsonl')))

    const made = modes(data).map(({ name }) => name)
    for (const part of [/^anchor-key\.pem$/, /^tables\/.*\.parquet$/, /\.json$/, /^worker-1\/.*page/, /fifo-0$/])
      expect(made.filter((name) => part.test(name)).length, String(part)).toBeGreaterThan(0)
    expect(open(data)).toEqual([])
    for (const [name, mode] of Object.entries(lakes)) {
      const table = join(folder.path, name, 's', 't')
      const written = modes(table)
      expect(written.length).toBeGreaterThan(5)
      for (const { name: file, mode: its } of written)
        expect(its, file).toBe(statSync(join(table, file)).isDirectory() ? mode : mode & 0o666)
    }
    await stop()
    expect(open(data)).toEqual([])
  })
})
