import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lockDataFolder, type LockState } from '../../src/supervisor/data-folder-lock.ts'
import { identify } from '../../src/supervisor/process-identity.ts'
import { isAlive, temporaryFolder } from '../support/quipu-process.ts'

const MODULE = new URL('../../dist/supervisor/data-folder-lock.js', import.meta.url).href

let folder: ReturnType<typeof temporaryFolder>
beforeAll(() => void (folder = temporaryFolder()))
afterAll(() => folder.remove())

/** Makes a data folder with the lock file of an earlier supervisor. */
function leftBy(name: string, state: LockState | string): string {
  const data = join(folder.path, name)
  mkdirSync(data)
  writeFileSync(join(data, 'supervisor.json'), typeof state === 'string' ? state : JSON.stringify(state))
  return data
}

/** Returns the file that a process creates first when it takes over the lock file `left`. */
function successorOf(path: string, left: string): string {
  const { ino, mtimeNs } = statSync(left, { bigint: true })
  return `${path}.after.${ino}-${mtimeNs}`
}

const gone = { pid: 4_000_000, startTime: 'never' }

describe('The lock of a data folder', () => {
  it('names its process, keeps a second one out, and is gone after its release', async () => {
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
      'a process id that another process has now',
      { supervisor: { pid: process.pid, startTime: 'before' }, children: [], writer: 'w' },
    ],
    ['half a file', '{"supervisor":'],
  ])('does not hold if it was left by %s', async (what, state) => {
    const lock = await lockDataFolder(leftBy(what.replaceAll(' ', '-'), state))
    expect(lock.deadWriter).toBe(typeof state === 'string' ? undefined : 'w')
    lock.update({ children: [], writer: undefined })
    lock.release()
  })

  it('ends the children that a dead supervisor left, and no other process', async () => {
    const left = spawn('sleep', ['60'])
    const other = spawn('sleep', ['60'])
    process.kill(left.pid!, 'SIGSTOP')
    const children = [identify(left.pid!)!, { pid: other.pid!, startTime: 'another' }]
    const lock = await lockDataFolder(leftBy('children', { supervisor: gone, children }))
    expect([isAlive(left.pid!), isAlive(other.pid!)]).toEqual([false, true])
    other.kill()
    lock.release()
  })

  it('passes on from a process that died while it took over', async () => {
    const data = leftBy('chain', { supervisor: gone, children: [], writer: 'w' })
    const path = join(data, 'supervisor.json')
    for (let i = 0, before = path; i < 2; i++, before = successorOf(path, before))
      writeFileSync(successorOf(path, before), JSON.stringify({ supervisor: gone, children: [], writer: `not ${i}` }))
    const lock = await lockDataFolder(data)
    expect(lock.deadWriter).toBe('w')
    expect(readdirSync(data)).toEqual(['supervisor.json'])
    lock.update({ children: [], writer: undefined })
    lock.release()
  })

  it('is refused while another process takes over', async () => {
    const data = leftBy('taking', { supervisor: gone, children: [] })
    const path = join(data, 'supervisor.json')
    const other = spawn('sleep', ['60'])
    writeFileSync(successorOf(path, path), JSON.stringify({ supervisor: identify(other.pid!), children: [] }))
    await expect(lockDataFolder(data)).rejects.toThrow(`Another Quipu (process ${other.pid})`)
    other.kill()
    await once(other, 'exit')
    const lock = await lockDataFolder(data)
    lock.release()
  })

  it('goes to exactly one of many processes that start at once', { timeout: 240_000 }, async () => {
    const names = Array.from({ length: 60 }, (_, i) => leftBy(`many-${i}`, { supervisor: gone, children: [] }))
    const program = `import { lockDataFolder } from ${JSON.stringify(MODULE)}
      const had = []
      process.stdin.once('data', async (begin) => {
        for (const [i, data] of ${JSON.stringify(names)}.entries()) {
          while (Date.now() < Number(begin) + i * 25);
          await lockDataFolder(data).then(() => had.push(i), (error) => { if (!error.message.includes('Another Quipu')) throw error })
        }
        process.stdout.write(JSON.stringify(had))
        setTimeout(() => {}, 60_000)
      })
      process.stdout.write('ready')`
    const starts = Array.from({ length: 8 }, () => spawn(process.execPath, ['--input-type=module', '-e', program]))
    const said = (one: (typeof starts)[number]) =>
      new Promise<string>((resolve) => one.stdout.once('data', (text: Buffer) => resolve(text.toString())))
    expect(await Promise.all(starts.map(said))).toEqual(Array(8).fill('ready'))
    const answers = starts.map(said)
    const begin = String(Date.now() + 200)
    for (const one of starts) one.stdin.write(begin)
    const had = (await Promise.all(answers)).flatMap((text) => JSON.parse(text) as number[])
    for (const one of starts) one.kill('SIGKILL')
    expect(had.toSorted((a, b) => a - b)).toEqual(names.map((_, i) => i))
  })
})
