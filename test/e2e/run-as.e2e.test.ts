import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { postgresUser } from '../../src/supervisor/posix-user.ts'
import { identify } from '../../src/supervisor/process-identity.ts'
import { commandOf, familyOf, usersOf } from '../support/process-users.ts'
import { programsOfEachTest, rowsOf } from '../support/programs-of-each-test.ts'
import { isAlive, killAll, postgresOf, processesOf, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { run } from '../support/statement-client.ts'

const NOBODY = { uid: 65534, gid: 65534 }
const programs = programsOfEachTest()
let data: string
beforeEach(() => void (data = programs.data))

function start(args: readonly string[] = [], env: Record<string, string> = {}): QuipuProcess {
  return programs.spawn(['start', '--port', '0', '--data-dir', data, ...args], {
    env: { QUIPU_LOG_LEVEL: 'error', ...env },
  })
}

async function stop(quipu: QuipuProcess): Promise<void> {
  quipu.signal('SIGTERM')
  expect((await quipu.exit).code).toBe(0)
}

/** All processes, except engines with users of their own and the processes that start them (`engine-users.e2e`). */
function withoutEngines(quipu: QuipuProcess): number[] {
  return familyOf(quipu.pid, (pid) => commandOf(pid).includes('/engine-launcher.js'))
}

/** The users of all processes, by any of the four ids. */
function usersOfFamily(quipu: QuipuProcess): number[] {
  const postgres = postgresOf(data)
  const pids = [...withoutEngines(quipu), ...(postgres === undefined ? [] : [postgres])]
  expect(pids.length).toBeGreaterThan(3)
  return [...new Set(pids.flatMap((pid) => usersOf(pid).uids))]
}

/** The owners of the files in the data folder. */
function owners(path = data): number[] {
  const found = lstatSync(path)
  const below = found.isDirectory() ? readdirSync(path).flatMap((name) => owners(join(path, name))) : []
  return [...new Set([found.uid, ...below])]
}

describe.runIf(process.getuid?.() === 0)('A start as root', { timeout: 240_000 }, () => {
  it('leaves no process as root; lakes of root can be read but not written', async () => {
    const user = postgresUser()!
    const catalogs = join(programs.folder, 'catalogs')
    mkdirSync(catalogs)
    chmodSync(catalogs, 0o755)
    for (const name of ['mine', 'roots']) {
      const table = join(programs.folder, name, 's', 't')
      mkdirSync(table, { recursive: true })
      writeFileSync(join(table, 'rows.csv'), 'a,b\n1,x\n2,y\n', { mode: 0o644 })
      mkdirSync(join(programs.folder, name, 's', 'closed'))
      writeFileSync(join(programs.folder, name, 's', 'closed', 'rows.csv'), 'a,b\n1,x\n', { mode: 0o600 })
      for (const path of [table, join(table, '..'), join(table, '..', '..'), join(table, '..', 'closed')]) {
        chmodSync(path, 0o755)
        if (name === 'mine') chownSync(path, user.uid, user.gid)
      }
      const file = join(catalogs, `${name}.json`)
      writeFileSync(file, JSON.stringify({ connector: 'lake', location: join(programs.folder, name) }), { mode: 0o644 })
    }
    for (const name of ['tpch', 'memory'])
      writeFileSync(join(catalogs, `${name}.json`), JSON.stringify({ connector: name }), { mode: 0o644 })

    const quipu = start(['--catalog-dir', catalogs])
    const url = await quipu.url
    expect(usersOfFamily(quipu)).toEqual([user.uid])
    for (const pid of withoutEngines(quipu)) expect(usersOf(pid).gids).not.toContain(0)
    expect(owners()).toEqual([user.uid])
    expect(quipu.stdout()).toContain(`  user      ${user.name}\n`)
    expect(quipu.stderr().trim().split('\n')).toEqual([
      expect.stringContaining(`User ${user.name} cannot write ${join(programs.folder, 'roots')} (catalog roots)`),
    ])

    for (const catalog of ['mine', 'roots'])
      expect(await rowsOf(url, `SELECT sum(a) FROM ${catalog}.s.t`)).toEqual([[3]])
    expect((await run(url, 'SELECT * FROM roots.s.closed')).error).toMatchObject({ errorName: 'PERMISSION_DENIED' })
    const writes = (catalog: string): string[] => [
      `CREATE TABLE ${catalog}.s.made AS SELECT * FROM tpch.tiny.nation`,
      `INSERT INTO ${catalog}.s.t VALUES (3, 'z')`,
      `CREATE TABLE ${catalog}.s.empty (a bigint)`,
      `CREATE VIEW ${catalog}.s.v AS SELECT 1 AS a`,
      `CREATE SCHEMA ${catalog}.other`,
      `DROP TABLE ${catalog}.s.t`,
      ...(catalog === 'mine' ? [] : [`DROP SCHEMA ${catalog}.s CASCADE`]),
    ]
    for (const sql of writes('mine')) expect((await run(url, sql)).error, sql).toBeUndefined()
    // Files of a table must be read before they can be dropped: the statement is refused before the commit, and not
    // tried for ever.
    for (const sql of ['DROP TABLE mine.s.closed', 'DROP SCHEMA mine.s CASCADE'])
      expect((await run(url, sql)).error, sql).toMatchObject({ errorName: 'PERMISSION_DENIED' })
    for (const sql of writes('roots'))
      expect((await run(url, sql)).error, sql).toMatchObject({
        errorName: 'PERMISSION_DENIED',
        message: expect.stringMatching(new RegExp(`^(?!.*${programs.folder}).*${user.name}.*'roots'`)) as string,
      })
    await rowsOf(url, 'CREATE TABLE memory.default.n AS SELECT * FROM tpch.tiny.nation')
    expect(await rowsOf(url, 'SELECT count(*) FROM memory.default.n')).toEqual([[25]])
    await stop(quipu)
    expect(owners()).toEqual([user.uid])
  })

  it('takes over a data folder of root after kill -9, and kills the processes that still ran on it', async () => {
    const user = postgresUser()!
    const before = start(['--run-as', 'root'])
    const first = await before.url
    expect(before.stderr()).toContain('Runs as root because of --run-as')
    await rowsOf(first, 'CREATE TABLE memory.default.n AS SELECT * FROM tpch.tiny.nation')
    const [coordinator, worker] = processesOf(data).children as [number, number]
    expect(usersOf(coordinator).uids).toEqual([0, 0, 0, 0])
    process.kill(coordinator, 'SIGSTOP')
    killAll([before.pid, worker])
    await before.exit
    expect(isAlive(coordinator)).toBe(true)

    const after = start()
    const url = await after.url
    expect(isAlive(coordinator)).toBe(false)
    expect(usersOfFamily(after)).toEqual([user.uid])
    expect(owners()).toEqual([user.uid])
    expect(await rowsOf(url, 'SELECT count(*) FROM memory.default.n')).toEqual([[25]])
    await rowsOf(url, 'INSERT INTO memory.default.n SELECT * FROM tpch.tiny.nation')
    await stop(after)
  })

  it('becomes the owner of the data folder, with Postgres; a stand-by takes over as the same user', async () => {
    mkdirSync(data)
    chownSync(data, NOBODY.uid, NOBODY.gid)
    const first = start()
    await first.url
    expect(usersOfFamily(first)).toEqual([NOBODY.uid])
    const second = start(['--standby'])
    const url = await second.url
    killAll([first.pid, ...processesOf(data).children])
    await first.exit
    const writes = async (): Promise<boolean> =>
      ((await (await fetch(`${url}/v1/info`)).json()) as { writer: boolean }).writer
    await waitUntil('the stand-by writes', writes)
    expect(usersOfFamily(second)).toEqual([NOBODY.uid])
    expect(await rowsOf(url, 'SELECT count(*) FROM tpch.tiny.nation')).toEqual([[25]])
    await stop(second)
    expect(owners()).toEqual([NOBODY.uid])
  })

  it('becomes the user of --run-as, also on a folder and a running Postgres of another user', async () => {
    const first = start()
    await first.url
    const postgres = postgresOf(data)!
    killAll([first.pid, ...processesOf(data).children])
    await first.exit
    expect(isAlive(postgres)).toBe(true)
    const second = start(['--run-as', '65534:65534'])
    await second.url
    expect(isAlive(postgres)).toBe(false)
    expect(usersOfFamily(second)).toEqual([NOBODY.uid])
    expect(owners()).toEqual([NOBODY.uid])
    await stop(second)
  })

  it('stays root with a warning if the default user cannot read the settings; with --run-as it exits instead', async () => {
    chmodSync(programs.folder, 0o700)
    const quipu = start()
    await quipu.url
    expect(quipu.stderr()).toMatch(/Runs as root, because user \w+ cannot read \S+: set --run-as to another user/)
    await stop(quipu)
    const { code, stderr } = await start(['--run-as', 'nobody']).exit
    expect({ code, stderr }).toEqual({
      code: 64,
      stderr: expect.stringContaining('--run-as nobody: user nobody cannot'),
    })
    const unknown = await start(['--run-as', 'no such user']).exit
    expect(unknown).toMatchObject({ code: 64, stderr: expect.stringContaining('there is no user no such user') })
  })

  it('changes the owner of no foreign folder', async () => {
    mkdirSync(data)
    writeFileSync(join(data, 'something'), 'else')
    for (const args of [['--run-as', 'nobody'], []]) {
      const { code, stderr } = await start(args).exit
      expect({ args, code, stderr }).toMatchObject({ code: 64, stderr: expect.stringMatching(/^quipu: [^\n]+\n$/) })
      expect(stderr).toContain('holds files that are not of Quipu: choose another folder')
    }
    expect(owners()).toEqual([0])
  })

  it('kills no process that a file of another user names', async () => {
    const other = spawn('sleep', ['600'])
    try {
      mkdirSync(data)
      const file = join(data, 'supervisor.json')
      const gone = { pid: 4_000_000, startTime: 'never' }
      writeFileSync(file, JSON.stringify({ supervisor: gone, children: [identify(other.pid!)], writer: 'w' }))
      for (const path of [data, file]) chownSync(path, NOBODY.uid, NOBODY.gid)
      for (const args of [['--run-as', 'root'], []]) {
        writeFileSync(file, JSON.stringify({ supervisor: gone, children: [identify(other.pid!)], writer: 'w' }))
        chownSync(file, NOBODY.uid, NOBODY.gid)
        const quipu = start(args)
        await quipu.url
        await stop(quipu)
        expect(isAlive(other.pid!)).toBe(true)
      }
    } finally {
      other.kill('SIGKILL')
    }
  })

  it('lets other commands on the data folder run as its user and leave it whole', async () => {
    const user = postgresUser()!
    const quipu = start()
    await rowsOf(await quipu.url, 'SELECT count(*) FROM tpch.tiny.nation')
    await stop(quipu)
    for (const command of [['rebuild'], ['audit', 'verify'], ['reset-epoch']]) {
      const { code, stderr } = await programs.spawn([...command, '--data-dir', data]).exit
      expect({ command, code, stderr }).toEqual({ command, code: 0, stderr: '' })
      expect(owners()).toEqual([user.uid])
    }
    expect(existsSync(join(data, 'worker-1', 'epoch'))).toBe(false)
    expect(readFileSync(join(data, 'postgres.log'), 'utf8')).toContain('ready')
    const again = start()
    await rowsOf(await again.url, 'SELECT 1')
    await stop(again)
  })
  it("takes over a tables folder of root that is empty or Quipu's, and refuses any other in one line", async () => {
    const user = postgresUser()!
    const tables = join(programs.folder, 'tables')
    mkdirSync(tables)
    const first = start(['--tables-dir', tables])
    await rowsOf(await first.url, 'CREATE TABLE memory.default.n AS SELECT * FROM tpch.tiny.nation')
    expect([first.stderr(), owners(tables)]).toEqual(['', [user.uid]])
    await stop(first)
    // A start that stayed root leaves the folder like this.
    const giveBack = (path: string): void => {
      chownSync(path, 0, 0)
      if (lstatSync(path).isDirectory()) for (const name of readdirSync(path)) giveBack(join(path, name))
    }
    giveBack(tables)
    const second = start(['--tables-dir', tables])
    await rowsOf(await second.url, 'INSERT INTO memory.default.n SELECT * FROM tpch.tiny.nation')
    expect(owners(tables)).toEqual([user.uid])
    await stop(second)

    giveBack(tables)
    writeFileSync(join(tables, 'something'), 'else')
    const line = `user nobody cannot write ${tables} (--tables-dir), which belongs to user 0: change its owner (chown), or set --run-as to its owner`
    expect(await start(['--tables-dir', tables, '--run-as', 'nobody']).exit).toMatchObject({
      code: 64,
      stderr: `quipu: --run-as nobody: ${line}\n`,
    })
    expect(owners(tables)).toEqual([0])
    expect(await start(['--tables-dir', tables]).exit).toMatchObject({
      code: 64,
      stderr: `quipu: Cannot become user ${user.name}: ${line.replace('nobody', user.name)} (with --run-as root it stays root)\n`,
    })
  })

  it('becomes the owner of the tables folder if nothing else names a user', async () => {
    const tables = join(programs.folder, 'tables')
    mkdirSync(tables)
    chownSync(tables, NOBODY.uid, NOBODY.gid)
    const quipu = start(['--tables-dir', tables])
    await quipu.url
    expect(usersOfFamily(quipu)).toEqual([NOBODY.uid])
    await stop(quipu)
  })
})
