import { readFileSync, writeFileSync } from 'node:fs'
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
 * A supervisor over one child program, given as JavaScript that knows its `start` and `life`, how many were started
 * before it; every child's start message is kept in order.
 */
function supervise(program: string, home = join(folder.path, `data-${++number}`), deadMs = 60_000) {
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
  const told: string[] = []
  const supervisor = new Supervisor({
    dataDir: home,
    listen: { scheme: 'http', host: '127.0.0.1', port: 0 },
    embeddedPostgres: false,
    children: () => [{ name: 'coordinator', process: 'coordinator', program: file, config: { answer: 42 } }],
    times: { deadMs, backoffMinMs: 20, backoffMaxMs: 80, drainMs: 1_000 },
    tell: (line) => told.push(line),
  })
  return {
    home,
    supervisor,
    told,
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

describe('the first start', () => {
  it.each([64, 69])("ends with the child's line when it exits with %i", async (code) => {
    const { supervisor, starts } = supervise(EXIT(code, 'catalog tpch.json: not JSON'))
    await expect(supervisor.start()).rejects.toThrow('catalog tpch.json: not JSON')
    expect(starts()).toHaveLength(1)
  })

  it('is tried three times when the child crashes', async () => {
    const { supervisor, starts } = supervise(EXIT(70))
    await expect(supervisor.start()).rejects.toThrow('coordinator ended with exit code 70')
    expect(starts()).toHaveLength(3)
  })

  it('gives the child its configuration and the address of the socket', async () => {
    const { supervisor, starts } = supervise('await ready()')
    const { url } = await supervisor.start()
    expect(starts()).toEqual([{ config: { answer: 42 }, url, follow: false, successor: false, restarts: [] }])
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    await supervisor.stop()
  })
})

describe('a child that was ready', () => {
  it.each([64, 69, 70])('is started again, with pauses that grow, when it exits with %i', async (code) => {
    // Those that were not ready cannot have run well for a while, however slow they end.
    const { supervisor, told } = supervise(`if (life > 0 && life < 4) { ${EXIT(code)} }
      await ready(); if (life === 0) setTimeout(() => process.exit(${code}), 50)`)
    await supervisor.start()
    await waitUntil('four restarts', () => told.length === 4)
    expect(told.map((line) => line.replace(/^.*in /, ''))).toEqual(['20 ms', '40 ms', '80 ms', '80 ms'])
    await supervisor.stop()
  })

  it('tells its successor which writer it was, so that the successor may claim at once', async () => {
    const { supervisor, starts } = supervise(`await ready()
      if (life < 2) { await send({ type: 'writer', writer: 'writer ' + life }); process.exit(70) }`)
    await supervisor.start()
    await waitUntil('three children', () => starts().length === 3)
    expect(starts().map((start) => start.deadWriter)).toEqual([undefined, 'writer 0', 'writer 1'])
    expect(starts()[2]!.restarts).toEqual([{ process: 'coordinator', reason: 'exit', count: 2 }])
    await supervisor.stop()
  })

  it('tells nothing of a writer that was fenced', async () => {
    const { supervisor, starts } = supervise(`await ready()
      if (life === 0) { await send({ type: 'writer', writer: 'fenced' }); process.exit(75) }`)
    await supervisor.start()
    await waitUntil('a second child', () => starts().length === 2)
    expect(starts()[1]!.deadWriter).toBeUndefined()
    await supervisor.stop()
  })

  it('is killed when its event loop is silent', async () => {
    const { supervisor, told, starts } = supervise('await ready(); if (life === 0) for (;;);', undefined, 3_000)
    await supervisor.start()
    await waitUntil('the successor starts', () => starts().length === 2)
    expect(told[0]).toBe('coordinator has been silent for 3000 ms: killing it')
    expect(starts()[1]!.restarts).toEqual([{ process: 'coordinator', reason: 'hang', count: 1 }])
    await supervisor.stop()
  })

  it('is killed when it does not drain in time', async () => {
    const { supervisor } = supervise("process.on('SIGTERM', () => {}); await ready()")
    await supervisor.start()
    const [first, second] = [supervisor.stop(), supervisor.stop()]
    expect(first).toBe(second)
    await first
  })
})

describe('the next supervisor', () => {
  it('learns the writer of one that ended without handing its place over', async () => {
    const first = supervise(
      "process.on('SIGTERM', () => process.exit(70)); await send({ type: 'writer', writer: 'w1' }); await ready()",
    )
    await first.supervisor.start()
    await first.supervisor.stop()
    const file = join(first.home, 'supervisor.json')
    const state = JSON.parse(readFileSync(file, 'utf8')) as LockState
    expect(state.writer).toBe('w1')
    // Both supervisors are this test's process: the first must look like one that is gone.
    writeFileSync(file, JSON.stringify({ ...state, supervisor: { ...state.supervisor, startTime: 'long ago' } }))

    const second = supervise('await ready()', first.home)
    await second.supervisor.start()
    expect(second.starts()[0]!.deadWriter).toBe('w1')
    await second.supervisor.stop()
  })
})
