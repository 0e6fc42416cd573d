import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lockDataFolder, type LockState } from '../../src/supervisor/data-folder-lock.ts'
import { identify } from '../../src/supervisor/process-identity.ts'
import { isAlive, temporaryFolder } from '../support/quipu-process.ts'

const MODULE = new URL('../../dist/supervisor/data-folder-lock.js', import.meta.url).href

let folder: ReturnType<typeof temporaryFolder>
beforeAll(() => void (folder = temporaryFolder()))
afterAll(() => folder.remove())

/** A data folder with the file of an earlier supervisor. */
function leftBy(name: string, state: LockState | string): string {
  const data = join(folder.path, name)
  mkdirSync(data)
  writeFileSync(join(data, 'supervisor.json'), typeof state === 'string' ? state : JSON.stringify(state))
  return data
}

const gone = { pid: 4_000_000, startTime: 'never' }

describe('the lock of a data folder', () => {
  it('is taken, names this process, and goes with it', async () => {
    const data = join(folder.path, 'fresh')
    const lock = await lockDataFolder(data)
    lock.update({ children: [gone], writer: undefined })
    const state = JSON.parse(readFileSync(join(data, 'supervisor.json'), 'utf8')) as LockState
    expect(state).toEqual({ supervisor: identify(process.pid), children: [gone] })
    await expect(lockDataFolder(data)).rejects.toThrow(`Another Quipu (process ${process.pid}) already runs on ${data}`)
    lock.release()
    expect(existsSync(join(data, 'supervisor.json'))).toBe(false)
  })

  it.each([
    ['a process that is gone', { supervisor: gone, children: [], writer: 'w' }],
    [
      'a number that another process has now',
      { supervisor: { pid: process.pid, startTime: 'before' }, children: [], writer: 'w' },
    ],
    ['half a file', '{"supervisor":'],
  ])('is no lock when it was left by %s', async (what, state) => {
    const lock = await lockDataFolder(leftBy(what.replaceAll(' ', '-'), state))
    expect(lock.deadWriter).toBe(typeof state === 'string' ? undefined : 'w')
    lock.update({ children: [], writer: undefined })
    lock.release()
  })

  it('ends the children that a dead supervisor left, and nobody else', async () => {
    const left = spawn('sleep', ['60'])
    const other = spawn('sleep', ['60'])
    process.kill(left.pid!, 'SIGSTOP')
    const children = [identify(left.pid!)!, { pid: other.pid!, startTime: 'another' }]
    const lock = await lockDataFolder(leftBy('children', { supervisor: gone, children }))
    expect([isAlive(left.pid!), isAlive(other.pid!)]).toEqual([false, true])
    other.kill()
    lock.release()
  })

  it('is had by one of many that start at once', { timeout: 240_000 }, async () => {
    const data = leftBy('many', { supervisor: gone, children: [] })
    const program = `import { lockDataFolder } from ${JSON.stringify(MODULE)}
      process.stdin.once('data', () => lockDataFolder(${JSON.stringify(data)}).then(
        () => { process.stdout.write('had'); setTimeout(() => {}, 60_000) },
        (error) => process.stdout.write(error.message.includes('Another Quipu') ? 'refused' : error.message)))
      process.stdout.write('ready')`
    const starts = Array.from({ length: 8 }, () => spawn(process.execPath, ['--input-type=module', '-e', program]))
    const said = (one: (typeof starts)[number]) =>
      new Promise<string>((resolve) => one.stdout.once('data', (text: Buffer) => resolve(text.toString())))
    expect(await Promise.all(starts.map(said))).toEqual(Array(8).fill('ready'))
    const answers = starts.map(said)
    for (const one of starts) one.stdin.write('go')
    const results = await Promise.all(answers)
    for (const one of starts) one.kill('SIGKILL')
    expect(results.toSorted()).toEqual(['had', ...Array<string>(7).fill('refused')])
  })
})
