import { execFile, execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openRowReader } from '../../../src/execution/engine/row-reader.ts'

let folder: string
let fifo: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'quipu-fifo-'))
  fifo = join(folder, 'fifo')
  execFileSync('mkfifo', [fifo])
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const refused = (error: unknown): void => {
  throw error
}
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20))

describe('A row reader', () => {
  it('passes on only whole lines', async () => {
    const lines: string[] = []
    const reader = openRowReader(fifo, (bytes) => void lines.push(bytes.toString()), refused)
    const writer = openSync(fifo, constants.O_WRONLY)
    for (const piece of ['[1],\n[2', '],', '\n[3],\n', '[4]', ',\n']) {
      writeSync(writer, piece)
      await pause()
    }
    closeSync(writer)
    await reader.ended
    expect(lines.join('')).toBe('[1],\n[2],\n[3],\n[4],\n')
    expect(lines.every((text) => text.endsWith('\n'))).toBe(true)
  })

  it('passes on every row unchanged, also long rows', async () => {
    const taken: Buffer[] = []
    const reader = openRowReader(fifo, (bytes) => void taken.push(Buffer.from(bytes)), refused)
    const texts = Array.from({ length: 400 }, (_, i) => `["${String(i).repeat(1 + ((i * i * i) % 20_011))}"],\n`)
    const file = join(folder, 'rows')
    writeFileSync(file, texts.join(''))
    execFile('sh', ['-c', 'exec cat "$0" > "$1"', file, fifo], () => undefined)
    await reader.ended
    expect(taken.every((bytes) => bytes.at(-1) === 10)).toBe(true)
    expect(Buffer.concat(taken).equals(Buffer.from(texts.join('')))).toBe(true)
  })

  it('rejects input that ends within a line', async () => {
    const reader = openRowReader(fifo, () => undefined, refused)
    const writer = openSync(fifo, constants.O_WRONLY)
    writeSync(writer, '[1],\n[2')
    closeSync(writer)
    await expect(reader.ended).rejects.toThrow('within a line')
    expect(reader.delivered()).toBe(true)
  })

  it('reads nothing while the consumer is busy', async () => {
    let takeOn: () => void = () => undefined
    let calls = 0
    const take = (): Promise<void> => {
      calls++
      return new Promise((resolve) => {
        takeOn = resolve
      })
    }
    const reader = openRowReader(fifo, take, refused)
    const writer = openSync(fifo, constants.O_WRONLY)
    writeSync(writer, '[1],\n')
    await expect.poll(() => calls).toBe(1)
    writeSync(writer, '[2],\n')
    closeSync(writer)
    await pause()
    expect(calls).toBe(1)
    takeOn()
    await expect.poll(() => calls).toBe(2)
    takeOn()
    await reader.ended
  })

  it('reports the error of the consumer, and closes', async () => {
    const errors: unknown[] = []
    const reader = openRowReader(
      fifo,
      () => Promise.reject(new Error('no room')),
      (error) => errors.push(error),
    )
    const writer = openSync(fifo, constants.O_WRONLY)
    writeSync(writer, '[1],\n')
    await expect(reader.ended).rejects.toThrow('no room')
    expect(errors).toHaveLength(1)
    expect(() => writeSync(writer, '[2],\n')).toThrow('EPIPE')
    closeSync(writer)
  })

  it('passes on nothing after it is closed', async () => {
    let calls = 0
    const reader = openRowReader(fifo, () => void calls++, refused)
    const writer = openSync(fifo, constants.O_WRONLY)
    writeSync(writer, '[1],\n')
    await reader.close()
    closeSync(writer)
    await pause()
    expect(calls).toBe(0)
  })
})
