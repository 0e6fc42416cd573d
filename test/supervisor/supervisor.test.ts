import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ChildStart } from '../../src/supervisor/messages.ts'
import type { LockState } from '../../src/supervisor/data-folder-lock.ts'
import { Supervisor } from '../../src/supervisor/supervisor.ts'
import { temporaryFolder, waitUntil } from '../support/quipu-process.ts'

let folder: ReturnType<typeof temporaryFolder>
beforeAll(() => void (folder = temporaryFolder()))
afterAll(() => folder.remove())

let number = 0

/**
 * A supervisor over one child program. The program is JavaScript that can use its `start` message and `life`, the
 * number of children that were started before it. The start messages of all children are kept in order.
 */
function supervise(
  program: string,
  home = join(folder.path, `data-${++number}`),
  deadMs = 60_000,
  v8Options: readonly string[] = [],
) {
  const file = join(folder.path, `child-${++number}.mjs`)
  const starts = join(folder.path, `starts-${number}`)
  writeFileSync(starts, '')
  writeFileSync(
    file,
    `import { appendFileSync, readFileSync } from 'node:fs'
     const send = (message) => new Promise((resolve) => process.send(message, resolve))
     process.once('disconnect', () => process.exit(0))
     const ready = () => { setInterval(() => send({ type: 'beat' }), 50); return send({ type: 'ready' }) }
     process.on('message', async ({ type, start }) => {
       if (type !== 'start') return
       const life = readFileSync(${JSON.stringify(starts)}, 'utf8').split('\\n').length - 1
       appendFileSync(${JSON.stringify(starts)}, JSON.stringify(start) + '\\n')
       ${program}
     })`,
  )
  const reported: string[] = []
  const supervisor = new Supervisor({
    dataDir: home,
    listen: { scheme: 'http', host: '127.0.0.1', port: 0 },
    embeddedPostgres: false,
    children: () => [{ name: 'coordinator', process: 'coordinator', program: file, v8Options, config: { answer: 42 } }],
    times: { deadMs, backoffMinMs: 20, backoffMaxMs: 80, drainMs: 1_000 },
    print: (line) => reported.push(line),
  })
  return {
    home,
    supervisor,
    reported,
    starts: (): ChildStart[] =>
      readFileSync(starts, 'utf8')
        .trim()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as ChildStart),
  }
}

const EXIT = (code: number, line = '') =>
  `${line === '' ? '' : `await send({ type: 'exit', line: ${JSON.stringify(line)} });`} process.exit(${code})`

describe('The first start', () => {
  it.each([64, 69])("fails with the child's line if the child exits with %i", async (code) => {
    const { supervisor, starts } = supervise(EXIT(code, 'catalog tpch.json: not JSON'))
    await expect(supervisor.start()).rejects.toThrow('catalog tpch.json: not JSON')
    expect(starts()).toHaveLength(1)
  })

  it('is tried three times if the child crashes', async () => {
    const { supervisor, starts } = supervise(EXIT(70))
    await expect(supervisor.start()).rejects.toThrow('coordinator ended with exit code 70')
    expect(starts()).toHaveLength(3)
  })

  it('passes the configuration and the address of the socket to the child', async () => {
    const { supervisor, starts } = supervise('await ready()')
    const { url } = await supervisor.start()
    expect(starts()).toEqual([{ config: { answer: 42 }, url, follow: false, successor: false, restarts: [] }])
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    await supervisor.stop()
  })
})

describe('A child of the supervisor', () => {
  it('gets its own V8 options after the common ones', async () => {
    const file = join(folder.path, `options-${++number}`)
    const writesArguments = `writeFileSync(${JSON.stringify(file)}, JSON.stringify(process.execArgv))`
    const program = `const { writeFileSync } = await import('node:fs'); ${writesArguments}; await ready()`
    const { supervisor } = supervise(program, undefined, undefined, ['--heap-growing-percent=300'])
    await supervisor.start()
    const options = JSON.parse(readFileSync(file, 'utf8')) as string[]
    expect(options.at(-1)).toBe('--heap-growing-percent=300')
    expect(options).toContain('--min-semi-space-size=16')
    await supervisor.stop()
  })
})

describe('The listening socket', () => {
  it('is sent 16 times, so that the child accepts 16 connections in one pass of its event loop', async () => {
    const [goOn, counts] = [join(folder.path, 'go-on'), join(folder.path, 'counts')]
    const { supervisor } = supervise(`
      const handles = []
      const all = new Promise((resolve) => process.on('message', ({ left }, handle) => {
        handles.push(handle)
        if (left === 0) resolve()
      }))
      const { existsSync, writeFileSync } = await import('node:fs')
      const { createServer } = await import('node:net')
      const turns = [0]
      const nextLoopPass = () => { turns.push(0); setImmediate(nextLoopPass) }
      const accepted = () => {
        turns[turns.length - 1]++
        if (turns.reduce((sum, count) => sum + count) === 64) writeFileSync('${counts}', JSON.stringify(turns))
      }
      await all
      await Promise.all(handles.map((handle) => new Promise((resolve) => createServer(accepted).listen(handle, resolve))))
      await ready()
      while (!existsSync('${goOn}')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
      nextLoopPass()`)
    const { url } = await supervisor.start()
    // The kernel accepts the connections, whatever the child does.
    const sockets = Array.from({ length: 64 }, () => connect(Number(new URL(url!).port), '127.0.0.1'))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    writeFileSync(goOn, '')
    await waitUntil('all are accepted', () => existsSync(counts) && readFileSync(counts, 'utf8') !== '')
    expect(Math.max(...(JSON.parse(readFileSync(counts, 'utf8')) as number[]))).toBe(16)
    for (const socket of sockets) socket.destroy()
    await supervisor.stop()
  })

  it.runIf(process.platform === 'linux')('leaves no handle open if children die while it is sent', async () => {
    const { supervisor, starts } = supervise(`
      process.on('message', ({ left }) => { if (life > 0 && life < 4 && left === 9) process.exit(70) })
      await ready()
      if (life === 0) setTimeout(() => process.exit(70), 50)`)
    await supervisor.start()
    const before = openSockets()
    await waitUntil('a child that stays', () => starts().length === 5)
    await waitUntil('no handle is left over', () => openSockets() <= before)
    await supervisor.stop()
  })
})

/** Counts the open sockets of this process, which is the supervisor. */
function openSockets(): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:')
    } catch {
      // The file was closed meanwhile.
      return false
    }
  }).length
}

describe('A child that was ready', () => {
  it.each([64, 69, 70])('is started again with growing pauses if it exits with %i', async (code) => {
    // A child that was never ready cannot count as one that ran well for a while, even if it ends slowly.
    const { supervisor, reported } = supervise(`if (life > 0 && life < 4) { ${EXIT(code)} }
      await ready(); if (life === 0) setTimeout(() => process.exit(${code}), 50)`)
    await supervisor.start()
    await waitUntil('four restarts', () => reported.length === 4)
    expect(reported.map((line) => line.replace(/^.*in /, ''))).toEqual(['20 ms', '40 ms', '80 ms', '80 ms'])
    await supervisor.stop()
  })

  it('passes its writer and its files in force to its successor', async () => {
    const { supervisor, starts } =
      supervise(`await send({ type: 'file', file: life % 2 ? 'groups' : 'rules', text: String(life) }); await ready()
      if (life < 2) { await send({ type: 'writer', writer: 'writer ' + life }); process.exit(70) }`)
    await supervisor.start()
    await waitUntil('three children', () => starts().length === 3)
    expect(starts().map((start) => start.deadWriter)).toEqual([undefined, 'writer 0', 'writer 1'])
    expect(starts().map(({ files }) => files)).toEqual([undefined, { rules: '0' }, { rules: '0', groups: '1' }])
    expect(starts()[2]!.restarts).toEqual([{ process: 'coordinator', reason: 'exit', count: 2 }])
    await supervisor.stop()
  })

  it('does not pass its writer on if it was fenced', async () => {
    const { supervisor, starts } = supervise(`await ready()
      if (life === 0) { await send({ type: 'writer', writer: 'fenced' }); process.exit(75) }`)
    await supervisor.start()
    await waitUntil('a second child', () => starts().length === 2)
    expect(starts()[1]!.deadWriter).toBeUndefined()
    await supervisor.stop()
  })

  it('is not started again after it announced its end, even if it is then killed', async () => {
    const { supervisor, reported, starts } = supervise(
      `await ready(); await send({ type: 'last' }); process.kill(process.pid, 'SIGKILL')`,
    )
    await supervisor.start()
    await supervisor.retired
    expect(reported).toEqual(['coordinator has ended as requested, but by SIGKILL'])
    expect(starts()).toHaveLength(1)
    await supervisor.stop()
  })

  it('is killed if its event loop is silent', async () => {
    const { supervisor, reported, starts } = supervise('await ready(); if (life === 0) for (;;);', undefined, 3_000)
    await supervisor.start()
    await waitUntil('the successor starts', () => starts().length === 2)
    expect(reported[0]).toBe('coordinator has been silent for 3000 ms: killing it')
    expect(starts()[1]!.restarts).toEqual([{ process: 'coordinator', reason: 'hang', count: 1 }])
    await supervisor.stop()
  })

  it('is killed if it does not drain in time', async () => {
    const { supervisor } = supervise("process.on('SIGTERM', () => {}); await ready()")
    await supervisor.start()
    const [first, second] = [supervisor.stop(), supervisor.stop()]
    expect(first).toBe(second)
    await first
  })
})

describe('The next supervisor', () => {
  it('reads the writer of a supervisor that ended without a hand-over', async () => {
    const first = supervise(
      "process.on('SIGTERM', () => process.exit(70)); await send({ type: 'writer', writer: 'w1' }); await ready()",
    )
    await first.supervisor.start()
    await first.supervisor.stop()
    const file = join(first.home, 'supervisor.json')
    const state = JSON.parse(readFileSync(file, 'utf8')) as LockState
    expect(state.writer).toBe('w1')
    // Both supervisors are in this process: the file must look as if the first process were gone.
    writeFileSync(file, JSON.stringify({ ...state, supervisor: { ...state.supervisor, startTime: 'long ago' } }))

    const second = supervise('await ready()', first.home)
    await second.supervisor.start()
    expect(second.starts()[0]!.deadWriter).toBe('w1')
    await second.supervisor.stop()
  })
})
