import { setTimeout as sleep } from 'node:timers/promises'
import { readFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { commandOf, familyOf } from '../support/process-users.ts'
import { freePort } from '../support/postgres.ts'
import { programsOfEachTest } from '../support/programs-of-each-test.ts'
import { isAlive, postgresOf, processesOf, runningOn, waitUntil } from '../support/quipu-process.ts'
import { run } from '../support/statement-client.ts'

const programs = programsOfEachTest()
const STATEMENT = 'SELECT count(*) FROM tpch.tiny.lineitem a, tpch.tiny.nation b'
const RIGHT = [[60_175 * 25]]
const AGAIN_MS = 100

/** Starts a client that repeats one statement, also while it cannot reach the server. */
function startClient(url: string) {
  const seen = { begun: 0, lastRight: 0, wrong: [] as unknown[], stop: false }
  const done = (async () => {
    while (!seen.stop) {
      const number = ++seen.begun
      try {
        const { error, rows } = await run(url, STATEMENT)
        if (error === undefined && JSON.stringify(rows) === JSON.stringify(RIGHT)) seen.lastRight = number
        else seen.wrong.push(error ?? rows)
      } catch {
        await sleep(AGAIN_MS)
      }
    }
  })()
  return { seen, done }
}

function hasParentChannel(pid: number): boolean {
  return readFileSync(`/proc/${pid}/environ`, 'utf8').includes('NODE_CHANNEL_FD')
}

it('the server answers a client correctly after a kill of any one of its processes', { timeout: 400_000 }, async () => {
  const port = await freePort()
  const start = () => programs.spawn(['start', '--port', String(port), '--workers', '1', '--data-dir', programs.data])
  let quipu = start()
  const { seen, done } = startClient(await quipu.url)
  onTestFinished(() => void (seen.stop = true))
  const answersAgain = async (): Promise<void> => {
    const { begun } = seen
    await waitUntil('a statement that began after the kill is answered', () => seen.lastRight > begun)
    expect(seen.wrong).toEqual([])
  }
  const kill = async (what: string, pid: number | undefined): Promise<void> => {
    expect(pid, what).toBeDefined()
    process.kill(pid!, 'SIGKILL')
    await waitUntil(`${what} is gone`, () => !isAlive(pid!))
    await answersAgain()
    expect(isAlive(quipu.pid), `the first process after the kill of ${what}`).toBe(true)
  }
  await answersAgain()
  await kill('the coordinator', processesOf(programs.data).children[0])
  await kill('the worker', processesOf(programs.data).children[1])
  if (process.getuid?.() === 0) {
    await kill('an engine', runningOn(programs.data, 'engine-entry')[0])
    const [launcher] = runningOn(programs.data, 'engine-launcher').filter((pid) => !hasParentChannel(pid))
    const watchers = () => runningOn(programs.data, 'engine-launcher').filter((pid) => pid !== launcher)
    const [watcher] = watchers()
    await kill('the watcher', watcher)
    // Each of these two restarts the other, so the test kills them one at a time.
    await waitUntil('another watcher is there', () => watchers().some((pid) => pid !== watcher))
    await kill('the launcher', launcher)
  } else {
    await kill(
      'an engine',
      familyOf(quipu.pid).find((pid) => commandOf(pid).includes('/engine-process.js')),
    )
  }
  await kill('Postgres', postgresOf(programs.data))
  quipu.signal('SIGKILL')
  await quipu.exit
  quipu = start()
  await quipu.url
  await answersAgain()
  seen.stop = true
  await done
  quipu.signal('SIGTERM')
  expect(await quipu.exit).toMatchObject({ code: 0 })
})
