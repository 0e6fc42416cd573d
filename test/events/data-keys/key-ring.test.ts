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

/** As the table in Postgres, which may be away. */
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

describe('the keys of queries', () => {
  it('are one a stream, and none for what is not encrypted', async () => {
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

  it('are others in each epoch, and every process finds them', async () => {
    const table = new TableInMemory()
    const [one, two] = [await open(table), await open(table)]
    await one.prepare(1)
    const key = one.keyFor('q1')!
    await expect(two.loadKeys([key.name])).resolves.toBeUndefined()
    expect(two.keyOf(key.name)).toEqual(key.secret)
    await two.prepare(2)
    expect(two.keyFor('q1')!.secret).not.toEqual(key.secret)
  })

  it('do not end while the table takes new ones', async () => {
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

  it('last for two blocks and eight changes of hands while it is away', async () => {
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

  it('that are unknown wait for the table, and are told when they are nowhere', async () => {
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

describe('a key that is forgotten', () => {
  it('is gone from table, file and the memory of all processes', async () => {
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

  it('does not come back with a table, or a file, of before', async () => {
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

  it('cannot be forgotten while the table is away', async () => {
    const table = new TableInMemory()
    const ring = await open(table)
    await ring.prepare(1)
    const { name } = ring.keyFor('q')!
    table.away = true
    await expect(ring.forget([name])).rejects.toThrow(LogUnavailable)
    expect(ring.stateOf(name)).toBe('held')
  })
})

describe('a table that was lost', () => {
  it('gets the keys back from the file', async () => {
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

  it('has no part in a file that somebody else wrote', async () => {
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

  it('is not begun again over a file that is none', async () => {
    const file = newFile()
    const ring = await open(new TableInMemory(), { file })
    await ring.prepare(1)
    writeFileSync(file, 'not ours\n')
    await expect(open(new TableInMemory(), { file })).rejects.toThrow(MisconfiguredLog)
  })
})
