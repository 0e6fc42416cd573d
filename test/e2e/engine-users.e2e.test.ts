import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isEngineGroup } from '../../src/supervisor/engine-ids.ts'
import { postgresUser } from '../../src/supervisor/posix-user.ts'
import { buildWithAgents, type EngineAgent } from '../support/engine-agents.ts'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { type TestDatabase } from '../support/postgres.ts'
import { familyOf, usersOf } from '../support/process-users.ts'
import { programsOfEachTest, rowsOf } from '../support/programs-of-each-test.ts'
import { isAlive, postgresOf, processesOf, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { post, raw, run } from '../support/statement-client.ts'

let database: TestDatabase
// Hooks run in reverse order: this one after the programs of the test have ended.
afterEach(() => database.drop())
const programs = programsOfEachTest()
let data: string
let build: ReturnType<typeof buildWithAgents>
beforeEach(async () => {
  database = await createMigratedDatabase()
  data = programs.data
  build = buildWithAgents(programs.folder)
})

function startProgram(args: readonly string[], env: Record<string, string> = {}): QuipuProcess {
  return programs.spawn(args, {
    env: { QUIPU_LOG_LEVEL: 'error', QUIPU_ENGINE_DEAD_MS: '60s', ...env },
    program: build.program,
  })
}

/** Starts a server on a database of the shared Postgres, which costs less than a Postgres of its own. */
function start(args: readonly string[] = [], env: Record<string, string> = {}): QuipuProcess {
  return startProgram(['start', '--port', '0', '--data-dir', data, ...args], { DATABASE_URL: database.url, ...env })
}

/** The engines of one process that run now. */
function engines(of: string): EngineAgent[] {
  return build.agents().filter(({ pid, folder: its }) => isAlive(pid) && its?.startsWith(join(data, of)))
}

async function engine(of: string): Promise<EngineAgent> {
  await waitUntil(`an engine of ${of} runs`, () => engines(of).length > 0)
  return engines(of)[0]!
}

/** The processes below this one that run as root: the launcher and its watcher. */
function rootsOf(quipu: QuipuProcess): number[] {
  return familyOf(quipu.pid).filter((pid) => usersOf(pid).uids.includes(0))
}

/** Lists a path with all files and folders below it. */
function tree(path: string): string[] {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return []
  return [path, ...(found.isDirectory() ? readdirSync(path).flatMap((name) => tree(join(path, name))) : [])]
}

/** Checks what an engine may do with a path: read, write, change the mode. */
const LOOK = `
  const may = (what) => { try { what(); return true } catch (error) { return error.code ?? error.message } }
  return parameter.map((path) => [
    path,
    may(() => fs.closeSync(fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK))),
    may(() => fs.statSync(path).isDirectory() ? fs.mkdirSync(path + '/x') : fs.closeSync(fs.openSync(path, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK))),
    may(() => fs.chmodSync(path, 0o777)),
  ])`

describe.runIf(process.getuid?.() === 0)('Engines of a start as root', { timeout: 240_000 }, () => {
  it('run as users of their own, and read and change nothing but their own files and the tables', async () => {
    const owner = postgresUser()!
    const withPostgres = ['start', '--port', '0', '--data-dir', data, '--workers', '2', '--anchor-ms', '1s']
    // The engine of a query whose rows nobody reads stops at 1 MB and waits.
    const quipu = startProgram(withPostgres, { QUIPU_PAGE_STORE_QUERY_BYTES: '1MB' })
    const url = await quipu.url
    expect(quipu.stderr()).toBe('')
    await rowsOf(url, 'CREATE TABLE memory.default.t AS SELECT * FROM tpch.tiny.orders')
    const posted = await post(url, 'SELECT * FROM tpch.tiny.lineitem a, tpch.tiny.region b')
    const { nextUri } = (await raw(posted.json.nextUri!)).json
    await waitUntil('pages are there', () =>
      ['worker-1', 'worker-2'].some((name) => tree(join(data, name, 'pages')).some((path) => path.endsWith('.json'))),
    )
    await waitUntil('an anchor is there', () => existsSync(join(data, 'anchors.jsonl')))
    const agents = [await engine('worker-1'), await engine('worker-2'), await engine('coordinator')]
    const [attacker, victim] = agents as [EngineAgent, EngineAgent]

    // A new engine is root until it has dropped its rights.
    await waitUntil('the launcher and its watcher alone are root', () => rootsOf(quipu).length === 2)
    const [launcher] = rootsOf(quipu)
    const { children } = processesOf(data)
    expect(new Set(agents.map(({ uid }) => uid)).size).toBe(3)
    for (const { pid, uid } of agents) {
      expect(usersOf(pid).uids).toEqual([uid, uid, uid, uid])
      expect(usersOf(pid).gids).toEqual([uid, statSync(data).gid])
      expect(usersOf(pid).gids.every(isEngineGroup)).toBe(true)
      expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/CapPrm:\t0+\nCapEff:\t0+\n/)
    }
    for (const pid of children) expect(usersOf(pid).uids).toEqual(Array(4).fill(owner.uid))

    // For everything below the data folder: what the engine may read, and what it may change.
    const own = attacker.folder!
    const spill = join(data, 'worker-1', 'spill', basename(own))
    const looked = (await attacker.run(LOOK, tree(data))) as [string, ...(true | string)[]][]
    expect(looked.length).toBeGreaterThan(100)
    const readable = looked.filter(([, read]) => read === true).map(([path]) => path)
    const tables = join(data, 'tables')
    const inside = (path: string, parent: string): boolean => `${path}/`.startsWith(parent.replace(/\/?$/, '/'))
    expect(readable.filter((path) => ![own, spill, tables].some((parent) => inside(path, parent)))).toEqual([])
    expect(readable.filter((path) => inside(path, tables)).length).toBeGreaterThan(5)
    const changed = looked.filter(([, , write, mode]) => write === true || mode === true).map(([path]) => path)
    const isFifo = (path: string): boolean =>
      dirname(path) === own.replace(/\/$/, '') && /^fifo-\d+$/.test(basename(path))
    expect(changed.filter((path) => !isFifo(path)).toSorted()).toEqual([join(own, 'own'), spill].toSorted())
    for (const name of ['secret', 'anchor-key.pem', 'postgres/PG_VERSION', 'supervisor.json', 'run'])
      expect(looked.find(([path]) => path === join(data, name))?.slice(1, 3)).toEqual(['EACCES', 'EACCES'])
    expect(looked.filter(([path]) => /worker-\d\/pages\/.*\.json$/.test(path)).length).toBeGreaterThan(0)

    // The engine cannot replace names in its own folder, and cannot link files of others under names of its own.
    const laid = `
      const refused = (what) => { try { what(); return 'done' } catch (error) { return error.code } }
      return [
        refused(() => fs.unlinkSync(folder + 'fifo-0')),
        refused(() => fs.renameSync(folder + 'fifo-0', folder + 'own/fifo')),
        refused(() => fs.symlinkSync(parameter.secret, folder + 'link')),
        refused(() => fs.linkSync(parameter.secret, folder + 'own/link')),
        refused(() => fs.readdirSync(parameter.other)),
        refused(() => fs.writeFileSync(parameter.other + 'own/x', '')),
        refused(() => fs.readdirSync(parameter.data)),
        refused(() => fs.mkdirSync(parameter.attempt)),
      ]`
    expect(
      await attacker.run(laid, {
        data,
        secret: join(data, 'secret'),
        other: victim.folder,
        attempt: join(data, 'tables', 'memory', 'default', 't', '_data', 'x'),
      }),
    ).not.toContain('done')

    // The engine cannot reach processes of others, the launcher of root or other engines.
    const others = [...children, quipu.pid, launcher, victim.pid, postgresOf(data)!]
    const signals = `
      const refused = (what) => { try { what(); return 'done' } catch (error) { return error.code } }
      return parameter.flatMap((pid) => [
        refused(() => process.kill(pid, 'SIGKILL')),
        refused(() => process.kill(pid, 0)),
        ...['environ', 'mem', 'maps', 'fd', 'cwd/.', 'root/.'].map((name) => refused(() =>
          name === 'fd' ? fs.readdirSync('/proc/' + pid + '/fd') : fs.closeSync(fs.openSync('/proc/' + pid + '/' + name, 'r')))),
      ])`
    expect([...new Set((await attacker.run(signals, others)) as string[])].toSorted()).toEqual(['EACCES', 'EPERM'])
    expect(
      await attacker.run(
        `return new Promise((resolve) => net.connect(parameter).on('connect', () => resolve('connected')).on('error', (error) => resolve(error.code)))`,
        join(realpathSync(join(data, 'run')), '.s.PGSQL.5432'),
      ),
    ).toBe('EACCES')
    expect(
      await attacker.run(
        `return new Promise((resolve) => net.connect(parameter).on('connect', () => resolve('connected')).on('error', (error) => resolve(error.code)))`,
        join(victim.folder!, 'channel'),
      ),
    ).toBe('EACCES')
    for (const back of ['setuid(0)', 'setgid(0)', 'setgroups([0])', `seteuid(${owner.uid})`])
      expect(await attacker.run(`process.${back}`), back).toMatchObject({ error: expect.stringMatching(/./) as string })

    await raw(nextUri!, { method: 'DELETE' })
    expect(await rowsOf(url, 'SELECT count(*) FROM memory.default.t')).toEqual([[15000]])
  })
  it('write, spill, stream, are canceled, killed and replaced, and leave no process behind', async () => {
    const quipu = start(['--engine-memory-percent', '1', '--restart-backoff-max-ms', '200ms'], {
      QUIPU_ENGINE_DEAD_MS: '10s',
    })
    const url = await quipu.url
    await rowsOf(url, 'CREATE TABLE memory.default.t AS SELECT * FROM tpch.tiny.lineitem')
    await rowsOf(url, 'INSERT INTO memory.default.t SELECT * FROM tpch.tiny.lineitem')
    await rowsOf(url, 'CREATE TABLE memory.default.none AS SELECT * FROM tpch.tiny.orders WHERE orderkey < 0')
    expect(await rowsOf(url, 'SELECT count(*) FROM memory.default.t')).toEqual([[120350]])
    expect(await rowsOf(url, 'SELECT count(*) FROM memory.default.none')).toEqual([[0]])
    expect((await run(url, 'SELECT * FROM memory.default.t')).rows).toHaveLength(120_350)
    for (const path of tree(join(data, 'tables'))) {
      const { uid, gid, mode } = statSync(path)
      expect({ path, uid, gid }).toEqual({ path, uid: postgresUser()!.uid, gid: statSync(data).gid })
      expect(mode & 0o7777, path).toBe(statSync(path).isDirectory() ? 0o2750 : 0o640)
    }
    // The rest of the data folder is closed to all but its user, or open to engines alone.
    const open = tree(data).filter((path) => {
      // Processes create and remove files meanwhile.
      const { mode, gid } = lstatSync(path, { throwIfNoEntry: false }) ?? { mode: 0, gid: 0 }
      return (mode & 0o007) !== 0 || ((mode & 0o070) !== 0 && !isEngineGroup(gid))
    })
    expect(open).toEqual([])
    // The parent copied the files that the engine wrote, and none of the engine's own files is left.
    for (const { folder: its } of engines('worker-1')) expect(readdirSync(join(its!, 'own'))).toEqual([])

    const posted = await post(
      url,
      'SELECT count(*) FROM tpch.tiny.lineitem a, tpch.tiny.lineitem b WHERE a.comment < b.comment',
    )
    const { nextUri } = (await raw(posted.json.nextUri!)).json
    expect((await raw(nextUri!, { method: 'DELETE' })).status).toBe(204)
    expect(await rowsOf(url, 'SELECT count(*) FROM tpch.tiny.nation')).toEqual([[25]])

    // A compromised engine leaves a process behind, in a session of its own.
    const LEAVE = `
      const child = child_process.spawn('/bin/sh', ['-c', 'setsid sleep 600 & echo $!'], { stdio: ['ignore', 'pipe', 'ignore'] })
      return new Promise((resolve) => child.stdout.on('data', (text) => resolve(Number(text))))`
    const isLeft = (pid: number, uid: number): boolean => isAlive(pid) && usersOf(pid).uids[0] === uid
    const first = await engine('worker-1')
    const left = (await first.run(LEAVE)) as number
    expect(isLeft(left, first.uid)).toBe(true)
    process.kill(first.pid, 'SIGKILL')
    await waitUntil('all of the killed engine is gone', () => !isAlive(first.pid) && !isLeft(left, first.uid))
    expect(await rowsOf(url, 'SELECT count(*) FROM memory.default.t')).toEqual([[120350]])

    // The worker kills an engine that hangs, although it runs as another user.
    const second = await engine('worker-1')
    expect(second.pid).not.toBe(first.pid)
    for (const { pid } of engines('worker-1')) process.kill(pid, 'SIGSTOP')
    await waitUntil('the hung engine is gone', () => !isAlive(second.pid))
    expect(await rowsOf(url, 'SELECT count(*) FROM memory.default.t')).toEqual([[120350]])

    // If a worker dies, its engines end before the next worker starts.
    const third = await engine('worker-1')
    const behind = (await third.run(LEAVE)) as number
    const [, worker] = processesOf(data).children as [number, number]
    process.kill(worker, 'SIGKILL')
    await waitUntil('the engines of the worker are gone', () => !isAlive(third.pid) && !isLeft(behind, third.uid))
    await waitUntil('the next worker runs', () => (processesOf(data).children[1] ?? worker) !== worker)
    expect(await rowsOf(url, 'SELECT count(*) FROM memory.default.t')).toEqual([[120350]])

    // If the supervisor dies, everything ends, with the process of root that started the engines.
    const last = await engine('worker-1')
    const orphan = (await last.run(LEAVE)) as number
    const family = familyOf(quipu.pid)
    const [launcher] = rootsOf(quipu)
    process.kill(quipu.pid, 'SIGKILL')
    await quipu.exit
    expect(family).toContain(launcher)
    await waitUntil('nothing of it runs', () => !family.some(isAlive) && !isLeft(orphan, last.uid))

    const again = start()
    expect(await rowsOf(await again.url, 'SELECT count(*) FROM memory.default.t')).toEqual([[120350]])
    again.signal('SIGTERM')
    expect(await again.exit).toMatchObject({ code: 0, stderr: '' })
    expect(build.agents().filter(({ pid }) => isAlive(pid))).toEqual([])
  })

  it('a folder that an engine closes to its parent blocks no query, and the next start removes it', async () => {
    const first = start()
    const url = await first.url
    const hostile = await engine('worker-1')
    await hostile.run(
      `fs.mkdirSync(folder + 'own/closed/inner', { recursive: true }); fs.chmodSync(folder + 'own/closed', 0)`,
    )
    process.kill(hostile.pid, 'SIGKILL')
    expect(await rowsOf(url, 'SELECT count(*) FROM tpch.tiny.nation')).toEqual([[25]])
    first.signal('SIGTERM')
    expect(await first.exit).toMatchObject({ code: 0, stderr: '' })
    const left = (): string[] => tree(join(data, 'worker-1', 'engines')).filter((path) => path.endsWith('inner'))
    expect(left()).toHaveLength(1)
    const second = start()
    expect(await rowsOf(await second.url, 'SELECT count(*) FROM tpch.tiny.nation')).toEqual([[25]])
    expect(left()).toEqual([])
  })

  it('read tables that an earlier start left readable for its own user alone', async () => {
    const first = start(['--engine-users', 'same'])
    const owner = postgresUser()!
    await rowsOf(await first.url, 'CREATE TABLE memory.default.t AS SELECT * FROM tpch.tiny.orders')
    expect(rootsOf(first)).toEqual([])
    for (const { uid } of build.agents()) expect(uid).toBe(owner.uid)
    expect(
      tree(data).filter((path) => {
        // Pages are removed meanwhile.
        const { mode = 0 } = lstatSync(path, { throwIfNoEntry: false }) ?? {}
        return (mode & 0o077) !== 0 && !path.startsWith(join(data, 'postgres'))
      }),
    ).toEqual([])
    first.signal('SIGTERM')
    await first.exit
    const second = start()
    const url = await second.url
    await waitUntil('the launcher and its watcher alone are root', () => rootsOf(second).length === 2)
    expect(await rowsOf(url, 'SELECT count(*) FROM memory.default.t')).toEqual([[15000]])
    await rowsOf(url, 'INSERT INTO memory.default.t SELECT * FROM tpch.tiny.orders')
    second.signal('SIGTERM')
    await second.exit
    // A later start without separate engine users reads and writes the tables too.
    const third = start(['--engine-users', 'same'])
    await rowsOf(await third.url, 'INSERT INTO memory.default.t SELECT * FROM tpch.tiny.orders')
    third.signal('SIGTERM')
    await third.exit
    const fourth = start()
    expect(await rowsOf(await fourth.url, 'SELECT count(*) FROM memory.default.t')).toEqual([[45_000]])
  })

  it("run as the server's user if they cannot read a lake otherwise, except with --engine-users own", async () => {
    const owner = postgresUser()!
    const catalogs = join(programs.folder, 'catalogs')
    const lake = join(programs.folder, 'lake')
    mkdirSync(join(lake, 's', 't'), { recursive: true })
    mkdirSync(catalogs)
    chmodSync(catalogs, 0o755)
    writeFileSync(join(lake, 's', 't', 'rows.csv'), 'a,b\n1,x\n', { mode: 0o600 })
    for (const path of [lake, join(lake, 's'), join(lake, 's', 't'), join(lake, 's', 't', 'rows.csv')])
      chownSync(path, owner.uid, owner.gid)
    chmodSync(lake, 0o700)
    for (const [name, value] of Object.entries({
      closed: { connector: 'lake', location: lake },
      tpch: { connector: 'tpch' },
    })) {
      writeFileSync(join(catalogs, `${name}.json`), JSON.stringify(value))
      chmodSync(join(catalogs, `${name}.json`), 0o644)
    }
    const first = start(['--catalog-dir', catalogs])
    expect(await rowsOf(await first.url, 'SELECT sum(a) FROM closed.s.t')).toEqual([[1]])
    expect(first.stderr()).toMatch(
      new RegExp(
        `^quipu: Engines also run as user ${owner.name}, because a user like \\d+ cannot read ${lake} \\(catalog closed\\)[^\n]*\n$`,
      ),
    )
    expect(rootsOf(first)).toEqual([])
    first.signal('SIGTERM')
    await first.exit

    const second = start(['--catalog-dir', catalogs, '--engine-users', 'own'])
    const url = await second.url
    expect(second.stderr()).toContain(`cannot read ${lake} (catalog closed)`)
    expect((await run(url, 'SELECT sum(a) FROM closed.s.t')).error).toMatchObject({
      errorName: 'PERMISSION_DENIED',
      message: expect.stringMatching(/The engine runs as user \d+, who may not open a file of the table$/) as string,
    })
    await waitUntil('the log names file and user', () =>
      new RegExp(`"engineUser":\\d+,"engineError":"[^\n]*${lake}/s/t/rows.csv`).test(second.stdout()),
    )
    expect(await rowsOf(url, 'SELECT count(*) FROM tpch.tiny.nation')).toEqual([[25]])
    chmodSync(lake, 0o711)
    for (const path of [join(lake, 's'), join(lake, 's', 't')]) chmodSync(path, 0o755)
    chmodSync(join(lake, 's', 't', 'rows.csv'), 0o644)
    expect(await rowsOf(url, 'SELECT sum(a) FROM closed.s.t')).toEqual([[1]])
    await rowsOf(url, 'CREATE TABLE closed.s.made AS SELECT * FROM tpch.tiny.nation')
    expect(await rowsOf(url, 'SELECT count(*) FROM closed.s.made')).toEqual([[25]])
  })

  it('share a folder of tables if coordinator and worker are started apart', async () => {
    const tables = join(programs.folder, 'tables')
    const env = { QUIPU_SHARED_SECRET: 'a secret that both sides know', DATABASE_URL: database.url }
    const coordinator = startProgram(['coordinator', '--port', '0', '--data-dir', data, '--tables-dir', tables], env)
    const url = await coordinator.url
    const worker = startProgram(
      [
        'worker',
        '--port',
        '0',
        '--data-dir',
        join(programs.folder, 'away'),
        '--coordinators',
        url,
        '--tables-dir',
        tables,
      ],
      { QUIPU_SHARED_SECRET: env.QUIPU_SHARED_SECRET },
    )
    await waitUntil('the worker is up', () => worker.stdout().startsWith('Worker up in '))
    await rowsOf(url, 'CREATE TABLE memory.default.t AS SELECT * FROM tpch.tiny.orders')
    expect(await rowsOf(url, 'SELECT count(*) FROM memory.default.t')).toEqual([[15000]])
    for (const one of [coordinator, worker])
      await waitUntil('the launcher and its watcher alone are root', () => rootsOf(one).length === 2)
    worker.signal('SIGTERM')
    coordinator.signal('SIGTERM')
    expect([await worker.exit, await coordinator.exit]).toMatchObject([
      { code: 0, stderr: '' },
      { code: 0, stderr: '' },
    ])
  })
})
