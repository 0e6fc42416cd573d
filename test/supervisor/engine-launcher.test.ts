import { spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { engineIds, groupsOfParents, idOfSlot, isEngineGroup } from '../../src/supervisor/engine-ids.ts'
import { launchEngines, type EngineLaunch } from '../../src/supervisor/engine-launch.ts'
import type { AskEngine, EngineMessage } from '../../src/supervisor/messages.ts'
import { commandOf, usersOf } from '../support/process-users.ts'
import { isAlive, waitUntil } from '../support/quipu-process.ts'

/** Returns the processes that now run as a user. */
function processesOf(user: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isAlive(Number(name)))
    .map(Number)
    .filter((pid) => {
      try {
        return usersOf(pid).uids[0] === user
      } catch {
        return false
      }
    })
}

let home: string
let launch: EngineLaunch | undefined
let reported: EngineMessage[]
const idsOf = (dataDir: string, standby = false) =>
  engineIds({ dataDir, tablesDir: join(dataDir, 'tables'), standby, processes: 2, slots: 3 })!

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'quipu-launcher-'))
  chmodSync(home, 0o755)
  reported = []
})
afterEach(async () => {
  launch?.stop()
  await launch?.gone
  launch = undefined
  rmSync(home, { recursive: true, force: true })
})

describe('The user ids of engines', () => {
  it('are the same at every start, and differ by folder, process, slot and stand-by', () => {
    const ids = idsOf(home)
    expect(idsOf(home)).toEqual(ids)
    const all = [ids, idsOf(join(home, 'other')), idsOf(home, true)].flatMap((one) =>
      [0, 1].flatMap((number) => [0, 1, 2].map((slot) => idOfSlot(one, number, slot))),
    )
    expect(new Set(all).size).toBe(18)
    expect(all.every(isEngineGroup)).toBe(true)
    expect(all).not.toContain(ids.gate)
    expect(groupsOfParents(ids, 2)).toEqual([ids.gate, ...all.slice(0, 6)])
    expect([0, 1000, 65_534, process.getgid!()].some(isEngineGroup)).toBe(false)
  })

  it('are absent if the range has no room for all of them', () => {
    const use = { dataDir: home, tablesDir: home, standby: false, slots: 1000 }
    expect(engineIds({ ...use, processes: 2 })).toBeDefined()
    expect(engineIds({ ...use, processes: 1000 })).toBeUndefined()
  })
})

describe.runIf(process.getuid?.() === 0)('The user ids of running engines', () => {
  it('are not given to another folder that would compute the same ids', async () => {
    const ids = idsOf(home)
    const as = (user: number, group: number): ChildProcess =>
      spawn('setpriv', [`--reuid=${user}`, `--regid=${user}`, `--groups=${group}`, 'sleep', '600'], { stdio: 'ignore' })
    const isUser = (child: ChildProcess, user: number) =>
      waitUntil('it is that user', () => usersOf(child.pid!).uids[0] === user)
    const parent = as(65_534, idOfSlot(ids, 1, 2))
    const engine = as(idOfSlot(ids, 0, 0), ids.gate)
    try {
      await Promise.all([isUser(parent, 65_534), isUser(engine, idOfSlot(ids, 0, 0))])
      const other = idsOf(home)
      expect(Math.abs(other.first - ids.first)).toBeGreaterThanOrEqual(512)
      expect(other.gate).toBe(ids.gate)
      parent.kill('SIGKILL')
      // The rest of an engine without a parent does not block its ids. The next start uses them and ends that
      // process.
      await waitUntil('the parent is gone', () => !isAlive(parent.pid!))
      expect(idsOf(home)).toEqual(ids)
    } finally {
      for (const child of [parent, engine]) child.kill('SIGKILL')
    }
  })
})

describe.runIf(process.getuid?.() === 0)('The launcher', () => {
  function launcher(text = `process.stderr.write('at work'); setInterval(() => {}, 1000)`): EngineLaunch {
    const program = join(home, 'program.mjs')
    writeFileSync(program, text, { mode: 0o644 })
    launch = launchEngines({
      ids: idsOf(home),
      folders: [join(home, 'a'), join(home, 'b')],
      tasks: 64,
      program: pathToFileURL(program).href,
      functionsModule: '',
    })
    launch.hold()
    return launch
  }
  const start = (slot: number, run: number): AskEngine => ({
    do: 'start',
    slot,
    run,
    dataKilobytes: 2 ** 22,
    beatMs: 250,
  })
  const started = async (run: number): Promise<number> => {
    const find = () => reported.find((one) => one.type === 'started' && one.run === run)
    await waitUntil(`run ${run} has started`, () => find() !== undefined)
    const found = find()!
    return found.type === 'started' ? found.pid : 0
  }
  const ended = (run: number) =>
    waitUntil(`run ${run} has ended`, () => reported.some((one) => one.type === 'ended' && one.run === run))

  it('starts a slot as its user, and ends it on request and before the next run of the slot', async () => {
    const { ask, plan } = launcher()
    const report = (message: EngineMessage) => void reported.push(message)
    ask(1, start(2, 7), report)
    const first = await started(7)
    const user = idOfSlot(plan.ids, 1, 2)
    await waitUntil('it is its user', () => usersOf(first).uids[0] === user)
    expect(usersOf(first)).toEqual({
      uids: [user, user, user, user],
      gids: [user, plan.ids.gate].toSorted((a, b) => a - b),
    })
    ask(1, { do: 'kill', slot: 2, run: 6 }, report)
    ask(1, start(2, 8), report)
    await ended(7)
    const second = await started(8)
    expect([isAlive(first), isAlive(second)]).toEqual([false, true])
    ask(1, { do: 'kill', slot: 2, run: 8 }, report)
    await ended(8)
    expect(isAlive(second)).toBe(false)
  })

  it('accepts only whole numbers within its bounds', async () => {
    const { ask } = launcher()
    const report = (message: EngineMessage) => void reported.push(message)
    const good = start(0, 1)
    const bad: unknown[] = [
      { ...good, slot: 3 },
      { ...good, slot: -1 },
      { ...good, slot: 0.5 },
      { ...good, slot: '0' },
      { ...good, slot: [0] },
      { ...good, run: 'x' },
      { ...good, dataKilobytes: '1; id' },
      { ...good, dataKilobytes: Number.NaN },
      { ...good, beatMs: 0 },
      { ...good, beatMs: { a: 1 } },
      { ...good, do: 'exec' },
      { do: 'kill' },
      {},
    ]
    for (const one of bad) for (const number of [0, 1]) ask(number, one as AskEngine, report)
    for (const number of [2, -1, 0.5]) ask(number, good, report)
    // The launcher handles this request last, and only this one has an answer.
    ask(
      0,
      { ...good, run: 2, program: '/bin/true', folder: '/etc', env: { A: 'b' }, uid: 0 } as unknown as AskEngine,
      report,
    )
    await started(2)
    expect(reported).toHaveLength(1)
  })

  it('ends the engines of a process that is gone, and all engines when it stops', async () => {
    const { ask, childEnded, stop, gone } = launcher()
    const report = (message: EngineMessage) => void reported.push(message)
    ask(0, start(0, 1), report)
    ask(0, start(1, 2), report)
    ask(1, start(0, 3), report)
    const [a, b, c] = [await started(1), await started(2), await started(3)]
    await childEnded(0)
    expect([a, b, c].map(isAlive)).toEqual([false, false, true])
    stop()
    await gone
    expect(isAlive(c)).toBe(false)
  })

  /** Returns the processes of this test's launcher: the launcher or its watcher. */
  const launchers = (role: 'launcher' | 'watcher'): number[] =>
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && isAlive(Number(name)))
      .map(Number)
      .filter((pid) => {
        const words = commandOf(pid).split('\0').filter(Boolean)
        return words.some((word) => word.includes(join(home, 'program.mjs'))) && words[1]?.includes('engine-launcher')
      })
      .filter((pid) => holdsSocketOf(pid) === (role === 'launcher'))

  /** Says whether a process is the launcher. Only a watcher has a channel to its launcher. */
  function holdsSocketOf(pid: number): boolean {
    try {
      return !readFileSync(`/proc/${pid}/environ`, 'utf8').includes('NODE_CHANNEL_FD')
    } catch {
      return false
    }
  }

  it('is started again after a kill, as is its watcher, and its engines are ended', async () => {
    const { ask, childEnded } = launcher()
    const report = (message: EngineMessage) => void reported.push(message)
    ask(0, start(0, 1), report)
    const first = await started(1)
    await waitUntil('the watcher is there', () => launchers('watcher').length === 1)
    const filesOf = (pid: number): string[] =>
      readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
    expect(filesOf(first)).not.toContain(readlinkSync(`/proc/${launchers('launcher')[0]!}/fd/3`))
    const [watcher] = launchers('watcher')
    process.kill(watcher!, 'SIGKILL')
    await waitUntil('another watcher is there', () => {
      const [now] = launchers('watcher')
      return now !== undefined && now !== watcher
    })
    expect(isAlive(first)).toBe(true)
    process.kill(launchers('launcher')[0]!, 'SIGKILL')
    await ended(1)
    expect(isAlive(first)).toBe(false)
    ask(0, start(0, 2), report)
    const second = await started(2)
    ask(1, start(0, 3), report)
    await started(3)
    await childEnded(1)
    ask(0, { do: 'kill', slot: 0, run: 2 }, report)
    await ended(2)
    expect(isAlive(second)).toBe(false)
    expect(reported.filter(({ type }) => type === 'ended')).toHaveLength(2)
  })

  it("limits the number of processes of a slot's user", async () => {
    const { ask, plan } = launcher(
      `import { spawn } from 'node:child_process'
       let failed = 0
       for (let i = 0; i < 100; i++) {
         try { spawn('/bin/sleep', ['600'], { stdio: 'ignore' }).on('error', () => failed++) } catch { failed++ }
       }
       setTimeout(() => { process.stderr.write(failed + ' failed'); process.exit() }, 1)`,
    )
    const report = (message: EngineMessage) => void reported.push(message)
    ask(0, start(0, 1), report)
    await ended(1)
    const words = reported.map((one) => (one.type === 'ended' ? one.words : '')).join('')
    expect(Number(/(\d+) failed/.exec(words)?.[1])).toBeGreaterThanOrEqual(100 - plan.tasks)
    expect(processesOf(idOfSlot(plan.ids, 0, 0))).toEqual([])
  })

  it.each(['STOP', 'KILL'])('ends an engine that defends itself with SIG%s', async (name) => {
    const { ask, plan } = launcher(
      `import { spawn } from 'node:child_process'
       spawn('/bin/sh', ['-c', 'while :; do kill -${name} -1; done'], { detached: true, stdio: 'ignore' })
       spawn('/bin/sleep', ['600'], { detached: true, stdio: 'ignore' })`,
    )
    const report = (message: EngineMessage) => void reported.push(message)
    const user = idOfSlot(plan.ids, 0, 0)
    const defends = () => processesOf(user).some((pid) => commandOf(pid).includes('while'))
    ask(0, start(0, 1), report)
    // The engine itself may be the first victim of the signal.
    await waitUntil('it defends itself', () => defends() || reported.some(({ type }) => type === 'ended'))
    ask(0, { do: 'kill', slot: 0, run: 1 }, report)
    await ended(1)
    expect(processesOf(user)).toEqual([])
  })
})
