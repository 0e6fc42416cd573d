import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isAlive, postgresOf, processesOf, temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { repository } from '../support/repository.ts'

let folder: ReturnType<typeof temporaryFolder>
beforeAll(() => void (folder = temporaryFolder()))
afterAll(() => folder.remove())

/**
 * Makes the files that `npm start` needs from a clone; `script` replaces the start script, as a dependent package may
 * do.
 */
function clone(name: string, script?: string): string {
  const path = join(folder.path, name)
  mkdirSync(path, { mode: 0o711 })
  for (const part of ['dist', 'node_modules', 'migrations', 'etc'])
    symlinkSync(join(repository, part), join(path, part))
  const own = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { scripts: Record<string, string> }
  if (script !== undefined) own.scripts['start'] = script
  writeFileSync(join(path, 'package.json'), JSON.stringify(own))
  return path
}

interface NpmStart {
  readonly npm: number
  readonly dataDir: string
  /** All processes: the shells between, supervisor, children, their engines, Postgres and its sessions; without npm. */
  readonly started: readonly number[]
  /** The exit code of npm, or the signal that ended it; and its whole output. */
  readonly exit: Promise<{ readonly code: number | string; readonly text: string }>
}

/** Runs `npm start` in a clone, as the leader of a process group of its own, as a terminal does. */
async function npmStart(name: string, script?: string): Promise<NpmStart> {
  const cwd = clone(name, script)
  // Beside the clone, so that the removal of the folder finds processes that a fault leaves running.
  const dataDir = join(folder.path, `${name}-data`)
  const child = spawn('npm', ['start', '--', '--port', '0', '--data-dir', dataDir, '--log-level', 'error'], {
    cwd,
    env: { PATH: process.env['PATH'], HOME: folder.path, npm_config_update_notifier: 'false' },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (part) => (text += part))
  const exit = new Promise<{ code: number | string; text: string }>((resolve) =>
    child.once('exit', (code, signal) => resolve({ code: code ?? signal ?? 'unknown', text })),
  )
  await waitUntil('npm start is up', () => {
    if (child.exitCode !== null) throw new Error(`npm start ended with ${child.exitCode}: ${text}`)
    return /^Quipu is up in /m.test(text)
  })
  const { supervisor, children } = processesOf(dataDir)
  const postgres = postgresOf(dataDir)!
  const started = [...descendants(child.pid!), supervisor, ...children, postgres, ...descendants(postgres)]
  expect(children).toHaveLength(2)
  // Sessions of Postgres, and its own workers, come and go.
  expect([supervisor, ...children, postgres].filter((pid) => !isAlive(pid))).toEqual([])
  return { npm: child.pid!, dataDir, started: [...new Set(started)], exit }
}

function descendants(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  return [...children, ...children.flatMap(descendants)]
}

async function expectNothingLeft({ dataDir, started }: NpmStart): Promise<void> {
  await waitUntil('all that npm start began has ended', () => !started.some(isAlive))
  // Postgres writes this line when it shuts down in order, but not when it is killed.
  expect(readFileSync(join(dataDir, 'postgres.log'), 'utf8')).toContain('database system is shut down')
}

describe.runIf(process.platform === 'linux')('npm start', () => {
  it('ends all processes when npm gets SIGTERM', { timeout: 240_000 }, async () => {
    const running = await npmStart('term')
    process.kill(running.npm, 'SIGTERM')
    await expectNothingLeft(running)
    expect((await running.exit).code).toBe(0)
  })

  it('ends all processes when the shell in between gets SIGTERM from npm and dies', { timeout: 240_000 }, async () => {
    const running = await npmStart('shell', 'node dist/cli/quipu.js start')
    process.kill(running.npm, 'SIGTERM')
    await expectNothingLeft(running)
  })

  it('ends all processes when npm is killed', { timeout: 240_000 }, async () => {
    const running = await npmStart('kill')
    process.kill(running.npm, 'SIGKILL')
    await expectNothingLeft(running)
  })

  it('drains at one Ctrl-C, although npm passes the signal on a second time', { timeout: 240_000 }, async () => {
    const running = await npmStart('interrupt')
    process.kill(-running.npm, 'SIGINT')
    await expectNothingLeft(running)
    expect((await running.exit).code).toBe(0)
  })

  it('ends all processes when its terminal is closed', { timeout: 240_000 }, async () => {
    const running = await npmStart('hangup')
    process.kill(-running.npm, 'SIGHUP')
    await expectNothingLeft(running)
  })
})
