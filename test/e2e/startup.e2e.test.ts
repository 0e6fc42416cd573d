import { createServer } from 'node:net'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { programUrl } from '../../src/shared/programs.ts'
import { commandOf } from '../support/process-users.ts'
import { freePort } from '../support/postgres.ts'
import {
  isAlive,
  killAll,
  postgresOf,
  processesOf,
  spawnQuipu,
  temporaryFolder,
  waitUntil,
  type QuipuProcess,
} from '../support/quipu-process.ts'

let folder: ReturnType<typeof temporaryFolder>
beforeAll(() => void (folder = temporaryFolder()))
afterAll(() => folder.remove())

function start(dataDir: string, args: readonly string[] = [], env: Record<string, string> = {}): QuipuProcess {
  return spawnQuipu(['start', '--port', '0', '--data-dir', dataDir, ...args], {
    env: { QUIPU_LOG_LEVEL: 'error', ...env },
  })
}

async function isStarting(url: string): Promise<boolean> {
  const answer = (await (await fetch(`${url}/v1/info`)).json()) as { starting: boolean }
  return answer.starting
}

/** Expects a refused start with exactly one line on stderr. @returns this line */
async function refusalOf(quipu: QuipuProcess): Promise<string> {
  const { code, stderr, stdout } = await quipu.exit
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  const lines = stderr.trim().split('\n')
  expect(lines).toHaveLength(1)
  return lines[0]!
}

describe('The first start', () => {
  it(
    'creates its data folder, prints a first command, and leaves no process or lock file after Ctrl-C',
    { timeout: 240_000 },
    async () => {
      const data = join(folder.path, 'first')
      const quipu = start(data)
      const url = await quipu.url
      expect(await isStarting(url)).toBe(false)
      const { children } = processesOf(data)
      const postgres = postgresOf(data)!
      expect(children).toHaveLength(2)
      expect(
        children.map((pid) => commandOf(pid).includes(programUrl('processes/worker/worker-process').pathname)),
      ).toEqual([false, true])
      expect([quipu.pid, ...children, postgres].every(isAlive)).toBe(true)

      // As a terminal does: to the whole foreground group.
      process.kill(-quipu.pid, 'SIGINT')
      const { code, stdout, stderr } = await quipu.exit
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toContain(`node dist/cli/quipu.js query --server ${url}`)
      expect(stdout).toContain(data)
      expect([...children, postgres].filter(isAlive)).toEqual([])
      expect(existsSync(join(data, 'supervisor.json'))).toBe(false)
      expect(existsSync(join(data, 'postgres', 'postmaster.pid'))).toBe(false)
      expect(readFileSync(join(data, 'postgres.log'), 'utf8')).toContain('database system is shut down')

      const again = start(data)
      expect(await isStarting(await again.url)).toBe(false)
      again.signal('SIGTERM')
      expect((await again.exit).code).toBe(0)
    },
  )
})

describe('A start with a wrong setting or a used resource', () => {
  it('is refused if a Quipu already runs on the data folder', { timeout: 240_000 }, async () => {
    const data = join(folder.path, 'second')
    const first = start(data)
    const url = await first.url
    expect(await refusalOf(start(data))).toBe(`quipu: Another Quipu (process ${first.pid}) already runs on ${data}`)
    expect(await isStarting(url)).toBe(false)
    first.signal('SIGTERM')
    await first.exit
  })

  it(
    'is allowed for a stand-by on the same folder, which takes over with the Postgres of the killed server',
    { timeout: 240_000 },
    async () => {
      const data = join(folder.path, 'standby')
      const first = start(data)
      await first.url
      const second = start(data, ['--standby'])
      const url = await second.url
      const writes = async (): Promise<boolean> =>
        ((await (await fetch(`${url}/v1/info`)).json()) as { writer: boolean }).writer
      expect(await writes()).toBe(false)
      const postgres = postgresOf(data)!
      killAll([first.pid, ...processesOf(data).children])
      await first.exit
      await waitUntil('the stand-by writes', writes, 60_000)
      expect(isAlive(postgres)).toBe(true)
      second.signal('SIGTERM')
      expect((await second.exit).code).toBe(0)
      expect(isAlive(postgres)).toBe(false)
    },
  )

  it('prints the port that is taken', { timeout: 240_000 }, async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => other.once('listening', resolve))
    const { port } = other.address() as { port: number }
    const data = join(folder.path, 'port')
    expect(await refusalOf(spawnQuipu(['start', '--port', `${port}`, '--data-dir', data]))).toBe(
      `quipu: Port ${port} of 127.0.0.1 is taken: choose another port with --port`,
    )
    expect(existsSync(join(data, 'supervisor.json'))).toBe(false)
    other.close()
  })

  it('prints that Postgres does not answer, without the password', { timeout: 240_000 }, async () => {
    const data = join(folder.path, 'database')
    const line = await refusalOf(start(data, [], { DATABASE_URL: 'postgresql://nobody:secret@127.0.0.1:1/none' }))
    expect(line).toMatch(/^quipu: .*Postgres.*ECONNREFUSED/)
    expect(line).not.toContain('secret')
    expect(existsSync(join(data, 'postgres'))).toBe(false)
  })

  it('prints the path of a broken catalog file', { timeout: 240_000 }, async () => {
    const catalogs = join(folder.path, 'catalogs')
    mkdirSync(catalogs)
    writeFileSync(join(catalogs, 'sales.json'), '{"connector": "lake", ')
    const data = join(folder.path, 'catalog')
    const line = await refusalOf(start(data, ['--catalog-dir', catalogs]))
    expect(line).toContain(join(catalogs, 'sales.json'))
    const postgres = postgresOf(data)
    expect(postgres === undefined || !isAlive(postgres)).toBe(true)
  })

  it('prints the path and the line of a broken rules file', { timeout: 240_000 }, async () => {
    const file = join(folder.path, 'rules.json')
    writeFileSync(file, '{\n "tables": [\n  {"privileges": ["SELCT"]}\n ]\n}')
    const passwords = join(folder.path, 'passwords')
    writeFileSync(passwords, '')
    const known = ['--authentication', 'password', '--password-file', passwords]
    const data = join(folder.path, 'rules')
    const line = await refusalOf(start(data, [...known, '--access-rules-file', file]))
    expect(line).toContain(`quipu: accessRulesFile: ${file}: line 3: tables, 1, privileges`)
    const postgres = postgresOf(data)
    expect(postgres === undefined || !isAlive(postgres)).toBe(true)
  })

  it('exits with code 64 for an unknown option', async () => {
    const { code, stderr } = await spawnQuipu(['start', '--prot', '1']).exit
    expect({ code, stderr }).toEqual({ code: 64, stderr: "quipu: Unknown option '--prot'\n" })
  })
})

describe('A crash of the server', () => {
  it('is followed by a normal start after kill -9 of all processes', { timeout: 240_000 }, async () => {
    const data = join(folder.path, 'all')
    const first = start(data)
    await first.url
    const pids = [first.pid, ...processesOf(data).children, postgresOf(data)!]
    killAll(pids)
    await first.exit
    const second = start(data)
    expect(await isStarting(await second.url)).toBe(false)
    second.signal('SIGTERM')
    expect((await second.exit).code).toBe(0)
  })

  it(
    'leaves Postgres and a stopped coordinator: the next start takes Postgres over and kills the coordinator',
    { timeout: 240_000 },
    async () => {
      const data = join(folder.path, 'adopt')
      const port = String(await freePort())
      const first = start(data, ['--port', port])
      const url = await first.url
      const [coordinator, worker] = processesOf(data).children as [number, number]
      const postgres = postgresOf(data)!
      process.kill(coordinator, 'SIGSTOP')
      process.kill(first.pid, 'SIGKILL')
      await first.exit
      await waitUntil('the worker sees that its supervisor is gone', () => !isAlive(worker))
      expect([coordinator, postgres].every(isAlive)).toBe(true)

      // The same port: the stopped coordinator holds it until it is killed.
      const second = start(data, ['--port', port])
      expect(await second.url).toBe(url)
      expect(isAlive(coordinator)).toBe(false)
      expect(postgresOf(data)).toBe(postgres)
      second.signal('SIGTERM')
      expect((await second.exit).code).toBe(0)
      expect(isAlive(postgres)).toBe(false)
    },
  )

  it('makes the supervisor start Postgres again if only Postgres was killed', { timeout: 240_000 }, async () => {
    const data = join(folder.path, 'postgres')
    const quipu = start(data)
    const url = await quipu.url
    const postgres = postgresOf(data)!
    process.kill(postgres, 'SIGKILL')
    await waitUntil('another Postgres runs', () => ![undefined, postgres].includes(postgresOf(data)))
    await waitUntil('the coordinator is back', async () => !(await isStarting(url)))
    quipu.signal('SIGTERM')
    expect((await quipu.exit).code).toBe(0)
  })
})

describe.runIf(process.getuid?.() === 0)('A user other than root', () => {
  it('can start and stop the server', { timeout: 240_000 }, async () => {
    const owner = { uid: 65534, gid: 65534 }
    const parent = join(folder.path, 'open')
    mkdirSync(parent)
    chmodSync(parent, 0o777)
    const quipu = spawnQuipu(['start', '--port', '0', '--data-dir', join(parent, 'data')], {
      user: owner,
      cwd: parent,
    })
    expect(await isStarting(await quipu.url)).toBe(false)
    expect(readdirSync(join(parent, 'data'))).toContain('postgres')
    quipu.signal('SIGINT')
    expect((await quipu.exit).code).toBe(0)
  })
})
