import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { getPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { EngineLost } from '../../../src/execution/engine/engine.ts'
import { openTestPool, type TestPool } from '../../support/engines.ts'

let engines: TestPool
beforeEach(async () => {
  engines = await openTestPool({ deadAfterMs: 4_000 })
})
afterEach(async () => {
  await engines[Symbol.asyncDispose]()
})

const patient = { timeout: 120_000 }
/** About a second of work with a known answer. */
const work = `SELECT json_array(count(*))::VARCHAR FROM range(80000000) r(i) WHERE i % 3 = 0`
const answer = [[26_666_667]]
/** Runs so long that the test always kills it first. */
const longWork = `SELECT json_array(count(*))::VARCHAR FROM range(80000000000) r(i) WHERE i % 3 = 0`

async function busyPid(except?: number): Promise<number> {
  const busy = (): number | undefined =>
    engines.pool.children().find(({ running, pid }) => running > 0 && pid !== except)?.pid
  await expect.poll(busy, patient).toBeDefined()
  return busy()!
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Starts another process with an engine pool; `pids` are the pids of its two busy engines. */
async function startParent(folder: string): Promise<{ parent: ChildProcess; pids: number[] }> {
  const program = new URL('../../support/engine-parent.mjs', import.meta.url).pathname
  const parent = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  const line = await new Promise<string>((resolve) => parent.stdout.once('data', (data: Buffer) => resolve(`${data}`)))
  return { parent, pids: JSON.parse(line) as number[] }
}

describe('An engine killed at work', () => {
  it.each(['shared', 'dedicated'] as const)(
    'is replaced, and the pool runs its %s statement again',
    async (placement) => {
      const rows = engines.rows(work, { placement })
      const pid = await busyPid()
      process.kill(pid, 'SIGKILL')
      expect(await rows).toEqual(answer)
      await expect
        .poll(() => engines.events, patient)
        .toContainEqual(expect.objectContaining({ type: 'ended', pid, reason: 'crash' }))
      expect(await engines.rows(`SELECT '[1]'`)).toEqual([[1]])
    },
  )

  it('fails its statement with EngineLost after a second kill under the same statement', async () => {
    const lost = expect(engines.run(longWork, { placement: 'dedicated' }).done).rejects.toBeInstanceOf(EngineLost)
    const first = await busyPid()
    process.kill(first, 'SIGKILL')
    process.kill(await busyPid(first), 'SIGKILL')
    await lost
  })

  it('fails a stream with EngineLost if the stream has already delivered rows', async () => {
    let calls = 0
    const output = { kind: 'stream', onRows: () => void calls++ } as const
    const sql = `SELECT json_array(i)::VARCHAR FROM range(100000000) r(i)`
    const run = engines.run(sql, { placement: 'dedicated', output })
    await expect.poll(() => calls, patient).toBeGreaterThan(0)
    process.kill(await busyPid(), 'SIGKILL')
    await expect(run.done).rejects.toMatchObject({ name: 'EngineLost', reason: 'crash' })
  })

  it('is replaced, and the pool runs a stream again that has delivered no rows', async () => {
    const streamed = engines.stream(work)
    process.kill(await busyPid(), 'SIGKILL')
    expect((await streamed).text).toBe('[26666667],\n')
  })
})

describe('An engine that a statement broke', () => {
  it('is replaced at the next statement, and this statement succeeds', async () => {
    // DuckDB accepts this call in spite of the locked configuration, and then every later statement of the instance
    // fails. The statement wall exists for such calls; it allows this function only in tests.
    await engines.run(`SELECT * FROM enable_logging(storage := 'file', storage_path := '/nowhere')`).done
    const { pid } = engines.pool.children()[0]!
    expect(await engines.rows(`SELECT '[1]'`)).toEqual([[1]])
    await expect.poll(() => isAlive(pid), patient).toBe(false)
    expect(await engines.rows(`SELECT '[2]'`)).toEqual([[2]])
  })
})

describe.runIf(process.platform === 'linux')('An engine at work', () => {
  it('runs at a lower CPU priority than the processes that answer clients', async () => {
    const rows = engines.rows(work)
    const pid = await busyPid()
    const niceOf = (thread: string): number => {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1')
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])
    }
    const threads = readdirSync(`/proc/${pid}/task`)
    expect(getPriority(pid)).toBeGreaterThanOrEqual(10)
    // Node starts some of its threads before the program lowers the priority.
    expect(threads.filter((thread) => niceOf(thread) >= 10).length).toBeGreaterThan(1)
    expect(await rows).toEqual(answer)
  })
})

describe('An engine that does not respond', () => {
  it('is killed when its heartbeat stops, and the pool runs its statement again', async () => {
    const rows = engines.rows(work)
    const pid = await busyPid()
    process.kill(pid, 'SIGSTOP')
    expect(await rows).toEqual(answer)
    expect(engines.events).toContainEqual(expect.objectContaining({ type: 'ended', pid, reason: 'hang' }))
  })

  it('is killed when its statement is canceled', async () => {
    const run = engines.run(longWork)
    const pid = await busyPid()
    process.kill(pid, 'SIGSTOP')
    run.cancel()
    await expect(run.done).rejects.toMatchObject({ errorName: 'USER_CANCELED' })
    await expect.poll(() => isAlive(pid), patient).toBe(false)
    expect(engines.events).toContainEqual(expect.objectContaining({ type: 'canceled', how: 'kill' }))
    expect(await engines.rows(`SELECT '[1]'`)).toEqual([[1]])
  })
})

describe('A parent process that was stopped for a time', () => {
  it('does not kill its engines for the time in which it was stopped', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'quipu-still-'))
    const { parent, pids } = await startParent(folder)
    parent.kill('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, 3000))
    parent.kill('SIGCONT')
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(pids.filter(isAlive)).toEqual(pids)
    parent.kill('SIGKILL')
    await expect.poll(() => pids.filter(isAlive), patient).toEqual([])
    rmSync(folder, { recursive: true, force: true })
  })
})

describe('The shutdown of engines', () => {
  it('ends all engines and running statements when the pool stops', async () => {
    const runs = [engines.run(longWork), engines.run(longWork, { placement: 'dedicated' })]
    const failures = Promise.all(
      runs.map(({ done }) => expect(done).rejects.toMatchObject({ errorName: 'SERVER_SHUTTING_DOWN' })),
    )
    await busyPid()
    const pids = engines.pool.children().map(({ pid }) => pid)
    await engines.pool.stop()
    await failures
    expect(pids.filter(isAlive)).toEqual([])
    expect(readdirSync(engines.settings.folder)).toEqual([])
    await expect(engines.run('SELECT 1').done).rejects.toMatchObject({ errorName: 'SERVER_SHUTTING_DOWN' })
  })

  it('ends all engines when the parent process is killed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'quipu-orphans-'))
    const { parent, pids } = await startParent(folder)
    expect(pids).toHaveLength(2)
    expect(pids.every(isAlive)).toBe(true)
    parent.kill('SIGKILL')
    await expect.poll(() => pids.filter(isAlive), patient).toEqual([])
    rmSync(folder, { recursive: true, force: true })
  })
})
