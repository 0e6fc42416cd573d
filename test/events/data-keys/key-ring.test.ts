import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KeyRing, type KeyRingOptions } from '../../../src/events/data-keys/key-ring.ts'
import type { KeyBlock } from '../../../src/events/data-keys/key-block.ts'
import { KeyTree } from '../../../src/events/data-keys/key-tree.ts'
import { LogChanged, LogUnavailable, MisconfiguredLog } from '../../../src/events/event-log.ts'
import { temporaryFolder, waitUntil } from '../../support/quipu-process.ts'

let folder: ReturnType<typeof temporaryFolder>
beforeAll(() => void (folder = temporaryFolder()))
afterAll(() => folder.remove())

/** A stand-in for the table in Postgres, with a switch for an outage. */
class TableInMemory {
  away = false
  #blocks: KeyBlock[] = []
  #changes = 0

  async stamp() {
    this.#answer()
    return String(this.#changes)
  }
  async read() {
    this.#answer()
    return this.#blocks.map(copyOf)
  }
  async add(blocks: readonly KeyBlock[]) {
    this.#answer()
    this.#blocks.push(...blocks.map(copyOf))
    this.#changes += blocks.length
  }
  async forget(id: string, indexes: readonly number[]) {
    this.#answer()
    for (const block of this.#blocks) if (block.id === id) for (const index of indexes) block.tree.forget(index)
    this.#changes++
  }
  lose() {
    this.#blocks = []
    this.#changes++
  }
  get blocks() {
    return this.#blocks
  }
  #answer() {
    if (this.away) throw new Error('connection refused')
  }
}

function copyOf(block: KeyBlock): KeyBlock {
  return { ...block, tree: new KeyTree(block.tree.depth, block.tree.secrets) }
}

let files = 0
const newFile = () => join(folder.path, `${++files}.jsonl`)
const DEPTH = 3

async function open(table: TableInMemory, options: Partial<KeyRingOptions> = {}): Promise<KeyRing> {
  const ring = new KeyRing({
    table,
    file: newFile(),
    keepsFile: true,
    log: 'topic',
    encrypts: (stream) => stream !== 'system',
    depth: DEPTH,
    ...options,
  })
  await ring.open()
  return ring
}

describe('The data keys of queries', () => {
  it('are one per stream, and none for a stream that is not encrypted', async () => {
    const ring = await open(new TableInMemory())
    await ring.prepare(1)
    const names = [1, 2, 3, 4, 5].map((n) => ring.keyFor(`q${n}`)!.name)
    expect(new Set(names).size).toBe(5)
    expect(ring.keyFor('q2')!.name).toBe(names[1])
    expect(ring.keyFor('system')).toBeUndefined()
    expect(ring.keyOf(names[1]!)).toEqual(ring.keyFor('q2')!.secret)
    ring.retire('q2')
    expect(ring.keyFor('q2')!.name).not.toBe(names[1])
  })

  it('differ in each epoch, and every process can load them', async () => {
    const table = new TableInMemory()
    const [one, two] = [await open(table), await open(table)]
    await one.prepare(1)
    const key = one.keyFor('q1')!
    await expect(two.loadKeys([key.name])).resolves.toBeUndefined()
    expect(two.keyOf(key.name)).toEqual(key.secret)
    await two.prepare(2)
    expect(two.keyFor('q1')!.secret).not.toEqual(key.secret)
  })

  it('do not run out while the table accepts new blocks', async () => {
    const table = new TableInMemory()
    const ring = await open(table)
    await ring.prepare(1)
    const names = new Set<string>()
    for (let n = 0; n < 5 * 2 ** DEPTH; n++) {
      await waitUntil('there is a key', async () => {
        try {
          return Boolean(ring.keyFor(`q${n}`))
        } catch (error) {
          if (!(error instanceof LogUnavailable)) throw error
          return false
        }
      })
      names.add(ring.keyFor(`q${n}`)!.name)
    }
    expect(names.size).toBe(5 * 2 ** DEPTH)
  })

  it('last for eight new epochs, or for two blocks, while the table is not available', async () => {
    const table = new TableInMemory()
    const file = newFile()
    const first = await open(table, { file })
    await first.prepare(1)
    await first.refresh()
    first.close()
    table.away = true
    for (let epoch = 2; epoch <= 9; epoch++) {
      const next = await open(table, { file })
      await next.prepare(epoch)
      expect(next.keyFor('q')).toBeDefined()
      next.close()
    }
    const late = await open(table, { file })
    await expect(late.prepare(10)).rejects.toThrow(LogUnavailable)
    table.away = false
    await late.prepare(10)
    for (let n = 0; n < 2 ** DEPTH; n++) late.keyFor(`q${n}`)
    table.away = true
    for (let n = 0; n < 2 ** DEPTH; n++) late.keyFor(`r${n}`)
    expect(() => late.keyFor('one too many')).toThrow(LogUnavailable)
    expect(late.keyFor('q1')).toBeDefined()
    late.close()
  })

  it('are loaded once the table is available, and reported as missing if no place has them', async () => {
    const table = new TableInMemory()
    const [writer, reader] = [await open(table), await open(table)]
    await writer.prepare(1)
    const { name } = writer.keyFor('q')!
    table.away = true
    await expect(reader.loadKeys([name])).rejects.toThrow(LogUnavailable)
    table.away = false
    await reader.loadKeys([name])
    expect(reader.stateOf(name)).toBe('held')
    await reader.loadKeys(['nowhere.3'])
    expect(reader.stateOf('nowhere.3')).toBe('missing')
    expect(() => reader.keyOf('nowhere.3')).toThrow(LogChanged)
    expect(() => reader.keyOf('nowhere.3')).toThrow(/bring back the table quipu_log.data_keys/)
  })
})

describe('A forgotten data key', () => {
  it('is removed from the table, the file and the memory of all processes', async () => {
    const table = new TableInMemory()
    const file = newFile()
    const ring = await open(table, { file })
    await ring.prepare(1)
    const other = await open(table)
    const [kept, gone] = [ring.keyFor('kept')!, ring.keyFor('gone')!]
    await other.loadKeys([kept.name, gone.name])
    await ring.forget([gone.name])
    await other.refresh()
    const anew = await open(new TableInMemory(), { file })
    for (const each of [ring, other, anew, await open(table)]) {
      expect([each.stateOf(gone.name), each.stateOf(kept.name)]).toEqual(['forgotten', 'held'])
      expect(each.keyOf(gone.name)).toBeUndefined()
      expect(each.keyOf(kept.name)).toEqual(kept.secret)
    }
    expect(readFileSync(file, 'utf8')).not.toContain(gone.secret.toString('base64'))
  })

  it('stays forgotten when an older table or an older file is restored', async () => {
    const table = new TableInMemory()
    const [file, stale] = [newFile(), newFile()]
    const ring = await open(table, { file })
    await ring.prepare(1)
    const { name } = ring.keyFor('q')!
    const old = await open(table, { file: stale })
    old.close()
    const backup = table.blocks.map(copyOf)
    await ring.forget([name])
    table.lose()
    await table.add(backup)
    await ring.refresh()
    expect((await open(table)).stateOf(name)).toBe('forgotten')
    expect((await open(table, { file: stale })).stateOf(name)).toBe('forgotten')
  })

  it('is kept, with an error of the call, if the table is not available', async () => {
    const table = new TableInMemory()
    const ring = await open(table)
    await ring.prepare(1)
    const { name } = ring.keyFor('q')!
    table.away = true
    await expect(ring.forget([name])).rejects.toThrow(LogUnavailable)
    expect(ring.stateOf(name)).toBe('held')
  })
})

describe('A lost table of data keys', () => {
  it('is restored from the file', async () => {
    const table = new TableInMemory()
    const file = newFile()
    const ring = await open(table, { file })
    await ring.prepare(1)
    const key = ring.keyFor('q')!
    ring.close()
    table.lose()
    const back = await open(table, { file })
    await back.refresh()
    expect(back.keyOf(key.name)).toEqual(key.secret)
    expect((await open(table)).stateOf(key.name)).toBe('held')
  })

  it('is restored from a file that keeps the keys of another log too', async () => {
    const table = new TableInMemory()
    const file = newFile()
    const [one, two] = [await open(table, { file }), await open(new TableInMemory(), { file, log: 'another' })]
    await one.prepare(1)
    await two.prepare(1)
    await one.prepare(2)
    await one.refresh()
    const again = await open(new TableInMemory(), { file, log: 'another' })
    expect(again.stateOf(two.keyFor('q')!.name)).toBe('held')
    expect(readFileSync(file, 'utf8').split('\n').length).toBeGreaterThan(15)
  })

  it('is not replaced by a new one if the file is not a key file', async () => {
    const file = newFile()
    const ring = await open(new TableInMemory(), { file })
    await ring.prepare(1)
    writeFileSync(file, 'not ours\n')
    await expect(open(new TableInMemory(), { file })).rejects.toThrow(MisconfiguredLog)
  })
})
